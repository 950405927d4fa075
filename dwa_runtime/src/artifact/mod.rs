//! The artifact: one file of plain little-endian arrays.
//!
//! Layout (the only definition)
//!
//! | bytes | contents |
//! |---|---|
//! | 0..8 | magic `glrgrid\0` |
//! | 8..12 | format version, u32 |
//! | 12..16 | number of sections, u32 |
//! | 16..24 | file length, u64 |
//! | 24..56 | fingerprint of the vocabulary |
//! | 56..88 | fingerprint of grammar and options |
//! | 88..96 | ids in the vocabulary, u64 |
//! | 96..128 | BLAKE3 of the header above (with these bytes zero) and the section table |
//! | 128.. | section table: offset u64, length in bytes u64, bytes per element u32, zero u32, BLAKE3 of the contents |
//! | then | sections in table order, each aligned to 64 bytes, gaps zero |
//!
//! Sections are the fields of [`crate::TableData`] in order of declaration. Nothing is decoded on load: a section is used
//! where it lies. Changing a section's meaning or order bumps [`FORMAT_VERSION`].

mod array;
mod check;

pub use array::{Array, Buffer, Ids, NONE};
pub(crate) use check::check;

use crate::error::ArtifactError;

/// First bytes of every artifact.
pub const MAGIC: &[u8; 8] = b"glrgrid\0";
/// What an artifact's first bytes say. Other files of the same layout have others.
pub const FORMAT: Format = Format { magic: *MAGIC, version: FORMAT_VERSION };
/// Version of the layout and of every section's meaning.
pub const FORMAT_VERSION: u32 = 4;
const HEADER: usize = 128;
const ENTRY: usize = 56;
const ALIGN: usize = 64;

/// The kind of file that a header announces.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// First bytes.
    pub magic: [u8; 8],
    /// Version of the layout and of every section's meaning.
    pub version: u32,
}

/// What the header says besides the sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Fingerprint of the vocabulary.
    pub vocab: [u8; 32],
    /// Ids in the vocabulary.
    pub vocab_size: u64,
    /// Fingerprint of the grammar and the options that shape the tables.
    pub grammar: [u8; 32],
}

/// Where a section lies, and how wide its elements are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// Byte range in the file.
    pub range: std::ops::Range<usize>,
    /// Bytes per element.
    pub width: u32,
}

/// Lay out sections, given as bytes and bytes per element, as a file.
pub fn write(format: Format, header: &Header, sections: &[(Vec<u8>, u32)]) -> Vec<u8> {
    let table_end = HEADER + ENTRY * sections.len();
    let mut out = vec![0u8; table_end];
    for (i, (data, width)) in sections.iter().enumerate() {
        out.resize(out.len().next_multiple_of(ALIGN), 0);
        let entry = HEADER + ENTRY * i;
        let offset = out.len() as u64;
        out[entry..entry + 8].copy_from_slice(&offset.to_le_bytes());
        out[entry + 8..entry + 16].copy_from_slice(&(data.len() as u64).to_le_bytes());
        out[entry + 16..entry + 20].copy_from_slice(&width.to_le_bytes());
        out[entry + 24..entry + 56].copy_from_slice(blake3::hash(data).as_bytes());
        out.extend_from_slice(data);
    }
    let length = out.len() as u64;
    out[0..8].copy_from_slice(&format.magic);
    out[8..12].copy_from_slice(&format.version.to_le_bytes());
    out[12..16].copy_from_slice(&(sections.len() as u32).to_le_bytes());
    out[16..24].copy_from_slice(&length.to_le_bytes());
    out[24..56].copy_from_slice(&header.vocab);
    out[56..88].copy_from_slice(&header.grammar);
    out[88..96].copy_from_slice(&header.vocab_size.to_le_bytes());
    let hash = blake3::hash(&out[..table_end]);
    out[96..128].copy_from_slice(hash.as_bytes());
    out
}

/// Check magic, version, lengths and every hash; return the header and the sections.
///
/// # Errors
/// [`ArtifactError`], naming what differs.
pub fn read(format: Format, buffer: &Buffer, names: &[&'static str]) -> Result<(Header, Vec<Section>), ArtifactError> {
    let bytes = buffer.bytes();
    if bytes.len() < 8 || bytes[..8] != format.magic {
        return Err(ArtifactError::NotAnArtifact("it does not start with the right bytes"));
    }
    let too_short = |expected: usize| ArtifactError::Length { expected: expected as u64, found: bytes.len() as u64 };
    if bytes.len() < HEADER {
        return Err(too_short(HEADER));
    }
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let hash_at = |at: usize| -> [u8; 32] { bytes[at..at + 32].try_into().unwrap_or_default() };
    let version = u32_at(8);
    if version != format.version {
        return Err(ArtifactError::Version { expected: format.version, found: version });
    }
    if u64_at(16) != bytes.len() as u64 {
        return Err(ArtifactError::Length { expected: u64_at(16), found: bytes.len() as u64 });
    }
    if u32_at(12) as usize != names.len() {
        return Err(ArtifactError::NotAnArtifact("it has another number of sections"));
    }
    let table_end = HEADER + ENTRY * names.len();
    if bytes.len() < table_end {
        return Err(too_short(table_end));
    }
    let mut head = bytes[..table_end].to_vec();
    head[96..128].fill(0);
    if blake3::hash(&head).as_bytes() != &hash_at(96) {
        return Err(ArtifactError::Damaged { section: "header" });
    }
    let mut sections = Vec::with_capacity(names.len());
    let mut end_of_last = table_end;
    for (i, section) in names.iter().enumerate() {
        let entry = HEADER + ENTRY * i;
        let inconsistent = |problem: &str| ArtifactError::Inconsistent { section, problem: problem.to_string() };
        let offset = usize::try_from(u64_at(entry)).map_err(|_| inconsistent("offset too large"))?;
        let length = usize::try_from(u64_at(entry + 8)).map_err(|_| inconsistent("length too large"))?;
        let end = offset.checked_add(length).ok_or_else(|| inconsistent("length too large"))?;
        if offset != end_of_last.next_multiple_of(ALIGN) || end > bytes.len() {
            return Err(inconsistent("it does not lie where it must"));
        }
        if bytes[end_of_last..offset].iter().any(|&b| b != 0) {
            return Err(ArtifactError::Damaged { section });
        }
        if blake3::hash(&bytes[offset..end]).as_bytes() != &hash_at(entry + 24) {
            return Err(ArtifactError::Damaged { section });
        }
        sections.push(Section { range: offset..end, width: u32_at(entry + 16) });
        end_of_last = end;
    }
    if end_of_last != bytes.len() {
        return Err(ArtifactError::Length { expected: end_of_last as u64, found: bytes.len() as u64 });
    }
    Ok((Header { vocab: hash_at(24), vocab_size: u64_at(88), grammar: hash_at(56) }, sections))
}
