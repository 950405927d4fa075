//! A vocabulary and its trie as a file of plain arrays, to be mapped instead of built.
//!
//! The layout is that of artifacts ([`dwa_runtime::artifact`]), with another magic and these sections. Nothing that a file
//! says is believed: the hashes find accidents, and what the sections say is held against each other, so that a file either
//! gives what [`Trie::new`] would, or an error.

use super::Trie;
use super::trie::KnownSets;
use dwa_runtime::artifact::{self, Array, Buffer, Format, Header, Section};
use dwa_runtime::{ArtifactError, Vocab, VocabError};
use std::sync::Arc;

/// First bytes of a saved vocabulary.
pub const MAGIC: &[u8; 8] = b"glrgridv";
const FORMAT: Format = Format { magic: *MAGIC, version: 3 };
const SECTIONS: &[&str] = &[
    "starts",
    "bytes",
    "eos_ids",
    "byte",
    "depth",
    "end",
    "height",
    "token_before",
    "below",
    "utf8_below",
    "ids",
    "id_start",
    "name_ids",
    "name_start",
    "names",
    "markers",
];

/// Ids by name, ascending.
pub type Names = Vec<(String, u32)>;

/// What a file says of tokens beside their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Ids by name, ascending.
    pub names: Names,
    /// Ids of markers, ascending: named tokens that a grammar may also name by their text.
    pub markers: Vec<u32>,
}

/// Lay a vocabulary, its trie and what is said of its tokens out as a file.
pub fn write(vocab: &Vocab, trie: &Trie, named: &Named) -> Vec<u8> {
    fn section<T: bytemuck::NoUninit>(values: &[T]) -> (Vec<u8>, u32) {
        (bytemuck::cast_slice(values).to_vec(), size_of::<T>() as u32)
    }
    let (starts, bytes, eos_ids) = vocab.arrays();
    let names = &named.names;
    let name_ids: Vec<u32> = names.iter().map(|(_, id)| *id).collect();
    let text: String = names.iter().map(|(name, _)| name.as_str()).collect();
    let mut name_start = vec![0u32];
    name_start.extend(names.iter().scan(0, |end, (name, _)| {
        *end += name.len() as u32;
        Some(*end)
    }));
    let header = Header {
        vocab: *vocab.fingerprint(),
        vocab_size: vocab.size() as u64,
        grammar: hash(&name_ids, &name_start, &text, &named.markers),
    };
    let sections = [
        section(starts),
        section(bytes),
        section(eos_ids),
        section(&trie.byte),
        section(&trie.depth),
        section(&trie.end),
        section(&trie.height),
        section(&trie.token_before),
        section(&trie.below),
        section(&trie.utf8_below),
        section(&trie.ids),
        section(&trie.id_start),
        section(&name_ids),
        section(&name_start),
        section(text.as_bytes()),
        section(&named.markers),
    ];
    artifact::write(FORMAT, &header, &sections)
}

/// What a file has in the place of a grammar's fingerprint.
fn hash(ids: &[u32], start: &[u32], text: &str, markers: &[u32]) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    hash.update(bytemuck::cast_slice(ids));
    hash.update(bytemuck::cast_slice(start));
    hash.update(text.as_bytes());
    hash.update(bytemuck::cast_slice(markers));
    *hash.finalize().as_bytes()
}

/// Use a file where it lies.
///
/// # Errors
/// [`VocabError`] if it is damaged or of another version.
pub fn read(buffer: &Arc<Buffer>) -> Result<(Vocab, Trie, Named), VocabError> {
    let (header, sections) = artifact::read(FORMAT, buffer, SECTIONS).map_err(|e| saved(problem(&e)))?;
    let mut sections = Views { buffer, sections: sections.into_iter() };
    let vocab = Vocab::from_arrays(sections.next()?, sections.next()?, sections.next()?)?;
    let trie = Trie {
        byte: sections.next()?,
        depth: sections.next()?,
        end: sections.next()?,
        height: sections.next()?,
        token_before: sections.next()?,
        below: sections.next()?,
        utf8_below: sections.next()?,
        ids: sections.next()?,
        id_start: sections.next()?,
        known: KnownSets::default(),
        patterns: crate::lexer::KnownPatterns::default(),
        regions: crate::terminal_dwa::Regions::default(),
    };
    if (header.vocab, header.vocab_size) != (*vocab.fingerprint(), vocab.size() as u64) {
        return Err(saved("has another fingerprint than its header says".into()));
    }
    if !trie.is_of(&vocab) {
        return Err(saved("has a trie that is not the one of its tokens".into()));
    }
    let (ids, start, text) = (sections.next::<u32>()?, sections.next::<u32>()?, sections.next::<u8>()?);
    let markers = sections.next::<u32>()?.to_vec();
    let names = names(&ids, &start, &text, vocab.size());
    let text = std::str::from_utf8(&text).unwrap_or_default();
    match names.filter(|_| header.grammar == hash(&ids, &start, text, &markers)) {
        Some(names) if are_ids(&markers, vocab.size()) => Ok((vocab, trie, Named { names, markers })),
        Some(_) => Err(saved("has markers that are no ascending ids".into())),
        None => Err(saved("has names of tokens that contradict each other".into())),
    }
}

/// Whether these are ids of a vocabulary of this size, ascending.
fn are_ids(ids: &[u32], size: usize) -> bool {
    ids.windows(2).all(|pair| pair[0] < pair[1]) && ids.last().is_none_or(|&id| (id as usize) < size)
}

fn names(ids: &[u32], start: &[u32], text: &[u8], size: usize) -> Option<Names> {
    let text = std::str::from_utf8(text).ok()?;
    if start.len() != ids.len() + 1 || start[0] != 0 || start[ids.len()] as usize != text.len() {
        return None;
    }
    let name = |(range, &id): (&[u32], &u32)| {
        let name = text.get(range[0] as usize..range[1] as usize)?;
        ((id as usize) < size).then(|| (name.to_owned(), id))
    };
    let names: Names = start.windows(2).zip(ids).map(name).collect::<Option<_>>()?;
    names.windows(2).all(|pair| pair[0].0 < pair[1].0).then_some(names)
}

/// Views of the sections, one after the other.
struct Views<'b> {
    buffer: &'b Arc<Buffer>,
    sections: std::vec::IntoIter<Section>,
}

impl Views<'_> {
    fn next<T: bytemuck::AnyBitPattern>(&mut self) -> Result<Array<T>, VocabError> {
        let section = self.sections.next().unwrap_or_default();
        let view = (section.width as usize == size_of::<T>()).then(|| Array::new(self.buffer, section.range)).flatten();
        view.ok_or_else(|| saved("has a section without a whole number of elements".into()))
    }
}

fn saved(problem: String) -> VocabError {
    VocabError::Saved { problem }
}

/// An error of the layout, said of a vocabulary.
fn problem(error: &ArtifactError) -> String {
    match error {
        ArtifactError::Version { expected, found } => format!("has version {found}, this release reads {expected}"),
        ArtifactError::Length { expected, found } => {
            format!("is truncated or padded: expected {expected} bytes, found {found}")
        }
        ArtifactError::Damaged { section } => format!("is damaged: section {section:?} does not match its hash"),
        ArtifactError::Inconsistent { section, problem } => format!("is inconsistent: section {section:?}: {problem}"),
        ArtifactError::NotAnArtifact(reason) => format!("is of another kind: {reason}"),
        other => format!("cannot be used: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vocab {
        let texts: [&[u8]; 9] = [b"b", b"ab", b"", b"a", b"abc", b"ab", b"ca", "\u{e9}".as_bytes(), b"\xff"];
        Vocab::new(&texts, &[2]).unwrap()
    }

    fn saved(vocab: &Vocab) -> Vec<u8> {
        let names = vec![("<a>".into(), 2), ("<b>".into(), 0)];
        write(vocab, &Trie::new(vocab), &Named { names, markers: vec![0, 2] })
    }

    fn reread(bytes: &[u8]) -> Result<(Vocab, Trie, Named), VocabError> {
        read(&Arc::new(Buffer::from_bytes(bytes)))
    }

    #[test]
    fn what_was_written_is_read() {
        let vocab = sample();
        let bytes = saved(&vocab);
        let (again, trie, named) = reread(&bytes).unwrap();
        assert_eq!(again.fingerprint(), vocab.fingerprint());
        assert_eq!(again.arrays(), vocab.arrays());
        assert_eq!(write(&again, &trie, &named), bytes);
    }

    #[test]
    fn every_damaged_byte_and_every_length_is_noticed() {
        let vocab = sample();
        let bytes = saved(&vocab);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(reread(&damaged).is_err(), "byte {at}");
            assert!(reread(&bytes[..at]).is_err(), "cut off at {at}");
        }
    }

    /// A file whose hashes are right: only what the sections say can give it away.
    #[test]
    fn every_changed_element_is_noticed() {
        let vocab = sample();
        let bytes = saved(&vocab);
        let buffer = Buffer::from_bytes(&bytes);
        let (header, sections) = artifact::read(FORMAT, &buffer, SECTIONS).unwrap();
        let original: Vec<(Vec<u8>, u32)> =
            sections.iter().map(|s| (bytes[s.range.clone()].to_vec(), s.width)).collect();
        for section in 0..original.len() {
            for at in 0..original[section].0.len() {
                for change in [1u8, 0x80, 0xFF] {
                    let mut changed = original.clone();
                    changed[section].0[at] ^= change;
                    let file = artifact::write(FORMAT, &header, &changed);
                    assert!(reread(&file).is_err(), "{} byte {at}", SECTIONS[section]);
                }
            }
            for (lost, width) in [(original[section].1, original[section].1), (0, 3), (1, original[section].1)] {
                let mut changed = original.clone();
                let length = changed[section].0.len().saturating_sub(lost as usize);
                changed[section].0.truncate(length);
                changed[section].1 = width;
                if changed[section] != original[section] {
                    assert!(reread(&artifact::write(FORMAT, &header, &changed)).is_err(), "{}", SECTIONS[section]);
                }
            }
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let vocab = sample();
        let bytes = saved(&vocab);
        let mut other = bytes.clone();
        other[8] = 9;
        for (file, expected) in [
            (&b"glrgrid\0"[..], "is of another kind"),
            (&other[..], "has version 9, this release reads 3"),
            (&bytes[..200], "is truncated or padded"),
        ] {
            let error = reread(file).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("save it again"), "{error}");
        }
    }
}
