//! How many copies of a repeated part a token completes at most.

use super::DEAD;
use super::determinize::Dfa;
use crate::vocab::Trie;

/// Most copies of what `body` matches that end inside of one token, wherever in a copy it begins.
///
/// The vocabulary's trie is walked with the most that can have been completed for each state of `body`; where no token
/// below can have more than is known, it is not entered.
pub(crate) fn reach(trie: &Trie, body: &Dfa) -> u32 {
    let longest = trie.height[0];
    if !body.moves.is_empty() {
        // Copies inside of copies.
        return longest;
    }
    let shortest = shortest(body);
    let most_below = |height: u32| if height == 0 { 0 } else { 1 + (height - 1) / shortest };
    let states = body.state_count();
    let mut levels: Vec<Vec<u32>> = vec![vec![0; states]; longest as usize + 1];
    let mut most = 0;
    for child in trie.first_bytes() {
        let (mut node, end) = (child, trie.end[child as usize]);
        while node < end {
            crate::control::check();
            let depth = trie.depth[node as usize] as usize;
            let class = usize::from(body.byte_class[usize::from(trie.byte[node as usize])]);
            let (above, here) = levels.split_at_mut(depth);
            let (above, here) = (&above[depth - 1], &mut here[0]);
            here.fill(0);
            for (q, &completed) in above.iter().enumerate() {
                let to = body.row(q)[class];
                if to == DEAD {
                    continue;
                }
                here[to as usize] = here[to as usize].max(completed);
                if body.cand[to as usize] != 0 {
                    here[0] = here[0].max(completed + 1);
                }
            }
            let completed = here.iter().copied().max().unwrap_or(0);
            most = most.max(completed);
            let below = completed + most_below(trie.height[node as usize]);
            node = if below > most { node + 1 } else { trie.end[node as usize] };
        }
    }
    most
}

/// Bytes of the shortest text that is matched, at least 1.
fn shortest(body: &Dfa) -> u32 {
    let mut reached = vec![false; body.state_count()];
    let mut now = vec![0];
    let mut length = 0;
    while !now.is_empty() {
        length += 1;
        let mut next = Vec::new();
        for q in now {
            for to in body.targets(q as usize) {
                if body.cand[to as usize] != 0 {
                    return length;
                }
                if !std::mem::replace(&mut reached[to as usize], true) {
                    next.push(to);
                }
            }
        }
        now = next;
    }
    1
}
