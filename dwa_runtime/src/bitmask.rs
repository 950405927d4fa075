//! Packed token sets: bit `t % 32` of word `t / 32` is token id `t`.

/// Words that hold `size` bits.
pub fn words_for(size: usize) -> usize {
    size.div_ceil(32)
}

/// `out |= row`.
#[inline]
pub(crate) fn or(out: &mut [u32], row: &[u32]) {
    for (o, r) in out.iter_mut().zip(row) {
        *o |= r;
    }
}

/// `out |= row & mask`.
#[inline]
pub(crate) fn or_masked(out: &mut [u32], row: &[u32], mask: &[u32]) {
    for ((o, r), m) in out.iter_mut().zip(row).zip(mask) {
        *o |= r & m;
    }
}

/// Set the listed bits.
#[inline]
pub(crate) fn or_sparse(out: &mut [u32], words: &[u16], bits: &[u32]) {
    for (w, b) in words.iter().zip(bits) {
        out[*w as usize] |= b;
    }
}

/// Clear the listed bits.
#[inline]
pub(crate) fn clear_sparse(out: &mut [u32], words: &[u16], bits: &[u32]) {
    for (w, b) in words.iter().zip(bits) {
        out[*w as usize] &= !b;
    }
}

/// Clear the bits of `row`.
#[inline]
pub(crate) fn clear(out: &mut [u32], row: &[u32]) {
    for (o, r) in out.iter_mut().zip(row) {
        *o &= !r;
    }
}
