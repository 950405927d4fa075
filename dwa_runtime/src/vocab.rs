//! A vocabulary: token ids and their bytes.

use crate::artifact::Array;
use crate::bitmask::words_for;
use crate::error::VocabError;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Bitmask words are addressed with 16 bits.
const MAX_SIZE: usize = 32 << 16;
const MAX_TOKEN_BYTES: usize = 1 << 16;

/// Token ids and their bytes, with a content fingerprint.
///
/// Ids without bytes (special tokens, padding) are never part of a mask, end ids apart. Ids with equal bytes always get
/// the same bit.
#[derive(Debug)]
pub struct Vocab {
    starts: Array<u32>,
    bytes: Array<u8>,
    eos_ids: Array<u32>,
    fingerprint: [u8; 32],
    longest: usize,
    first_bytes: OnceLock<FirstBytes>,
    first_byte_rows: Mutex<FxHashMap<[u64; 4], Arc<[u32]>>>,
}

impl Vocab {
    /// A vocabulary of `tokens.len()` ids; a token without bytes is empty.
    ///
    /// # Errors
    /// [`VocabError`] if it is empty or too large, or an end id is out of range.
    pub fn new<T: AsRef<[u8]>>(tokens: &[T], eos_ids: &[u32]) -> Result<Self, VocabError> {
        let mut eos_ids = eos_ids.to_vec();
        eos_ids.sort_unstable();
        eos_ids.dedup();
        // An end token ends the output; it never spells text.
        let spelled = |id: usize| match eos_ids.binary_search(&(id as u32)) {
            Ok(_) => &[],
            Err(_) => tokens[id].as_ref(),
        };
        let total = (0..tokens.len()).map(|id| spelled(id).len()).sum();
        if total > u32::MAX as usize {
            return Err(VocabError::TooManyBytes { bytes: total, max: u32::MAX as usize });
        }
        let mut starts = Vec::with_capacity(tokens.len() + 1);
        let mut bytes = Vec::with_capacity(total);
        starts.push(0);
        for id in 0..tokens.len() {
            bytes.extend_from_slice(spelled(id));
            starts.push(bytes.len() as u32);
        }
        Self::from_arrays(starts.into(), bytes.into(), eos_ids.into())
    }

    /// A vocabulary as [`arrays`](Self::arrays) gives it.
    ///
    /// # Errors
    /// [`VocabError`] as for [`new`](Self::new), and if the arrays contradict each other.
    pub fn from_arrays(starts: Array<u32>, bytes: Array<u8>, eos_ids: Array<u32>) -> Result<Self, VocabError> {
        let inconsistent = |problem: &str| Err(VocabError::Saved { problem: problem.into() });
        if starts.first() != Some(&0) || *starts.last().unwrap_or(&0) as usize != bytes.len() || !starts.is_sorted() {
            return inconsistent("has tokens that overlap or lie outside of the file");
        }
        let size = starts.len() - 1;
        if size == 0 {
            return Err(VocabError::Empty);
        }
        if size > MAX_SIZE {
            return Err(VocabError::TooLarge { size, max: MAX_SIZE });
        }
        let length = |id: usize| (starts[id + 1] - starts[id]) as usize;
        if let Some(id) = (0..size).find(|&id| length(id) > MAX_TOKEN_BYTES) {
            return Err(VocabError::TokenTooLong { id, length: length(id), max: MAX_TOKEN_BYTES });
        }
        if let Some(&id) = eos_ids.iter().find(|&&id| id as usize >= size) {
            return Err(VocabError::EosRange { id, max: size - 1 });
        }
        if eos_ids.windows(2).any(|pair| pair[0] >= pair[1]) || eos_ids.iter().any(|&id| length(id as usize) > 0) {
            return inconsistent("has end ids that are out of order or spell text");
        }
        let mut hash = blake3::Hasher::new();
        hash.update(b"glrgrid vocabulary 1");
        hash.update(bytemuck::cast_slice(&starts));
        hash.update(&bytes);
        hash.update(bytemuck::cast_slice(&eos_ids));
        let fingerprint = *hash.finalize().as_bytes();
        let longest = (0..size).map(length).max().unwrap_or(0);
        Ok(Vocab {
            longest,
            starts,
            bytes,
            eos_ids,
            fingerprint,
            first_bytes: OnceLock::new(),
            first_byte_rows: Mutex::default(),
        })
    }

    /// Boundaries of tokens in their bytes, the bytes, and the end ids.
    pub fn arrays(&self) -> (&[u32], &[u8], &[u32]) {
        (&self.starts, &self.bytes, &self.eos_ids)
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

    /// Bytes of the longest token.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Ids that end the output, ascending.
    pub fn eos_ids(&self) -> &[u32] {
        &self.eos_ids
    }

    /// Whether `id` ends the output.
    pub fn is_eos(&self, id: u32) -> bool {
        self.eos_ids.binary_search(&id).is_ok()
    }

    /// Byte values that no token of one byte spells, ascending.
    pub fn missing_bytes(&self) -> Vec<u8> {
        let mut spelled = [false; 256];
        for id in 0..self.size() as u32 {
            if let [byte] = self.token(id) {
                spelled[*byte as usize] = true;
            }
        }
        (0..=255).filter(|&byte| !spelled[byte as usize]).collect()
    }

    /// BLAKE3 of ids, bytes and end ids.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// The fingerprint in hexadecimal.
    pub fn fingerprint_hex(&self) -> String {
        blake3::Hash::from_bytes(self.fingerprint).to_hex().to_string()
    }

    /// The set of ids whose first byte is in `set` (256 bits). Rows are kept, so that the next grammar finds them.
    pub(crate) fn first_byte_row(&self, set: &[u64; 4]) -> Arc<[u32]> {
        let mut rows = self.first_byte_rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(rows.entry(*set).or_insert_with(|| {
            let has = |b: usize| set[b / 64] >> (b % 64) & 1 == 1;
            let index = self.first_bytes.get_or_init(|| FirstBytes::new(self));
            // Add the bytes in the set to nothing, or take the others away from all, whichever is less work.
            let total: usize = (0..256).filter(|&b| has(b)).map(|b| index.of(b).len()).sum();
            let add = total * 2 <= index.entries.len();
            let mut row = if add { vec![0u32; self.words()] } else { index.all.clone() };
            for b in (0..256).filter(|&b| has(b) == add) {
                for &(word, bits) in index.of(b) {
                    row[word as usize] ^= bits;
                }
            }
            row.into()
        }))
    }
}

/// Which ids start with each byte, as bits of bitmask words.
#[derive(Debug)]
struct FirstBytes {
    entries: Vec<(u16, u32)>,
    starts: Vec<usize>,
    all: Vec<u32>,
}

impl FirstBytes {
    fn new(vocab: &Vocab) -> Self {
        let mut by_byte: Vec<Vec<(u16, u32)>> = vec![Vec::new(); 256];
        let mut all = vec![0; vocab.words()];
        for id in 0..vocab.size() as u32 {
            let Some(&b) = vocab.token(id).first() else { continue };
            let (word, bit) = ((id / 32) as u16, 1 << (id % 32));
            all[word as usize] |= bit;
            match by_byte[b as usize].last_mut() {
                Some((last, bits)) if *last == word => *bits |= bit,
                _ => by_byte[b as usize].push((word, bit)),
            }
        }
        let mut starts = vec![0];
        let mut entries = Vec::with_capacity(by_byte.iter().map(Vec::len).sum());
        for list in by_byte {
            entries.extend(list);
            starts.push(entries.len());
        }
        FirstBytes { entries, starts, all }
    }

    fn of(&self, byte: usize) -> &[(u16, u32)] {
        &self.entries[self.starts[byte]..self.starts[byte + 1]]
    }
}
