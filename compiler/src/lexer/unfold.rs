//! Counters, unfolded as far as a token can see.
//!
//! In a [`WatchedLexer`] that counts, a state stands for as many as its counters have values. A token completes so many
//! copies at most (the *reach* of a chain), so states with more copies left than that do the same under every token: they stay
//! one, a *far* state, which steps never leave for lack of copies. With fewer left there is a state for each value. The
//! result is a lexer like any other to what makes recipes; only [`Far`], beside it, knows what the far states stand for.
//!
//! While a text is read, a far state has the values of its counters with it, as one number: its *id*. Ids come after the
//! numbers of all states; those of one far state are in a row, mixed from its counters, the first of which varies fastest.

use super::counters::{COPIES_FAR, Moves, chain_of, far_layer, top_of};
use super::watched::{Entry, WatchedError, WatchedLexer};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// In place of a counter's value: more than its reach.
const FAR: u32 = u32::MAX;
/// In [`FarState`]: a value that the counter cannot have there.
const NONE: u32 = u32::MAX;
/// Largest number of ids.
const MAX_IDS: u64 = 1 << 30;
/// Most counters that a far state can have.
const MAX_COUNTERS: usize = 4;

/// A state that stands for many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarState {
    /// Its number.
    pub state: u32,
    /// Its first id.
    pub first: u32,
    /// Its counters that are beyond their reach, by chain.
    pub counters: Vec<FarCounter>,
}

/// A counter of a far state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FarCounter {
    /// What it counts.
    pub chain: u32,
    /// Its far layer: a step to the n-th one after it counts down by n.
    pub layer: u32,
    /// The state in which this counter has come down to its reach or just below, or [`NONE`] if it never does there.
    pub down: u32,
}

/// What the far states of a lexer stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Far {
    /// Far states in the order of their ids.
    pub states: Vec<FarState>,
    /// For each chain, the values beyond its reach.
    pub lengths: Vec<u32>,
    /// Ids of all far states.
    pub ids: u32,
}

impl Far {
    /// How many ids a far state has.
    pub(crate) fn ids_of(&self, state: &FarState) -> u32 {
        state.counters.iter().map(|counter| self.lengths[counter.chain as usize]).product()
    }

    /// The id of a far state with its counters at their most.
    pub(crate) fn at_most(&self, state: &FarState) -> u32 {
        state.first + self.ids_of(state) - 1
    }

    /// The far state of this number.
    pub(crate) fn state(&self, number: u32) -> Option<&FarState> {
        // States were looked at in the order of their numbers.
        self.states.binary_search_by_key(&number, |state| state.state).ok().map(|i| &self.states[i])
    }
}

/// A state of the counting lexer, with the value of each chain that it counts.
type Valued = (u32, SmallVec<[(u32, u32); 2]>);

struct Unfold<'a> {
    counting: &'a WatchedLexer,
    /// What a token completes at most of each chain.
    reach: &'a [u32],
    states: Vec<Valued>,
    ids: FxHashMap<Valued, u32>,
    entries: Vec<Entry>,
    entry_ids: FxHashMap<Entry, u32>,
}

/// Unfold a lexer's counters for tokens that complete at most `reach` copies of each chain.
///
/// # Errors
/// [`WatchedError`], with too many states or ids.
pub(crate) fn unfold(
    counting: WatchedLexer,
    reach: &[u32],
    max_states: usize,
) -> Result<(WatchedLexer, Far), WatchedError> {
    if counting.moves.is_empty() {
        return Ok((counting, Far::default()));
    }
    let mut unfold = Unfold {
        counting: &counting,
        reach,
        states: Vec::new(),
        ids: FxHashMap::default(),
        entries: vec![Entry::new()],
        entry_ids: FxHashMap::from_iter([(Entry::new(), 0)]),
    };
    let mut far: Vec<FarState> = Vec::new();
    let mut steps: Vec<u32> = Vec::new();
    // Of an entry: what it became for the state that was last looked at, or for all that count nothing.
    let mut made: Vec<(u32, u32)> = vec![(NONE, NONE); counting.entries.len()];
    const PLAIN: u32 = NONE - 1;
    unfold.state((0, SmallVec::new()));
    let mut done = 0;
    while let Some(from) = unfold.states.get(done).cloned() {
        crate::control::check();
        let stamp = if from.1.is_empty() { PLAIN } else { done as u32 };
        for &entry in &counting.steps[from.0 as usize * counting.classes..][..counting.classes] {
            let known = &mut made[entry as usize];
            if known.0 != stamp {
                *known = (stamp, unfold.entry(&counting.entries[entry as usize], &from));
            }
            steps.push(known.1);
        }
        let counters: Vec<FarCounter> =
            from.1.iter().filter(|(_, value)| *value == FAR).map(|&(chain, _)| unfold.counter(&from, chain)).collect();
        if counters.len() > MAX_COUNTERS {
            return Err(WatchedError::Uncountable(counters[0].chain));
        }
        if !counters.is_empty() {
            far.push(FarState { state: done as u32, first: 0, counters });
        }
        if unfold.states.len() > max_states {
            return Err(WatchedError::TooManyStates(max_states));
        }
        done += 1;
    }
    let lengths: Vec<u32> =
        counting.chains.iter().zip(reach).map(|(length, reach)| length.saturating_sub(*reach)).collect();
    let mut next = unfold.states.len() as u64;
    for state in &mut far {
        state.first = next as u32;
        let ids = state.counters.iter().fold(1u64, |ids, c| ids.saturating_mul(u64::from(lengths[c.chain as usize])));
        next = next.saturating_add(ids);
        if next > MAX_IDS {
            return Err(WatchedError::Uncountable(state.counters[0].chain));
        }
    }
    let ids = (next - unfold.states.len() as u64) as u32;
    let Unfold { states, entries, ids: numbers, .. } = unfold;
    let start = |start: &u32| numbers.get(&(*start, SmallVec::new())).copied().unwrap_or(NONE);
    let watched = |x: &u32| counting.watched[*x as usize];
    let of = |values: &[u32]| states.iter().map(|(x, _)| values[*x as usize]).collect();
    let lexer = WatchedLexer {
        byte_class: counting.byte_class,
        classes: counting.classes,
        symbols: counting.symbols,
        steps,
        entries,
        cand: of(&counting.cand),
        cand_emissions: states.iter().map(|(x, _)| counting.cand_emissions[*x as usize].clone()).collect(),
        starts: counting.starts.iter().map(start).collect(),
        group: of(&counting.group),
        live: of(&counting.live),
        watched_states: states.iter().filter(|(x, _)| watched(x)).count(),
        watched: states.iter().map(|(x, _)| watched(x)).collect(),
        sets: counting.sets,
        emissions: counting.emissions,
        chains: Vec::new(),
        moves: Moves::default(),
    };
    Ok((lexer, Far { states: far, lengths, ids }))
}

impl Unfold<'_> {
    fn state(&mut self, state: Valued) -> u32 {
        let next = self.states.len() as u32;
        *self.ids.entry(state).or_insert_with_key(|state| {
            self.states.push(state.clone());
            next
        })
    }

    /// An entry as it is from a state.
    fn entry(&mut self, entry: &Entry, from: &Valued) -> u32 {
        let mut entry = entry.clone();
        for alternative in &mut entry {
            let to = self.after(from, alternative.next);
            alternative.next = self.state(to);
        }
        let next = self.entries.len() as u32;
        *self.entry_ids.entry(entry).or_insert_with_key(|entry| {
            self.entries.push(entry.clone());
            next
        })
    }

    /// The far layer in which a state counts a chain, if it does.
    fn layer(&self, x: u32, chain: u32) -> Option<u32> {
        let letters = self.counting.moves.of(x).iter().filter(|(letter, _)| chain_of(*letter) == chain);
        letters.filter_map(|(letter, _)| far_layer(*letter)).next()
    }

    /// What a step from `from` to state `to` leads to.
    fn after(&self, from: &Valued, mut to: u32) -> Valued {
        let moves = &self.counting.moves;
        let mut values: SmallVec<[(u32, u32); 2]> = SmallVec::new();
        // What has been counted to the end counts no more.
        while let Some((letter, layer, moved)) = moves.of(to).iter().find_map(|&(letter, moved)| {
            let layer = far_layer(letter)?;
            values.iter().all(|v| v.0 != chain_of(letter)).then_some((letter, layer, moved))
        }) {
            let chain = chain_of(letter);
            let (length, reach) = (self.counting.chains[chain as usize], self.reach[chain as usize]);
            let before = from.1.iter().find(|v| v.0 == chain).map(|v| v.1);
            let down = self.layer(from.0, chain).map_or(0, |before| (layer + COPIES_FAR - before) % COPIES_FAR);
            debug_assert!(before.is_none() || down <= 2, "a byte completes two copies at most, of one and the next");
            match before.unwrap_or(if length > reach { FAR } else { length }) {
                FAR => values.push((chain, FAR)),
                value if value > down => values.push((chain, value - down)),
                value if value == down => to = moved,
                _ => {
                    let below = moves.of(moved).iter().find(|m| m.0 == top_of(letter));
                    to = below.expect("separability found the layers below alike").1;
                }
            }
        }
        values.sort_unstable();
        (to, values)
    }

    /// A counter of a state that is beyond its reach.
    fn counter(&mut self, at: &Valued, chain: u32) -> FarCounter {
        let layer = self.layer(at.0, chain).expect("what has a value is counted");
        let (length, reach) = (self.counting.chains[chain as usize], self.reach[chain as usize]);
        // The layer says what the value is modulo their number, and steps count down by one or two.
        let value = [reach, reach - 1].into_iter().find(|value| (length - value) % COPIES_FAR == layer);
        let down = value.map_or(NONE, |value| {
            let mut down = at.clone();
            down.1.iter_mut().filter(|v| v.0 == chain).for_each(|v| v.1 = value);
            self.state(down)
        });
        FarCounter { chain, layer, down }
    }
}
