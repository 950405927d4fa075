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

/// A row that sets of tokens are united into. What comes first is copied, so the row need not be cleared before.
pub(crate) struct Union<'r> {
    row: &'r mut [u32],
    /// Whether the row holds what was united, and not just anything.
    begun: bool,
}

impl<'r> Union<'r> {
    /// Of nothing so far.
    pub(crate) fn new(row: &'r mut [u32]) -> Self {
        Union { row, begun: false }
    }

    /// Words of the row.
    pub(crate) fn words(&self) -> usize {
        self.row.len()
    }

    /// Unite tokens, or those of them that are in `mask`.
    #[inline]
    pub(crate) fn add(&mut self, tokens: Tokens<'_>, mask: Option<&[u32]>) {
        match (tokens, mask) {
            (Tokens::Dense(row), None) if !self.begun => self.row.copy_from_slice(row),
            (Tokens::Dense(row), Some(mask)) if !self.begun => {
                self.row.iter_mut().zip(row).zip(mask).for_each(|((o, r), m)| *o = r & m);
            }
            (Tokens::Dense(row), Some(mask)) => {
                self.row.iter_mut().zip(row).zip(mask).for_each(|((o, r), m)| *o |= r & m);
            }
            (Tokens::Sparse(words, bits), Some(mask)) => {
                let row = self.row();
                words.iter().zip(bits).for_each(|(w, b)| row[*w as usize] |= b & mask[*w as usize]);
            }
            (_, None) => tokens.or_into(self.row()),
        }
        self.begun = true;
    }

    /// The row as it is.
    #[inline]
    pub(crate) fn row(&mut self) -> &mut [u32] {
        if !std::mem::replace(&mut self.begun, true) {
            self.row.fill(0);
        }
        self.row
    }
}
