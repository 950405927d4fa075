//! Sets that edges of a graph hand on.

use crate::bits;
use crate::grammar::relation::Relation;

/// Least sets that contain `sets` and, along every edge (from, to), what the target's set contains.
pub(super) fn propagate(mut sets: bits::Matrix, edges: &[(u32, u32)]) -> bits::Matrix {
    let sources = Relation::sources(sets.len(), edges);
    // The last ones first: states are numbered as texts meet them, so most edges lead on.
    let mut queue: Vec<u32> = (0..sets.len() as u32).collect();
    let mut queued = vec![true; sets.len()];
    while let Some(to) = queue.pop() {
        queued[to as usize] = false;
        if bits::is_empty(&sets[to as usize]) {
            continue;
        }
        for &from in sources.row(to as usize) {
            if sets.unite(from as usize, to as usize) && !std::mem::replace(&mut queued[from as usize], true) {
                queue.push(from);
            }
        }
    }
    sets
}
