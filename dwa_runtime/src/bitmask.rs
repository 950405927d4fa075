//! Packed token sets: bit `t % 32` of word `t / 32` is token id `t`.

/// Words that hold `size` bits.
pub fn words_for(size: usize) -> usize {
    size.div_ceil(32)
}

/// A set of tokens: all words of a row, or some words and their numbers.
#[derive(Clone, Copy)]
pub(crate) enum Tokens<'t> {
    Dense(&'t [u32]),
    Sparse(&'t [u16], &'t [u32]),
}

impl Tokens<'_> {
    /// `out |= self`.
    #[inline]
    pub(crate) fn or_into(self, out: &mut [u32]) {
        match self {
            Tokens::Dense(row) => out.iter_mut().zip(row).for_each(|(o, r)| *o |= r),
            Tokens::Sparse(words, bits) => words.iter().zip(bits).for_each(|(w, b)| out[*w as usize] |= b),
        }
    }

    /// `out |= self & mask`, or all of it.
    #[inline]
    pub(crate) fn or_into_where(self, out: &mut [u32], mask: Option<&[u32]>) {
        match (self, mask) {
            (_, None) => self.or_into(out),
            (Tokens::Dense(row), Some(mask)) => {
                out.iter_mut().zip(row).zip(mask).for_each(|((o, r), m)| *o |= r & m);
            }
            (Tokens::Sparse(words, bits), Some(mask)) => {
                words.iter().zip(bits).for_each(|(w, b)| out[*w as usize] |= b & mask[*w as usize]);
            }
        }
    }

    /// `out &= !self`.
    #[inline]
    pub(crate) fn clear_from(self, out: &mut [u32]) {
        match self {
            Tokens::Dense(row) => out.iter_mut().zip(row).for_each(|(o, r)| *o &= !r),
            Tokens::Sparse(words, bits) => words.iter().zip(bits).for_each(|(w, b)| out[*w as usize] &= !b),
        }
    }

    /// `out ^= self`.
    #[inline]
    pub(crate) fn toggle_in(self, out: &mut [u32]) {
        match self {
            Tokens::Dense(row) => out.iter_mut().zip(row).for_each(|(o, r)| *o ^= r),
            Tokens::Sparse(words, bits) => words.iter().zip(bits).for_each(|(w, b)| out[*w as usize] ^= b),
        }
    }

    /// About how long any of these take, in sparse words.
    pub(crate) fn cost(self) -> usize {
        match self {
            Tokens::Dense(row) => row.len() / 8,
            Tokens::Sparse(words, _) => words.len(),
        }
    }
}
