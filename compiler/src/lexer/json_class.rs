//! Code-point classes in every JSON spelling as byte automata.
//!
//! RFC 8259 lets a string spell a code point raw (unless it is `"`, `\` or below U+0020), as `\u` and four hexadecimal
//! digits of either case, for eight of them as a backslash and a letter, and beyond U+FFFF as a surrogate pair of two
//! `\u`. A surrogate alone spells no code point.

use rustc_hash::FxHashMap;

use super::nfa::{Fragment, NEXT, Range};
use super::utf8::{Trie, scalar_ranges};

/// What follows the backslash, and the code point that it stands for, in the order of the former.
const SHORT: [(u8, u32); 8] =
    [(b'"', 0x22), (b'/', 0x2F), (b'\\', 0x5C), (b'b', 0x08), (b'f', 0x0C), (b'n', 0x0A), (b'r', 0x0D), (b't', 0x09)];

/// 16-bit numbers and the node that follows when one of them has been spelled.
type Targets = Vec<(u32, u32, u32)>;

/// The automaton of one code point out of `ranges`, in any spelling; none if there is no such code point.
///
/// The ranges may overlap and come in any order. Surrogates and numbers above U+10FFFF are no code points.
pub(super) fn class(ranges: &[(u32, u32)]) -> Option<Fragment> {
    let scalars = scalar_ranges(ranges);
    if scalars.is_empty() {
        return None;
    }
    let mut spelling = Spelling::default();
    let raw = scalars.iter().flat_map(|&(lo, hi)| {
        [('\x20', '\x21'), ('\x23', '\x5B'), ('\x5D', char::MAX)].map(|(least, most)| (lo.max(least), hi.min(most)))
    });
    let raw: Vec<(char, char)> = raw.filter(|(lo, hi)| lo <= hi).collect();
    let mut start = spelling.trie.class(&raw).map_or_else(Vec::new, |node| spelling.trie.nodes[node as usize].clone());
    let escape = spelling.escape(&scalars);
    let at = start.partition_point(|range| range.hi < b'\\');
    start.insert(at, byte(b'\\', escape));
    let start = spelling.trie.intern(start);
    Some(Fragment::from_nodes(spelling.trie.nodes, start))
}

fn byte(byte: u8, target: u32) -> Range {
    Range { lo: byte, hi: byte, target }
}

#[derive(Default)]
struct Spelling {
    trie: Trie,
    hexes: FxHashMap<(u32, Targets), u32>,
}

impl Spelling {
    /// The node after the backslash.
    fn escape(&mut self, scalars: &[(char, char)]) -> u32 {
        let mut units: Targets = Vec::new();
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for &(lo, hi) in scalars {
            let (lo, hi) = (u32::from(lo), u32::from(hi));
            if lo <= 0xFFFF {
                units.push((lo, hi.min(0xFFFF), NEXT));
            }
            if hi > 0xFFFF {
                pairs.push((lo.max(0x10000) - 0x10000, hi - 0x10000));
            }
        }
        units.extend(self.high_surrogates(&pairs));
        units.sort_unstable();
        let is_member =
            |&&(_, code): &&(u8, u32)| scalars.iter().any(|&(lo, hi)| (lo as u32..=hi as u32).contains(&code));
        let mut node: Vec<Range> = SHORT.iter().filter(is_member).map(|&(letter, _)| byte(letter, NEXT)).collect();
        node.push(byte(b'u', self.hex(&units, 4)));
        self.trie.intern(node)
    }

    /// The first halves of surrogate pairs for the 20-bit numbers `pairs`, each with the node of its second halves.
    fn high_surrogates(&mut self, pairs: &[(u32, u32)]) -> Targets {
        let mut cuts: Vec<u32> =
            pairs.iter().flat_map(|&(lo, hi)| [lo >> 10, (lo >> 10) + 1, hi >> 10, (hi >> 10) + 1]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut highs = Vec::new();
        for (from, to) in cuts.windows(2).map(|cut| (cut[0], cut[1])) {
            // From one cut to the next all first halves have the same second halves.
            let lows = pairs.iter().map(|&(lo, hi)| (lo.max(from << 10), hi.min((from << 10) + 0x3FF)));
            let lows: Targets = lows
                .filter(|(lo, hi)| lo <= hi)
                .map(|(lo, hi)| (0xDC00 + (lo & 0x3FF), 0xDC00 + (hi & 0x3FF), NEXT))
                .collect();
            if lows.is_empty() {
                continue;
            }
            let low = self.hex(&lows, 4);
            let low = self.trie.intern(vec![byte(b'u', low)]);
            highs.push((0xD800 + from, 0xD800 + to - 1, self.trie.intern(vec![byte(b'\\', low)])));
        }
        highs
    }

    /// The node that reads `digits` hexadecimal digits of one of the numbers; they are sorted and disjoint.
    fn hex(&mut self, numbers: &Targets, digits: u32) -> u32 {
        if digits == 0 {
            return numbers[0].2;
        }
        if let Some(&node) = self.hexes.get(&(digits, numbers.clone())) {
            return node;
        }
        let mut targets = [None; 16];
        for (digit, target) in (0..).zip(&mut targets) {
            let unit = 16u32.pow(digits - 1);
            let (from, to) = (digit * unit, digit * unit + unit - 1);
            let part = numbers.iter().filter(|(lo, hi, _)| *lo <= to && *hi >= from);
            let part: Targets = part.map(|&(lo, hi, node)| (lo.max(from) - from, hi.min(to) - from, node)).collect();
            *target = (!part.is_empty()).then(|| self.hex(&part, digits - 1));
        }
        let spellings = (b'0'..=b'9').zip(0..).chain((b'A'..=b'F').zip(10..)).chain((b'a'..=b'f').zip(10..));
        let mut node: Vec<Range> = Vec::new();
        for (letter, digit) in spellings {
            let Some(target) = targets[digit] else { continue };
            match node.last_mut() {
                Some(last) if last.target == target && last.hi + 1 == letter => last.hi = letter,
                _ => node.push(byte(letter, target)),
            }
        }
        let node = self.trie.intern(node);
        self.hexes.insert((digits, numbers.clone()), node);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{accepts, build};
    use crate::grammar::ir::Expr;

    /// Every spelling of `code` that RFC 8259 allows, by the definition, and whether it is one of a legal raw character.
    fn spellings(code: u32) -> Vec<Vec<u8>> {
        let c = char::from_u32(code).expect("a code point");
        let mut all = Vec::new();
        if code >= 0x20 && c != '"' && c != '\\' {
            all.push(c.to_string().into_bytes());
        }
        let units: Vec<u16> = c.encode_utf16(&mut [0; 2]).to_vec();
        all.push(units.iter().map(|u| format!("\\u{u:04x}")).collect::<String>().into_bytes());
        all.push(units.iter().map(|u| format!("\\u{u:04X}")).collect::<String>().into_bytes());
        for letter in b"\"\\/bfnrt" {
            let text = [b'"', b'\\', *letter, b'"'];
            if serde_json::from_slice::<String>(&text).expect("an escape") == c.to_string() {
                all.push(vec![b'\\', *letter]);
            }
        }
        all
    }

    #[test]
    fn a_class_has_every_spelling_of_its_members_and_no_other() {
        let codes: Vec<u32> = (0..0x300)
            .chain([
                0x7FF, 0x800, 0xFFF, 0x1000, 0x2028, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x103FF, 0x10400, 0x1F600,
            ])
            .chain([0xFFFFF, 0x100000, 0x10FFFF])
            .collect();
        let classes: [&[(u32, u32)]; 9] = [
            &[(0, 0x10FFFF)],
            &[(0x61, 0x7A)],
            &[(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)],
            &[(0x2F, 0x2F)],
            &[(0x0A, 0x0A), (0x2028, 0x2029), (0x1F600, 0x1F64F)],
            &[(0, 0x60), (0x62, 0xFFFF)],
            &[(0x103FF, 0x10400)],
            &[(0x10000, 0x10FFFF)],
            &[(0xD000, 0xE0FF), (0xFFFFF, 0x100000), (5, 9), (3, 6)],
        ];
        for class in classes {
            let dfa = build(&[Expr::JsonClass(class.to_vec())]).expect("a lexer");
            for &code in &codes {
                let member = class.iter().any(|&(lo, hi)| (lo..=hi).contains(&code));
                for spelling in spellings(code) {
                    assert_eq!(!accepts(&dfa, &spelling).is_empty(), member, "U+{code:04X} in {class:x?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_spelling_is_refused() {
        let dfa = build(&[Expr::JsonClass(vec![(0, 0x10FFFF)])]).expect("a lexer");
        assert!(dfa.state_count() < 25, "{} states", dfa.state_count());
        for bad in [
            &b"\""[..],
            b"\\",
            b"\n",
            b"\x00",
            b"\x1F",
            b"\\'",
            b"\\x41",
            b"\\u12",
            b"\\u12G4",
            b"\\U0041",
            b"\\ud800",
            b"\\udc00",
            b"\\udc00\\ud800",
            b"\\ud800\\ud800",
            b"\\ud83d\xF0\x9F\x98\x80",
            b"ab",
            b"",
            b"\xED\xA0\x80",
            b"\xC0\xAF",
            b"\xFF",
            b"\\u00e9e",
        ] {
            assert!(accepts(&dfa, bad).is_empty(), "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
