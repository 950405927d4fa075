//! UTF-8 as a small automaton, to tell at once that whole subtrees of the vocabulary are valid text.

/// Between characters.
pub const BOUNDARY: u8 = 0;
/// Number of states: between characters, and seven kinds of bytes still to come.
pub const STATES: u8 = 8;

/// The state after a byte, `None` if the text is not UTF-8.
pub fn step(state: u8, byte: u8) -> Option<u8> {
    match (state, byte) {
        (BOUNDARY, 0x00..=0x7F) => Some(BOUNDARY),
        (BOUNDARY, 0xC2..=0xDF) => Some(1),
        (BOUNDARY, 0xE1..=0xEC | 0xEE | 0xEF) => Some(2),
        (BOUNDARY, 0xF1..=0xF3) => Some(3),
        (BOUNDARY, 0xE0) => Some(4),
        (BOUNDARY, 0xED) => Some(5),
        (BOUNDARY, 0xF0) => Some(6),
        (BOUNDARY, 0xF4) => Some(7),
        (1, 0x80..=0xBF) => Some(BOUNDARY),
        (2, 0x80..=0xBF) | (4, 0xA0..=0xBF) | (5, 0x80..=0x9F) => Some(1),
        (3, 0x80..=0xBF) | (6, 0x90..=0xBF) | (7, 0x80..=0x8F) => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_exactly_what_the_standard_library_does() {
        let accepts = |text: &[u8]| text.iter().try_fold(BOUNDARY, |s, &b| step(s, b)) == Some(BOUNDARY);
        let edges = [
            0, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0,
            0xF1, 0xF4, 0xF5, 0xFF,
        ];
        let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..4 {
            texts = texts.iter().flat_map(|t| edges.iter().map(move |&b| [&t[..], &[b]].concat())).collect();
            for text in &texts {
                assert_eq!(accepts(text), std::str::from_utf8(text).is_ok(), "{text:x?}");
            }
        }
    }
}
