//! Small bit sets as word slices.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Words that hold `n` bits.
pub(crate) fn words(n: usize) -> usize {
    n.div_ceil(64)
}

pub(crate) fn has(set: &[u64], bit: u32) -> bool {
    set[bit as usize / 64] >> (bit % 64) & 1 == 1
}

pub(crate) fn insert(set: &mut [u64], bit: u32) {
    set[bit as usize / 64] |= 1 << (bit % 64);
}

pub(crate) fn remove(set: &mut [u64], bit: u32) {
    set[bit as usize / 64] &= !(1 << (bit % 64));
}

/// `a |= b`; whether `a` grew.
pub(crate) fn unite(a: &mut [u64], b: &[u64]) -> bool {
    let mut grew = 0;
    for (x, y) in a.iter_mut().zip(b) {
        grew |= y & !*x;
        *x |= y;
    }
    grew != 0
}

pub(crate) fn meets(a: &[u64], b: &[u64]) -> bool {
    a.iter().zip(b).any(|(x, y)| x & y != 0)
}

pub(crate) fn is_empty(a: &[u64]) -> bool {
    a.iter().all(|&x| x == 0)
}

/// Where two rows of numbers differ.
pub(crate) type Places = SmallVec<[u32; 8]>;

/// Whether two rows of numbers differ in at most so many places.
pub(crate) fn differ_at_most(a: &[u32], b: &[u32], most: u32) -> bool {
    let different = |(a, b): (&[u32], &[u32])| a.iter().zip(b).map(|(a, b)| u32::from(a != b)).sum::<u32>();
    let (mut a, mut b, mut found) = (a.chunks_exact(16), b.chunks_exact(16), 0);
    for pair in a.by_ref().zip(b.by_ref()) {
        found += different(pair);
        if found > most {
            return false;
        }
    }
    found + different((a.remainder(), b.remainder())) <= most
}

/// Where two rows of numbers differ.
pub(crate) fn differing(a: &[u32], b: &[u32]) -> Places {
    let mut places = Places::new();
    for (start, (a, b)) in (0..).step_by(8).zip(a.chunks(8).zip(b.chunks(8))) {
        let bits = (0..).zip(a.iter().zip(b)).map(|(at, (a, b))| u64::from(a != b) << at);
        iter(&[bits.sum()]).for_each(|at| places.push(start + at));
    }
    places
}

/// Members, ascending.
pub(crate) fn iter(set: &[u64]) -> impl Iterator<Item = u32> + '_ {
    set.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                i as u32 * 64 + bit
            })
        })
    })
}

/// Bit sets of one width, by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matrix {
    width: usize,
    words: Vec<u64>,
}

impl Matrix {
    /// So many empty sets of `width` words.
    pub(crate) fn new(width: usize, count: usize) -> Self {
        Matrix { width, words: vec![0; width * count] }
    }

    /// Number of sets.
    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.width
    }

    /// Add a set.
    pub(crate) fn push(&mut self, set: &[u64]) {
        self.words.extend_from_slice(set);
    }

    /// The sets from one on.
    pub(crate) fn split_off(mut self, at: usize) -> Self {
        Matrix { width: self.width, words: self.words.split_off(at * self.width) }
    }

    /// Unite a set with another one of this matrix; whether it grew.
    pub(crate) fn unite(&mut self, into: usize, from: usize) -> bool {
        let (into, from) = (into * self.width, from * self.width);
        let mut grew = 0;
        for i in 0..self.width {
            let more = self.words[from + i];
            grew |= more & !self.words[into + i];
            self.words[into + i] |= more;
        }
        grew != 0
    }
}

impl std::ops::Index<usize> for Matrix {
    type Output = [u64];

    fn index(&self, row: usize) -> &[u64] {
        &self.words[row * self.width..][..self.width]
    }
}

impl std::ops::IndexMut<usize> for Matrix {
    fn index_mut(&mut self, row: usize) -> &mut [u64] {
        &mut self.words[row * self.width..][..self.width]
    }
}

/// Bit sets of one width, each stored once.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    width: usize,
    sets: Vec<u64>,
    ids: FxHashMap<Box<[u64]>, u32>,
}

impl Pool {
    /// Sets of `width` words.
    pub(crate) fn new(width: usize) -> Self {
        Pool { width, sets: Vec::new(), ids: FxHashMap::default() }
    }

    pub(crate) fn intern(&mut self, set: &[u64]) -> u32 {
        if let Some(&id) = self.ids.get(set) {
            return id;
        }
        let id = self.ids.len() as u32;
        self.sets.extend_from_slice(set);
        self.ids.insert(set.into(), id);
        id
    }

    pub(crate) fn get(&self, id: u32) -> &[u64] {
        &self.sets[id as usize * self.width..][..self.width]
    }

    pub(crate) fn into_words(self) -> Vec<u64> {
        self.sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_differ_where_their_numbers_do() {
        let row: Vec<u32> = (0..45).collect();
        let changed = |places: &[u32]| {
            let mut other = row.clone();
            places.iter().for_each(|&at| other[at as usize] += 100);
            other
        };
        for places in [&[][..], &[0], &[7, 8], &[15, 16, 31, 32], &[0, 43, 44], &[1, 2, 3, 4, 5, 6, 9, 20, 40, 44]] {
            let (other, count) = (changed(places), places.len() as u32);
            assert_eq!(differing(&row, &other)[..], *places);
            assert!(differ_at_most(&row, &other, count));
            assert!(count == 0 || !differ_at_most(&row, &other, count - 1));
        }
    }

    #[test]
    fn sets_of_a_matrix_are_united() {
        let mut sets = Matrix::new(2, 3);
        insert(&mut sets[0], 3);
        insert(&mut sets[2], 3);
        insert(&mut sets[2], 70);
        assert_eq!(
            (sets.unite(0, 2), sets.unite(0, 2), sets.unite(0, 0), sets.unite(1, 0)),
            (true, false, false, true)
        );
        assert_eq!(iter(&sets[1]).collect::<Vec<_>>(), [3, 70]);
    }
}
