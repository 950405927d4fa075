//! Relations over dense indices, sets of terminals as bit rows, and the closure of one under the other.
//!
//! Every grammar analysis here is the same computation: the smallest sets with `F(x) ⊇ base(x) ∪ F(y)` for all `x R y`.
//! [`close`] solves it in one pass over the strongly connected components, without recursion.

/// Stands for the empty set where a row of a [`BitMatrix`] is expected.
pub const EMPTY: u32 = u32::MAX;

/// A relation from `0..len` to indices, stored row after row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relation {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Relation {
    /// The relation holding `pairs`; a row keeps the order of its pairs.
    pub fn from_pairs(len: usize, pairs: &[(u32, u32)]) -> Self {
        Self::of(len, pairs.iter().copied())
    }

    /// The same the other way round: for each target the sources of `pairs`.
    pub fn sources(len: usize, pairs: &[(u32, u32)]) -> Self {
        Self::of(len, pairs.iter().map(|&(from, to)| (to, from)))
    }

    fn of(len: usize, pairs: impl ExactSizeIterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0u32; len + 1];
        for (from, _) in pairs.clone() {
            starts[from as usize + 1] += 1;
        }
        for i in 0..len {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; pairs.len()];
        for (from, to) in pairs {
            targets[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        Relation { starts, targets }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What `from` is related to.
    pub fn row(&self, from: usize) -> &[u32] {
        &self.targets[self.starts[from] as usize..self.starts[from + 1] as usize]
    }
}

/// Bit rows of one width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitMatrix {
    words: usize,
    rows: usize,
    bits: Vec<u64>,
}

impl BitMatrix {
    /// `rows` empty rows of at least `columns` bits.
    pub fn new(rows: usize, columns: usize) -> Self {
        let words = columns.div_ceil(64);
        BitMatrix { words, rows, bits: vec![0; rows * words] }
    }

    /// Words in a row.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// One row; bit `c % 64` of word `c / 64` is column `c`. The row [`EMPTY`] is not stored: ask [`Self::contains`].
    pub fn row(&self, row: u32) -> &[u64] {
        let start = row as usize * self.words;
        &self.bits[start..start + self.words]
    }

    fn row_mut(&mut self, row: u32) -> &mut [u64] {
        let start = row as usize * self.words;
        &mut self.bits[start..start + self.words]
    }

    /// Add a column to a row.
    pub fn insert(&mut self, row: u32, column: u32) {
        self.row_mut(row)[column as usize / 64] |= 1 << (column % 64);
    }

    /// Whether a row has a column.
    pub fn contains(&self, row: u32, column: u32) -> bool {
        row != EMPTY && self.row(row)[column as usize / 64] >> (column % 64) & 1 == 1
    }

    /// Add a new row and return its index.
    pub fn push(&mut self, row: &[u64]) -> u32 {
        debug_assert_eq!(row.len(), self.words);
        self.bits.extend_from_slice(row);
        self.rows += 1;
        (self.rows - 1) as u32
    }

    /// Add the bits of `other` to a row.
    pub fn unite_with(&mut self, row: u32, other: &[u64]) {
        unite(self.row_mut(row), other);
    }

    /// The row holding the union of `parts`: one of them if it is the union already, else a new one. Sorts `parts`.
    pub fn union_of(&mut self, parts: &mut Vec<u32>) -> u32 {
        parts.sort_unstable();
        parts.dedup();
        if parts.last() == Some(&EMPTY) {
            parts.pop();
        }
        match parts.as_slice() {
            [] => EMPTY,
            [only] => *only,
            [first, rest @ ..] => {
                let mut sum = self.row(*first).to_vec();
                for &part in rest {
                    unite(&mut sum, self.row(part));
                }
                match parts.iter().find(|&&part| self.row(part) == sum) {
                    Some(&part) => part,
                    None => self.push(&sum),
                }
            }
        }
    }
}

/// Add the bits of `from` to `to`.
pub fn unite(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to |= from;
    }
}

/// The columns of a bit row, ascending.
pub fn columns(row: &[u64]) -> impl Iterator<Item = u32> + '_ {
    row.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            Some(i as u32 * 64 + bit)
        })
    })
}

/// Strongly connected components, numbered so that what a component leads to has smaller numbers.
#[derive(Debug)]
pub struct Components {
    /// Component of each node.
    pub of: Vec<u32>,
    /// Nodes of each component.
    pub members: Relation,
}

/// The strongly connected components of a relation on one set.
///
/// Source: Tarjan, "Depth-first search and linear graph algorithms", 1972; with an explicit stack.
pub fn components(relation: &Relation) -> Components {
    const UNSEEN: u32 = u32::MAX;
    let len = relation.len();
    let mut low = vec![UNSEEN; len];
    let mut of = vec![UNSEEN; len];
    let mut open: Vec<u32> = Vec::new();
    let mut frames: Vec<(u32, u32, u32)> = Vec::new();
    let mut members: Vec<(u32, u32)> = Vec::with_capacity(len);
    let (mut seen, mut count) = (0, 0);
    for root in 0..len as u32 {
        if low[root as usize] != UNSEEN {
            continue;
        }
        frames.push((root, seen, 0));
        low[root as usize] = seen;
        seen += 1;
        open.push(root);
        while let Some((node, order, edge)) = frames.last_mut() {
            crate::control::check();
            let n = *node as usize;
            if let Some(&next) = relation.row(n).get(*edge as usize) {
                let next_index = next as usize;
                if low[next_index] == UNSEEN {
                    low[next_index] = seen;
                    open.push(next);
                    frames.push((next, seen, 0));
                    seen += 1;
                } else {
                    if of[next_index] == UNSEEN {
                        low[n] = low[n].min(low[next_index]);
                    }
                    *edge += 1;
                }
                continue;
            }
            if low[n] == *order {
                while let Some(member) = open.pop() {
                    of[member as usize] = count;
                    members.push((count, member));
                    if member as usize == n {
                        break;
                    }
                }
                count += 1;
            }
            frames.pop();
        }
    }
    Components { of, members: Relation::from_pairs(count as usize, &members) }
}

/// For each node `x` the row of the smallest set with `F(x) ⊇ base(x) ∪ F(y)` for all `x R y`.
///
/// Nodes with equal sets mostly share a row; new rows are appended to `sets`.
/// Cost: one union per edge between components.
/// Source: DeRemer and Pennello, "Efficient computation of LALR(1) look-ahead sets", 1982, algorithm Digraph.
pub fn close(relation: &Relation, base: &[u32], sets: &mut BitMatrix) -> Vec<u32> {
    let Components { of, members } = components(relation);
    let mut result = vec![EMPTY; base.len()];
    let mut parts = Vec::new();
    for component in 0..members.len() {
        parts.clear();
        for &node in members.row(component) {
            parts.push(base[node as usize]);
            let next = relation.row(node as usize).iter();
            parts.extend(next.filter(|&&y| of[y as usize] as usize != component).map(|&y| result[y as usize]));
        }
        let set = sets.union_of(&mut parts);
        for &node in members.row(component) {
            result[node as usize] = set;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn closure_is_reachability(pairs in prop::collection::vec((0u32..9, 0u32..9), 0..25)) {
            let relation = Relation::from_pairs(9, &pairs);
            let mut reach = [[false; 9]; 9];
            (0..9).for_each(|i| reach[i][i] = true);
            pairs.iter().for_each(|&(a, b)| reach[a as usize][b as usize] = true);
            for (k, i, j) in (0..729).map(|n| (n / 81, n / 9 % 9, n % 9)) {
                reach[i][j] |= reach[i][k] && reach[k][j];
            }
            let mut sets = BitMatrix::new(9, 9);
            (0..9).for_each(|i| sets.insert(i, i));
            let rows = close(&relation, &(0..9).collect::<Vec<_>>(), &mut sets);
            let parts = components(&relation);
            for (i, j) in (0..81).map(|n| (n / 9, n % 9)) {
                prop_assert_eq!(sets.contains(rows[i], j as u32), reach[i][j]);
                prop_assert_eq!(parts.of[i] == parts.of[j], reach[i][j] && reach[j][i]);
                prop_assert!(!reach[i][j] || parts.of[i] >= parts.of[j]);
            }
        }
    }

    #[test]
    fn a_long_chain_needs_no_call_stack() {
        let pairs: Vec<_> = (0..1_000_000).map(|i| (i, i + 1)).collect();
        assert_eq!(components(&Relation::from_pairs(1_000_001, &pairs)).members.len(), 1_000_001);
    }
}
