//! What the language leaves no choice about: forced bytes, and the tokens that spell them.
//!
//! Text is forced as long as the output is not complete and exactly one byte can follow. Which tokens a tokenizer would
//! write it with is another matter: a token near the end of the forced text might, with other text after it, have merged
//! with what follows. [`Matcher::forced_tokens_by`] returns what is certain.
//!
//! The rule. Let c be the output, w the forced text, and suppose that the output so far ends at a token of the canonical
//! encoding T of the whole text. Some token of T ends at the end of w, or lies across it. In the second case it starts at
//! a position p of w where the mask allows a token that reaches beyond w. Byte pair encoding is closed under prefixes:
//! what T has before p is the encoding of c·w up to p. So T begins with what the encodings of c·w up to each such p, and
//! of c·w itself, have in common after c. Splitting into words before the encoding may look at the next character; so the
//! encodings of c·w with one character of each kind that may follow (letter, digit, space, ...) have their say too.

use crate::commit::Branches;
use crate::lr::Lr;
use crate::matcher::Matcher;

/// Longest forced text, and most forced tokens.
const MAX_FORCED: usize = 4096;
/// Bytes of output that are encoded with the forced text, at least; more where a word would be cut, at most ...
const CONTEXT: usize = 64;
/// ... so many.
const MAX_CONTEXT: usize = 1024;

/// A tokenizer: bytes to ids, or `None` for bytes that it cannot encode.
pub type Encode<'e, E> = dyn FnMut(&[u8]) -> Result<Option<Vec<u32>>, E> + 'e;

/// Forced bytes, and the branches before each of them and after the last.
struct Forced {
    text: Vec<u8>,
    branches: Vec<Branches>,
}

/// One byte of each byte class, and whether it is alone.
fn representatives(byte_class: &[u8]) -> Vec<(u8, bool)> {
    let mut count = [0usize; 256];
    let mut first = Vec::new();
    for byte in 0..=255u8 {
        let class = byte_class[usize::from(byte)];
        count[usize::from(class)] += 1;
        if count[usize::from(class)] == 1 {
            first.push(byte);
        }
    }
    first.iter().map(|&b| (b, count[usize::from(byte_class[usize::from(b)])] == 1)).collect()
}

impl Lr<'_> {
    fn after(self, branches: &Branches, byte: u8) -> Option<Branches> {
        let mut next = self.advance(branches, &[byte]);
        self.retain_viable(&mut next);
        (!next.is_empty()).then_some(next)
    }

    /// The one byte that can follow, if nothing else can, and the branches after it.
    fn only_byte(self, branches: &Branches, bytes: &[(u8, bool)]) -> Option<(u8, Branches)> {
        if self.allows_symbol(branches) {
            return None;
        }
        let mut only = None;
        for &(byte, alone) in bytes {
            if let Some(next) = self.after(branches, byte) {
                if !alone || only.is_some() {
                    return None;
                }
                only = Some((byte, next));
            }
        }
        only
    }
}

impl Matcher {
    fn forced(&self) -> Forced {
        let lr = self.compiled().lr();
        let bytes = representatives(&lr.tables.byte_class);
        let mut forced = Forced { text: Vec::new(), branches: vec![self.branches().clone()] };
        while forced.text.len() < MAX_FORCED && !self.is_terminated() {
            let last = &forced.branches[forced.text.len()];
            if lr.is_accepting(last) {
                break;
            }
            let Some((byte, next)) = lr.only_byte(last, &bytes) else { break };
            forced.text.push(byte);
            forced.branches.push(next);
        }
        forced
    }

    /// The text that must come next: as long as the output is not complete and exactly one byte can follow, at most 4,096
    /// bytes.
    pub fn forced_bytes(&self) -> Vec<u8> {
        self.forced().text
    }

    /// The tokens that must come next: as long as the output is not complete and exactly one id is allowed. End ids are
    /// among them only where the grammar names them.
    pub fn forced_tokens(&self) -> Vec<u32> {
        let (lr, vocab) = (self.compiled().lr(), self.compiled().vocab());
        let mut row = vec![0; vocab.words()];
        let mut branches = self.branches().clone();
        let mut tokens = Vec::new();
        while tokens.len() < MAX_FORCED && !self.is_terminated() && !lr.is_accepting(&branches) {
            self.compiled().mask(&branches, &mut row);
            let mut ids = ids(&row);
            let (Some(id), None) = (ids.next(), ids.next()) else { break };
            branches = lr.advance_token(&branches, vocab.token(id), lr.tables.symbol(id));
            lr.retain_viable(&mut branches);
            if branches.is_empty() {
                break;
            }
            tokens.push(id);
        }
        tokens
    }

    /// The tokens that the tokenizer `encode` writes next in every text that continues the output; see the module's notes.
    /// `encode` gives `None` for bytes that it cannot encode (no whole characters). End ids are never among them.
    ///
    /// # Errors
    /// Those of `encode`.
    pub fn forced_tokens_by<E>(&self, encode: &mut Encode<'_, E>) -> Result<Vec<u32>, E> {
        let forced = self.forced();
        let alone = self.forced_tokens();
        let context = self.context();
        let mut longest = vec![None; forced.text.len()];
        let mut end = forced.text.len();
        while end > 0 {
            let mut texts = vec![forced.text[..end].to_vec()];
            texts.extend(self.starts_across(&forced, end, &mut longest).into_iter().map(|p| forced.text[..p].to_vec()));
            if end == forced.text.len() {
                texts.extend(self.continuations(&forced));
            }
            match self.common(&context, &texts, encode)? {
                Some(tokens) if tokens.len() > alone.len() => {
                    return Ok(if self.validate_tokens(&tokens) == Ok(tokens.len()) { tokens } else { alone });
                }
                Some(_) => break,
                // Not at the end of a character: let the text end earlier.
                None => end -= 1,
            }
        }
        Ok(alone)
    }

    /// Positions before `end` where the mask allows a token that reaches beyond `end`. `longest` remembers the longest
    /// token allowed at a position.
    fn starts_across(&self, forced: &Forced, end: usize, longest: &mut [Option<usize>]) -> Vec<usize> {
        let vocab = self.compiled().vocab();
        let mut row = vec![0; vocab.words()];
        let from = end.saturating_sub(vocab.longest());
        let mut starts = Vec::new();
        for p in (from..end).rev() {
            // What reaches beyond the whole forced text reaches far enough.
            let enough = forced.text.len() - p + 1;
            let length = *longest[p].get_or_insert_with(|| {
                self.compiled().mask(&forced.branches[p], &mut row);
                let mut longest = 0;
                for id in ids(&row) {
                    longest = longest.max(vocab.token(id).len());
                    if longest >= enough {
                        break;
                    }
                }
                longest
            });
            if p + length > end {
                starts.push(p);
            }
        }
        starts
    }

    /// The forced text followed by one character of each kind that may come next.
    fn continuations(&self, forced: &Forced) -> Vec<Vec<u8>> {
        let lr = self.compiled().lr();
        let last = &forced.branches[forced.text.len()];
        let kinds: [&[u8]; 7] = [
            b"etaoinsrhldcumfpgwybvkxjqz",
            b"ETAOINSRHLDCUMFPGWYBVKXJQZ_",
            b"0123456789",
            b" ",
            b"\n\t\r",
            b"'",
            b"\",.:;-+*/()[]{}<>=!?@#$%&|\\^~`",
        ];
        let follows = |byte: u8| lr.after(last, byte).is_some();
        let mut texts: Vec<Vec<u8>> = kinds
            .iter()
            .filter_map(|kind| kind.iter().find(|&&byte| follows(byte)))
            .map(|&byte| [&forced.text[..], &[byte]].concat())
            .collect();
        if follows(0xc3) {
            texts.push([&forced.text[..], "é".as_bytes()].concat());
        }
        texts
    }

    /// The tokens that the encodings of all `texts` after `context` begin with; `None` if one could not be encoded.
    fn common<E>(&self, context: &[u8], texts: &[Vec<u8>], encode: &mut Encode<'_, E>) -> Result<Option<Vec<u32>>, E> {
        let mut common: Option<Vec<u32>> = None;
        for text in texts {
            let whole = [context, text].concat();
            let Some(ids) = encode(&whole)? else { return Ok(None) };
            let tokens = self.tokens_from(&whole, context.len(), &ids);
            let kept = match &common {
                None => tokens.to_vec(),
                Some(common) => common.iter().zip(tokens).take_while(|(a, b)| a == b).map(|(a, _)| *a).collect(),
            };
            if kept.is_empty() {
                return Ok(Some(kept));
            }
            common = Some(kept);
        }
        Ok(common)
    }

    /// The tokens of an encoding from `start` on; none if no token starts there or they do not spell `text`.
    fn tokens_from<'a>(&self, text: &[u8], start: usize, ids: &'a [u32]) -> &'a [u32] {
        let vocab = self.compiled().vocab();
        let (mut at, mut from) = (0, None);
        for (i, &id) in ids.iter().enumerate() {
            if at == start && from.is_none() {
                from = Some(i);
            }
            if id as usize >= vocab.size() {
                return &[];
            }
            let bytes = vocab.token(id);
            if !text[at..].starts_with(bytes) || (bytes.is_empty() && from.is_some_and(|from| from < i)) {
                return &[];
            }
            at += bytes.len();
            if bytes.is_empty() {
                from = None;
            }
        }
        match from {
            Some(from) if at == text.len() => &ids[from..],
            _ => &[],
        }
    }

    /// The end of the output, from a step on that does not start inside a word. Tokens that spell nothing cut the text
    /// that is encoded.
    fn context(&self) -> Vec<u8> {
        let kind = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => 0,
            b'0'..=b'9' => 1,
            b' ' | b'\t' | b'\n' | b'\r' => 2,
            _ => 3,
        };
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut length = 0;
        for step in self.taken().take_while(|step| !step.is_empty()) {
            let cuts_word = parts.last().is_some_and(|after| step.last().map(|&b| kind(b)) == Some(kind(after[0])));
            if length >= MAX_CONTEXT || (length >= CONTEXT && !cuts_word) {
                break;
            }
            length += step.len();
            parts.push(step);
        }
        parts.reverse();
        parts.concat()
    }
}

/// The ids in a bitmask row.
fn ids(row: &[u32]) -> impl Iterator<Item = u32> + '_ {
    row.iter().enumerate().flat_map(|(i, &word)| {
        let bits = std::iter::successors((word != 0).then_some(word), |w| Some(w & (w - 1)).filter(|&w| w != 0));
        bits.map(move |w| i as u32 * 32 + w.trailing_zeros())
    })
}
