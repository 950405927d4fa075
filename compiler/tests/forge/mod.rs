//! Forged artifacts: small ones to start from, changes to them, hashes that are right all the same, and something to do
//! with those that load. Shared by the tests and the fuzz target.

use compiler::vocab::Trie;
use compiler::{Config, Schedule, Source, compile};
use dwa_runtime::artifact::{self, Buffer, Header};
use dwa_runtime::{Compiled, Matcher, MatcherError, Opened, Vocab};
use std::sync::Arc;

/// Name, grammar and texts to decode of each artifact. `groups` is lexed by context; `watchers` needs backtracking; `tokens`
/// names ids; `counters` counts.
pub const GRAMMARS: [(&str, &str, &[&[u8]]); 5] = [
    ("ambiguous", include_str!("ambiguous.json"), &[b"xxyxx", b"xxxxxxxxxxxxxxxx"]),
    ("counters", include_str!("counters.json"), &[COUNTED, b"aaaaa = \"xxb1xx\";bbbbbb=\"x"]),
    ("groups", include_str!("groups.json"), &[b"a {b {{ cd }} {{e}}", b"{{{"]),
    ("tokens", include_str!("tokens.json"), &[b"ab c = d;", b"a = b c;de = f;"]),
    ("watchers", include_str!("watchers.json"), &[b"a = 1e5 + /* c */(b);b=(x) ;", b"a=(((((((((("]),
];

/// A text on which counters run out.
const COUNTED: &[u8] =
    b"abababababababababababababababababababababababababababababab = \"xb1xb1xb1xb1xb1xb1xb1xb1xb1xb1xb1xb1xb1x\";";

const HEADER: usize = 128;
const ENTRY: usize = 56;

/// All bytes, tokens of several lexemes, and an end id.
pub fn vocab() -> Arc<Vocab> {
    let more: [&[u8]; 8] = [b"xx", b"a {{", b"}} b", b"1e5", b"a = ", b"))", b"/* ", b"e."];
    let bytes = (0..=255).map(|byte| vec![byte]);
    let tokens: Vec<Vec<u8>> = bytes.chain(more.map(<[u8]>::to_vec)).chain([Vec::new()]).collect();
    Arc::new(Vocab::new(&tokens, &[tokens.len() as u32 - 1]).expect("a small vocabulary"))
}

/// The artifact of a grammar. Without `shared`, every lexer state has tokens of its own only.
pub fn build(grammar: &str, vocab: &Arc<Vocab>, shared: bool) -> Vec<u8> {
    let mut config = Config { copied_states: 0, ..Config::default() };
    if !shared {
        (config.shared_tokens, config.min_agreement) = (0, 0);
    }
    let trie = Arc::new(Trie::new(vocab));
    let source = Source::read(grammar.to_string()).expect("canonical text");
    compile(&source, vocab, &trie, Schedule::AheadOfTime, &config, &mut |_, _| true).expect("a small grammar").bytes
}

/// Contents and bytes per element of each section.
pub type Sections = Vec<(Vec<u8>, u32)>;

/// Take an artifact apart; `artifact::write` joins the parts again, with lengths and hashes that are right.
pub fn split(bytes: &[u8]) -> (Header, Sections) {
    let names = vec!["section"; u32_at(bytes, 12).expect("a header") as usize];
    let (header, sections) =
        artifact::read(artifact::FORMAT, &Buffer::from_bytes(bytes), &names).expect("a whole artifact");
    (header, sections.into_iter().map(|s| (bytes[s.range].to_vec(), s.width)).collect())
}

/// Set the hashes of header and sections right, as far as those lie inside of the file.
pub fn rehash(bytes: &mut [u8]) {
    let Some(sections) = u32_at(bytes, 12).map(|n| n as usize) else { return };
    let fits = HEADER.checked_add(sections.saturating_mul(ENTRY)).filter(|&end| end <= bytes.len());
    let Some(table_end) = fits else { return };
    for entry in (HEADER..table_end).step_by(ENTRY) {
        let range = u64_at(bytes, entry)..u64_at(bytes, entry).saturating_add(u64_at(bytes, entry + 8));
        let contents = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        if let Some(contents) = contents.and_then(|(start, end)| bytes.get(start..end)) {
            let hash = *blake3::hash(contents).as_bytes();
            bytes[entry + 24..entry + 56].copy_from_slice(&hash);
        }
    }
    bytes[96..128].fill(0);
    let hash = *blake3::hash(&bytes[..table_end]).as_bytes();
    bytes[96..128].copy_from_slice(&hash);
}

/// A source of numbers, the same for the same seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// Change an element, or all, of some section; return what was changed.
pub fn change(sections: &mut Sections, random: &mut Random) -> String {
    let full: Vec<usize> = (0..sections.len()).filter(|&i| !sections[i].0.is_empty()).collect();
    let section = full[random.below(full.len())];
    let (contents, width) = &mut sections[section];
    let width = *width as usize;
    let mut elements: Vec<u64> =
        contents.chunks(width).map(|e| e.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))).collect();
    let most = u64::MAX >> (64 - 8 * width);
    let (at, other) = (random.below(elements.len()), random.below(elements.len()));
    let value = elements[at];
    match random.below(9) {
        0 => elements[at] = [0, 1, 2, most, most - 1, most / 2][random.below(6)],
        1 => elements[at] = value.wrapping_add(1) & most,
        2 => elements[at] = value.saturating_sub(1),
        3 => elements[at] = elements[other],
        4 => elements[at] ^= 1 << random.below(8 * width),
        5 => elements.swap(at, other),
        6 => elements.fill(value),
        7 => _ = elements.remove(at),
        _ => elements.insert(at, value),
    }
    *contents = elements.iter().flat_map(|e| e.to_le_bytes().into_iter().take(width)).collect();
    format!("element {at} of section {section}")
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Load an artifact and decode with it. Returns whether it was loaded; what it answers then is not looked at.
pub fn drive(bytes: &[u8], vocab: &Arc<Vocab>, texts: &[&[u8]]) -> bool {
    let opened = Opened::new(Buffer::from_bytes(bytes)).is_ok();
    let Ok(compiled) = Compiled::new(Buffer::from_bytes(bytes), Arc::clone(vocab)) else { return false };
    assert!(opened, "an artifact was loaded that cannot be opened");
    let compiled = Arc::new(compiled);
    let mut row = vec![0u32; vocab.words()];
    for text in texts {
        let mut matcher = Matcher::new(Arc::clone(&compiled));
        for &byte in *text {
            match matcher.fill_bitmask(&mut row) {
                Ok(()) | Err(MatcherError::DeadEnd { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            matcher.is_accepting();
            matcher.accept_token(u32::from(byte)).expect("an id in range, before the end");
        }
        for id in 256..vocab.size() as u32 {
            matcher.clone().accept_token(id).expect("an id in range, before the end");
        }
        let steps = matcher.steps();
        matcher.rollback(steps / 2).expect("no more steps than were taken");
        matcher.fill_bitmask(&mut row).ok();
    }
    true
}
