//! A vocabulary: token ids and their bytes.

use crate::bitmask::words_for;
use crate::error::VocabError;
use std::sync::OnceLock;

/// Bitmask words are addressed with 16 bits.
const MAX_SIZE: usize = 32 << 16;
const MAX_TOKEN_BYTES: usize = 1 << 16;

/// Token ids and their bytes, with a content fingerprint.
///
/// Ids without bytes (special tokens, padding) are never part of a mask, end ids apart. Ids with equal bytes always get
/// the same bit.
#[derive(Debug)]
pub struct Vocab {
    starts: Vec<u32>,
    bytes: Vec<u8>,
    eos_ids: Vec<u32>,
    fingerprint: [u8; 32],
    first_byte_rows: OnceLock<Vec<Box<[u32]>>>,
}

impl Vocab {
    /// A vocabulary of `tokens.len()` ids; a token without bytes is empty.
    ///
    /// # Errors
    /// [`VocabError`] if it is empty or too large, or an end id is out of range.
    pub fn new<T: AsRef<[u8]>>(tokens: &[T], eos_ids: &[u32]) -> Result<Self, VocabError> {
        if tokens.is_empty() {
            return Err(VocabError::Empty);
        }
        if tokens.len() > MAX_SIZE {
            return Err(VocabError::TooLarge { size: tokens.len(), max: MAX_SIZE });
        }
        let mut eos_ids = eos_ids.to_vec();
        eos_ids.sort_unstable();
        eos_ids.dedup();
        if let Some(&id) = eos_ids.iter().find(|&&id| id as usize >= tokens.len()) {
            return Err(VocabError::EosRange { id, max: tokens.len() - 1 });
        }
        let mut starts = Vec::with_capacity(tokens.len() + 1);
        let mut bytes = Vec::with_capacity(tokens.iter().map(|t| t.as_ref().len()).sum());
        starts.push(0);
        for (id, token) in tokens.iter().enumerate() {
            let token = token.as_ref();
            if token.len() > MAX_TOKEN_BYTES {
                return Err(VocabError::TokenTooLong { id, length: token.len(), max: MAX_TOKEN_BYTES });
            }
            // An end token ends the output; it never spells text.
            if eos_ids.binary_search(&(id as u32)).is_err() {
                bytes.extend_from_slice(token);
            }
            starts.push(bytes.len() as u32);
        }
        let mut hash = blake3::Hasher::new();
        hash.update(b"glrgrid vocabulary 1");
        hash.update(bytemuck::cast_slice(&starts));
        hash.update(&bytes);
        hash.update(bytemuck::cast_slice(&eos_ids));
        let fingerprint = *hash.finalize().as_bytes();
        Ok(Vocab { starts, bytes, eos_ids, fingerprint, first_byte_rows: OnceLock::new() })
    }

    /// Number of ids, which is the width of the logits.
    pub fn size(&self) -> usize {
        self.starts.len() - 1
    }

    /// Words of a bitmask row.
    pub fn words(&self) -> usize {
        words_for(self.size())
    }

    /// Bytes of a token; empty for ids without bytes.
    ///
    /// # Panics
    /// If `id` is out of range.
    #[inline]
    pub fn token(&self, id: u32) -> &[u8] {
        &self.bytes[self.starts[id as usize] as usize..self.starts[id as usize + 1] as usize]
    }

    /// Ids that end the output, ascending.
    pub fn eos_ids(&self) -> &[u32] {
        &self.eos_ids
    }

    /// Whether `id` ends the output.
    pub fn is_eos(&self, id: u32) -> bool {
        self.eos_ids.binary_search(&id).is_ok()
    }

    /// BLAKE3 of ids, bytes and end ids.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// The fingerprint in hexadecimal.
    pub fn fingerprint_hex(&self) -> String {
        blake3::Hash::from_bytes(self.fingerprint).to_hex().to_string()
    }

    /// The set of ids whose first byte is in `set` (256 bits).
    pub fn first_byte_row(&self, set: &[u64; 4]) -> Box<[u32]> {
        let rows = self.first_byte_rows.get_or_init(|| {
            let mut rows = vec![vec![0u32; self.words()].into_boxed_slice(); 256];
            for id in 0..self.size() {
                if let Some(&b) = self.token(id as u32).first() {
                    rows[b as usize][id / 32] |= 1 << (id % 32);
                }
            }
            rows
        });
        let mut out = vec![0u32; self.words()].into_boxed_slice();
        for b in 0..256 {
            if set[b / 64] >> (b % 64) & 1 == 1 {
                crate::bitmask::or(&mut out, &rows[b]);
            }
        }
        out
    }
}
