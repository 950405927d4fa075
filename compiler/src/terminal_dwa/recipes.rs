//! One recipe per lexer state: which partitions, restricted how, tell what each token does from there.
//!
//! Two facts keep the recipes small. A lexeme that ends before a token's first byte leaves the rest of the token to be
//! lexed from the start, so those tokens are classified by the one partition of the start state (of the group in question)
//! restricted to their first bytes. And most other tokens do from, say, the middle of a keyword what they do from the middle of an
//! identifier: a state names another state's partition as its base, and lists the tokens that differ.

use super::outcomes::Outcomes;
use super::regions::{Differences, Event, Place, Region};
use super::walk::{Branches, Classes, From, Segment, Walker};
use crate::bits;
use crate::config::Config;
use crate::control;
use crate::lexer::{DEAD_ENTRY, Entry, NONE, TerminalFacts, WatchedLexer};
use crate::parallel;
use crate::vocab::{ByteSet, Trie};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::sync::Arc;

/// A partition, restricted to tokens with certain first bytes (`None`: all it has).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The partition.
    pub partition: u32,
    /// First bytes.
    pub bytes: Option<ByteSet>,
}

/// The tokens of a recipe whose stacks are to be shifted by change `emit` first (`NONE`: taken as they are).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Change.
    pub emit: u32,
    /// Pieces of shared partitions.
    pub pieces: Vec<Piece>,
    /// Whether the output is complete if these stacks accept the end.
    pub ends: bool,
}

/// Tokens that a recipe treats unlike its pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// First token index.
    pub lo: u32,
    /// Past the last.
    pub hi: u32,
    /// Class in each group, sorted by group.
    pub classes: Classes,
}

/// How a lexer state's row is composed: the groups' pieces, minus `lost`, plus `own`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recipe {
    /// Groups, sorted by `emit`.
    pub groups: Vec<Group>,
    /// Intervals of tokens to take out of the pieces.
    pub lost: Vec<(u32, u32)>,
    /// Tokens to add.
    pub own: Vec<Difference>,
}

/// The Terminal DWA.
#[derive(Debug)]
pub struct TerminalDwa {
    /// Sequences, outcomes, classes.
    pub outcomes: Outcomes,
    /// Partitions; each is ascending and disjoint.
    pub partitions: Vec<Vec<Segment>>,
    /// Recipe of each lexer state.
    pub recipes: Vec<Recipe>,
}

/// A lexer state whose partitions others may use.
#[derive(Debug)]
struct Base {
    x: u32,
    /// What its partitions were walked from: only the same can use them.
    from: From,
    /// First bytes its partitions cover.
    bytes: ByteSet,
    /// What is done under each byte class, as [`Builder::does`] says; `NONE` where its partitions cover nothing.
    does: OnceCell<Vec<u32>>,
    /// Partition of each group.
    groups: Vec<(u32, u32)>,
    /// Tokens in them.
    tokens: u32,
}

#[derive(Debug, Clone, Default)]
struct FirstClass {
    tokens: u32,
    bytes: ByteSet,
    height: u32,
}

#[derive(Debug, Clone, Copy)]
struct First {
    byte: u8,
    child: u32,
    tokens: u32,
    /// The first of them.
    lo: u32,
}

/// A state, `local` of its region, and the nearest of the first `bases` bases: `base`, which is `other` of the region.
#[derive(Debug)]
struct Pair {
    x: u32,
    region: Arc<Region>,
    local: u32,
    bases: usize,
    base: usize,
    other: u32,
}

/// Makes recipes, of any state in any order.
#[derive(Debug)]
pub(crate) struct Builder {
    min_agreement: u32,
    shared_tokens: u32,
    walker: Walker,
    /// First bytes of tokens, with the trie child and the number of tokens.
    first: Vec<First>,
    /// Of each byte class: the tokens that begin with it, its bytes that begin some, and the height of the trie below them.
    classes: Vec<FirstClass>,
    /// Partition of each group's start, or `NONE` as long as nobody asked.
    boundaries: Vec<u32>,
    partitions: Vec<Vec<Segment>>,
    /// First bytes of the tokens of each partition.
    partition_bytes: Vec<ByteSet>,
    partition_ids: FxHashMap<Vec<Segment>, u32>,
    bases: Vec<Base>,
    /// Regions, and which of them each state is in; `None` if it is in none.
    places: Vec<Arc<Place>>,
    place_of: FxHashMap<u32, Option<(usize, u32)>>,
    /// What was found of some states before their turn.
    ahead: FxHashMap<u32, (Pair, Arc<Differences>)>,
    /// What [`Builder::shared_with_starts`] said of an entry and class, from a state of a group, between lexemes or not.
    shared: FxHashMap<(u32, usize, u32, bool), Option<Parts>>,
}

/// Bytes after the first, of tokens by which states of a region are held to be alike.
const LENGTHS: [u32; 3] = [4, 16, 64];

/// States that are compared with others while the recipes of as many before them are made.
const AT_ONCE: usize = 32;

/// Changes, each with the group of the start from which tokens go on as after it.
type Parts = SmallVec<[(u32, u32); 2]>;

/// Build the recipes of all states.
pub(crate) fn build(mut builder: Builder) -> TerminalDwa {
    let lexer = Arc::clone(&builder.walker.lexer);
    let n = lexer.state_count();
    // Starts come first, then the states in which most tokens stay put: they make the best bases.
    let staying = |x: &u32| -> u32 { builder.walker.classes_staying(*x).map(|c| builder.classes[c].tokens).sum() };
    let mut order: Vec<u32> = (0..n as u32).filter(|x| !lexer.starts.contains(x)).collect();
    order.sort_by_cached_key(|x| (std::cmp::Reverse(staying(x)), *x));
    let starts = lexer.starts.iter().copied().filter(|&start| start != NONE);
    let mut recipes = vec![Recipe::default(); n];
    let order: Vec<u32> = starts.chain(order).collect();
    let trie = Arc::clone(&builder.walker.trie);
    let mut done = 0;
    let mut chunks = order.chunks(AT_ONCE).peekable();
    while let Some(states) = chunks.next() {
        let pairs = chunks.peek().map_or_else(Vec::new, |next| builder.pairs(next));
        let make = || {
            for &x in states {
                recipes[x as usize] = builder.recipe(x);
                control::progress(done, n);
                done += 1;
            }
        };
        let compare = || parallel::map(&pairs, |pair| pair.region.differences(&trie, pair.local, pair.other));
        let (differences, ()) = parallel::join(!pairs.is_empty(), compare, make);
        builder.ahead = pairs.into_iter().zip(differences).map(|found| (found.0.x, found)).collect();
    }
    TerminalDwa { outcomes: builder.walker.outcomes, partitions: builder.partitions, recipes }
}

impl Builder {
    /// For a lexer and a vocabulary.
    pub(crate) fn new(
        lexer: Arc<WatchedLexer>,
        trie: Arc<Trie>,
        facts: Arc<TerminalFacts>,
        terminal_class: Arc<[u32]>,
        config: &Config,
    ) -> Self {
        let of_child = |child: u32| {
            let tokens = trie.tokens_of(child);
            First { byte: trie.byte[child as usize], child, tokens: tokens.len() as u32, lo: tokens.start }
        };
        let first: Vec<First> = trie.first_bytes().map(of_child).collect();
        let mut classes = vec![FirstClass::default(); lexer.byte_classes()];
        for f in &first {
            let class = &mut classes[lexer.byte_class[f.byte as usize] as usize];
            class.height = trie.height[f.child as usize].max(class.height);
            class.tokens += f.tokens;
            bits::insert(&mut class.bytes, f.byte.into());
        }
        let outcomes = Outcomes::new(facts, terminal_class, lexer.sets.clone(), &lexer.emissions);
        Builder {
            min_agreement: config.min_agreement,
            shared_tokens: config.shared_tokens,
            first,
            classes,
            boundaries: vec![NONE; lexer.starts.len()],
            partitions: Vec::new(),
            partition_bytes: Vec::new(),
            partition_ids: FxHashMap::default(),
            bases: Vec::new(),
            places: Vec::new(),
            place_of: FxHashMap::default(),
            ahead: FxHashMap::default(),
            shared: FxHashMap::default(),
            walker: Walker::new(lexer, trie, outcomes),
        }
    }

    /// Sequences, outcomes and classes met so far.
    pub(crate) fn outcomes(&self) -> &Outcomes {
        &self.walker.outcomes
    }

    /// A partition that some recipe names.
    pub(crate) fn segments(&self, partition: u32) -> &[Segment] {
        &self.partitions[partition as usize]
    }

    /// The partition of the start of a group's lexemes.
    fn boundary_of(&mut self, group: u32) -> u32 {
        if self.boundaries[group as usize] == NONE {
            let start = self.walker.lexer.starts[group as usize];
            let (mut segments, mut bytes) = (Segments::default(), [0; 4]);
            for f in &self.first {
                self.walker.walk(From::Boundary, start, f.child, |lo, hi, classes| {
                    segments.add(lo, hi, classes[0].1);
                    bits::insert(&mut bytes, f.byte.into());
                });
            }
            self.boundaries[group as usize] = self.partition(segments.0, bytes);
        }
        self.boundaries[group as usize]
    }

    /// What the tokens in a state are walked from. A lexeme that can only become an ignored terminal leaves no trace, so
    /// tokens do to the stacks what they do between lexemes.
    fn from(&self, x: u32) -> From {
        let lexer = &self.walker.lexer;
        match lexer.live[x as usize] {
            NONE => From::Boundary,
            live if lexer.sets.sets[live as usize].terms.is_empty() => From::Boundary,
            _ => From::Lexeme,
        }
    }

    /// What [`Self::shared_with_starts`] says, looked up where it is much to ask.
    fn parts(&mut self, x: u32, class: usize, entry: u32) -> Option<Parts> {
        let lexer = &self.walker.lexer;
        let (group, between) = (lexer.group[x as usize], lexer.live[x as usize] == NONE);
        let ways = &lexer.entries[entry as usize];
        if let [only] = &ways[..]
            && only.emit == [NONE; 2]
        {
            let start = lexer.starts[group as usize];
            let same = start != NONE && lexer.steps[start as usize * lexer.classes + class] == entry;
            return same.then(|| Parts::from_elem((NONE, group), 1));
        }
        let key = (entry, class, group, between);
        if let Some(parts) = self.shared.get(&key) {
            return parts.clone();
        }
        let parts = self.shared_with_starts(x, class, ways);
        self.shared.insert(key, parts.clone());
        parts
    }

    /// If what an entry of `x` does is what the starts of the groups do after its first emissions: the changes that these
    /// make (`NONE` for none), each with its group.
    fn shared_with_starts(&self, x: u32, class: usize, entry: &Entry) -> Option<Parts> {
        let lexer = &self.walker.lexer;
        // First emission, and the ways on after it.
        type Part = (u32, SmallVec<[(u32, u32); 2]>);
        let mut parts: SmallVec<[Part; 2]> = SmallVec::new();
        for alternative in entry {
            // What is left of it after the first emission; a step without one is compared with the start as it is.
            let [first, second] = alternative.emit;
            let inside = first == NONE || lexer.live[x as usize] == NONE;
            let (first, rest) = if inside { (NONE, first) } else { (first, second) };
            match parts.iter_mut().find(|(f, _)| *f == first) {
                Some((_, ways)) => ways.push((rest, alternative.next)),
                None => parts.push((first, SmallVec::from_elem((rest, alternative.next), 1))),
            }
        }
        let mut shared = SmallVec::new();
        for (first, ways) in parts {
            let (change, group) = match first {
                NONE => (NONE, lexer.group[x as usize]),
                emission => match lexer.emissions[emission as usize].group {
                    NONE => (NONE, lexer.group[x as usize]),
                    group => (self.walker.outcomes.change_of[emission as usize], group),
                },
            };
            let start = lexer.starts[group as usize];
            if start == NONE {
                return None;
            }
            let theirs = &lexer.entries[lexer.steps[start as usize * lexer.classes + class] as usize];
            if !theirs.iter().map(|a| (a.emit[0], a.next)).eq(ways.iter().copied())
                || theirs.iter().any(|a| a.emit[1] != NONE)
            {
                return None;
            }
            shared.push((change, group));
        }
        Some(shared)
    }

    fn partition(&mut self, segments: Vec<Segment>, bytes: ByteSet) -> u32 {
        let next = self.partitions.len() as u32;
        *self.partition_ids.entry(segments).or_insert_with_key(|segments| {
            self.partitions.push(segments.clone());
            self.partition_bytes.push(bytes);
            next
        })
    }

    /// The region that a state is in, and which of its states it is.
    fn place(&mut self, x: u32) -> Option<(usize, u32)> {
        if let Some(&known) = self.place_of.get(&x) {
            return known;
        }
        let found = self.walker.trie.regions.find(&self.walker.lexer, x, self.shared_tokens);
        let place = found.map(|place| {
            for (&y, &local) in &place.local {
                self.place_of.entry(y).or_default().get_or_insert((self.places.len(), local));
            }
            self.places.push(Arc::new(place));
            (self.places.len() - 1, 0)
        });
        self.place_of.insert(x, place);
        place
    }

    /// The recipe of a lexer state.
    pub(crate) fn recipe(&mut self, x: u32) -> Recipe {
        let lexer = Arc::clone(&self.walker.lexer);
        if let Some(group) = lexer.starts.iter().position(|&start| start == x) {
            let pieces = vec![Piece { partition: self.boundary_of(group as u32), bytes: None }];
            let mut recipe = Recipe::default();
            self.symbols(x, &mut recipe);
            recipe.groups = vec![Group { emit: NONE, pieces, ends: true }];
            return recipe;
        }
        let mut groups = Groups::default();
        // Byte classes that do something of their own, and the first bytes in them.
        let mut own_classes: Vec<usize> = Vec::new();
        let mut rest: ByteSet = [0; 4];
        for class in 0..self.classes.len() {
            let FirstClass { tokens, bytes, .. } = self.classes[class];
            let entry = lexer.steps[x as usize * lexer.classes + class];
            if tokens == 0 || entry == DEAD_ENTRY {
                continue;
            }
            match self.parts(x, class, entry) {
                Some(parts) => {
                    for (emit, group) in parts {
                        groups.piece(emit, self.boundary_of(group), &bytes);
                    }
                }
                None => {
                    own_classes.push(class);
                    bits::unite(&mut rest, &bytes);
                }
            }
        }
        let mut recipe = Recipe::default();
        match self.place(x) {
            Some(place) => self.in_region(place, x, &rest, &mut groups, &mut recipe),
            None => match self.best_base(x, &own_classes) {
                Some(base) => self.differ_from(base, x, &rest, &mut groups, &mut recipe),
                None => self.on_its_own(x, &rest, &mut groups, &mut recipe),
            },
        }
        self.symbols(x, &mut recipe);
        // The end of input is decided by the stacks as they are, or after what the lexeme would be if it ended here.
        if lexer.live[x as usize] == NONE {
            groups.get(NONE).ends = true;
        } else if lexer.cand[x as usize] != NONE {
            if lexer.sets.sets[lexer.cand[x as usize] as usize].ignored {
                groups.get(NONE).ends = true;
            }
            for &emission in &lexer.cand_emissions[x as usize] {
                groups.get(self.walker.outcomes.change_of[emission as usize]).ends = true;
            }
        }
        for difference in &recipe.own {
            for (emit, _) in &difference.classes {
                groups.get(*emit);
            }
        }
        recipe.groups = groups.finish(&self.partition_bytes);
        recipe
    }

    /// Add the tokens that are read as one symbol; as token indices they come after all others.
    fn symbols(&mut self, x: u32, recipe: &mut Recipe) {
        let from = self.from(x);
        let lexer = Arc::clone(&self.walker.lexer);
        let first = self.walker.trie.token_count() as u32;
        for (token, class) in (first..).zip(lexer.byte_classes()..lexer.classes) {
            let mut branches = Branches::new();
            self.walker.step(from, &Walker::start(x), class, &mut branches);
            if !branches.is_empty() {
                let classes = self.walker.classes(from, &branches);
                recipe.own.push(Difference { lo: token, hi: token + 1, classes });
            }
        }
    }

    /// The base that does the same as `x` for most tokens.
    fn best_base(&self, x: u32, own_classes: &[usize]) -> Option<usize> {
        let from = self.from(x);
        let lexer = &self.walker.lexer;
        // Few tokens are soon listed.
        let tokens = own_classes.iter().map(|&class| self.classes[class].tokens).sum::<u32>();
        if self.bases.is_empty() || tokens <= self.shared_tokens {
            return None;
        }
        // By class, so that comparing with a base is one run through two rows of numbers.
        let mut does = vec![NONE; self.classes.len()];
        let mut tokens = vec![0; self.classes.len()];
        for &class in own_classes {
            (does[class], tokens[class]) =
                (self.does(x, class, self.classes[class].height), self.classes[class].tokens);
        }
        let agreement = |base: &Base| -> u32 {
            let theirs = base.does.get_or_init(|| self.does_of(base, |class| self.classes[class].height));
            let classes = theirs.iter().zip(&does).zip(&tokens);
            classes.map(|((theirs, mine), tokens)| if theirs == mine { *tokens } else { 0 }).sum()
        };
        // Where another terminal is pending, tokens that stay inside differ, all of them: only much agreement makes up for it.
        let enough = |base: &Base| match lexer.live[base.x as usize] == lexer.live[x as usize] {
            true => self.min_agreement,
            false => self.min_agreement.saturating_mul(16),
        };
        let usable = self.bases.iter().enumerate().filter(|(_, base)| base.from == from);
        let candidates = usable.map(|(i, base)| (agreement(base), std::cmp::Reverse(i), enough(base)));
        let (_, best, _) = candidates.filter(|(agreement, _, enough)| agreement >= enough).max()?;
        Some(best.0)
    }

    /// What a state does under a byte class: the number is the same where no token with so many more bytes tells it apart.
    fn does(&self, x: u32, class: usize, height: u32) -> u32 {
        let entry = self.walker.lexer.steps[x as usize * self.walker.lexer.classes + class];
        self.walker.horizons().entry(height, entry)
    }

    /// The same of a base, by byte class.
    fn does_of(&self, base: &Base, height: impl Fn(usize) -> u32) -> Vec<u32> {
        let covers = |class: usize| bits::meets(&base.bytes, &self.classes[class].bytes);
        let does = |class| if covers(class) { self.does(base.x, class, height(class)) } else { NONE };
        (0..self.classes.len()).map(does).collect()
    }

    fn differ_from(&mut self, base: usize, x: u32, rest: &ByteSet, groups: &mut Groups, recipe: &mut Recipe) {
        let lexer = Arc::clone(&self.walker.lexer);
        let from = self.bases[base].from;
        let (y, bytes) = (self.bases[base].x, self.bases[base].bytes);
        let kept: ByteSet = std::array::from_fn(|i| rest[i] & bytes[i]);
        let height = |class: usize| self.classes[class].height;
        let does = self.bases[base].does.get_or_init(|| self.does_of(&self.bases[base], height));
        let same: Vec<bool> =
            does.iter().enumerate().map(|(class, does)| *does == self.does(x, class, height(class))).collect();
        for &First { byte: b, child, .. } in self.first.iter().filter(|f| bits::has(rest, f.byte.into())) {
            let own = |lo, hi, classes| add(&mut recipe.own, lo, hi, classes);
            if !bits::has(&bytes, b.into()) {
                self.walker.walk(from, x, child, own);
            } else if !same[lexer.byte_class[b as usize] as usize] {
                let lost = &mut recipe.lost;
                self.walker.compare(from, x, y, child, |lo, hi| lost.push((lo, hi)), own);
            }
        }
        let lost = std::mem::take(&mut recipe.lost);
        recipe.lost = self.lost_of(base, lost);
        self.build_on(base, &kept, groups);
    }

    fn build_on(&self, base: usize, bytes: &ByteSet, groups: &mut Groups) {
        self.bases[base].groups.iter().for_each(|&(emit, partition)| groups.piece(emit, partition, bytes));
    }

    /// The tokens of some intervals that a base has something for.
    fn lost_of(&self, base: usize, lost: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
        let mut found: Vec<(u32, u32)> = Vec::new();
        for &(_, partition) in &self.bases[base].groups {
            let mut segments = &self.partitions[partition as usize][..];
            for &(lo, hi) in &lost {
                segments = ending_after(segments, lo);
                for segment in segments.iter().take_while(|segment| segment.lo < hi) {
                    let (lo, hi) = (segment.lo.max(lo), segment.hi.min(hi));
                    match found.last_mut() {
                        Some(last) if last.1 == lo => last.1 = hi,
                        _ => found.push((lo, hi)),
                    }
                }
            }
        }
        found
    }

    /// Which states, as far as is known now, the recipes of some are built on.
    fn pairs(&mut self, states: &[u32]) -> Vec<Pair> {
        let bases = self.bases.len();
        let pair = |&x: &u32| {
            let (place, local) = self.place(x)?;
            let (base, other) = self.nearest(self.from(x), place, local)?;
            Some(Pair { x, region: Arc::clone(&self.places[place].region), local, bases, base, other })
        };
        states.iter().filter_map(pair).collect()
    }

    /// The base in its region that is nearest to a state, and how the state differs from it.
    fn differ_from_nearest(&mut self, (place, local): (usize, u32), x: u32) -> Option<(usize, Arc<Differences>)> {
        let ahead = self.ahead.remove(&x);
        let (base, other) = match &ahead {
            Some((pair, _)) if pair.bases == self.bases.len() => (pair.base, pair.other),
            _ => self.nearest(self.from(x), place, local)?,
        };
        let differences = match ahead {
            Some((pair, differences)) if pair.other == other => differences,
            _ => self.places[place].region.differences(&self.walker.trie, local, other),
        };
        Some((base, differences))
    }

    /// What a state of a region does: as another state of it, but for some tokens.
    fn in_region(
        &mut self,
        (place, local): (usize, u32),
        x: u32,
        rest: &ByteSet,
        groups: &mut Groups,
        recipe: &mut Recipe,
    ) {
        let from = self.from(x);
        if let Some((base, differences)) = self.differ_from_nearest((place, local), x) {
            let bytes = self.bases[base].bytes;
            let kept: ByteSet = std::array::from_fn(|i| rest[i] & bytes[i]);
            let more: ByteSet = std::array::from_fn(|i| rest[i] & !bytes[i]);
            let is_kept = |&&(lo, _): &&(u32, u32)| bits::has(&kept, self.first_byte(lo).into());
            let lost = self.lost_of(base, differences.lost.iter().filter(is_kept).copied().collect());
            let mut own = self.evaluate(place, from, &differences.own, &kept);
            own.extend(self.all_events(place, from, local, &more));
            own.sort_by_key(|difference| difference.lo);
            let own_count: u32 = own.iter().map(|own| own.hi - own.lo).sum();
            let lost_count: u32 = lost.iter().map(|(lo, hi)| hi - lo).sum();
            let of_kept =
                self.first.iter().filter(|first| bits::has(&kept, first.byte.into())).map(|first| first.tokens);
            // What is lost takes little, if other states of the region lose most of it too.
            if own_count <= self.bases[base].tokens / 2 && lost_count <= of_kept.sum::<u32>() / 2 {
                (recipe.own, recipe.lost) = (own, lost);
                return self.build_on(base, &kept, groups);
            }
        }
        let own = self.all_events(place, from, local, rest);
        self.keep(x, own, rest, groups, recipe);
    }

    /// The base in a region that does most like state `local` of it, if it does the same for half of the shortest tokens: of
    /// white space few differ anyway. And which state of the region it is.
    fn nearest(&self, from: From, place: usize, local: u32) -> Option<(usize, u32)> {
        let Place { region, local: members, .. } = &*self.places[place];
        let trie = &self.walker.trie;
        let agreement = |other: u32| region.agreement(trie, local, other, LENGTHS);
        let bases = self.bases.iter().enumerate().filter(|(_, base)| base.from == from);
        let inside = bases.filter_map(|(i, base)| Some((i, *members.get(&base.x)?)));
        let compared = inside.map(|(i, other)| (agreement(other), i, other));
        let (agreement, base, other) = compared.max_by_key(|(agreement, i, _)| (agreement.iter().sum::<u32>(), *i))?;
        let enough = agreement[0] >= region.staying_tokens(trie, local) / 2;
        (enough || from == From::Boundary).then_some((base, other))
    }

    /// What all tokens with certain first bytes do from a state of a region.
    fn all_events(&mut self, place: usize, from: From, local: u32, bytes: &ByteSet) -> Vec<Difference> {
        let (region, trie) = (Arc::clone(&self.places[place].region), Arc::clone(&self.walker.trie));
        if local == 0 {
            return self.evaluate(place, from, region.events_of_first(&trie), bytes);
        }
        let mut events = Vec::new();
        let asked = self.first.iter().filter(|first| bits::has(bytes, first.byte.into()));
        asked.for_each(|first| region.walk(&trie, first.child, local, &mut events));
        self.evaluate(place, from, &events, bytes)
    }

    /// What the tokens of events with certain first bytes do in this lexer.
    fn evaluate(&mut self, place: usize, from: From, events: &[Event], bytes: &ByteSet) -> Vec<Difference> {
        let (place, trie) = (Arc::clone(&self.places[place]), Arc::clone(&self.walker.trie));
        let mut out: Vec<Difference> = Vec::new();
        let mut first = 0;
        for event in events {
            first += self.first[first + 1..].iter().take_while(|first| first.lo <= event.lo).count();
            if !bits::has(bytes, self.first[first].byte.into()) {
                continue;
            }
            let x = place.states[event.state as usize];
            if event.node == NONE {
                add(&mut out, event.lo, event.hi, self.walker.classes(from, &Walker::start(x)));
                continue;
            }
            let here = |node: &u32| trie.tokens_of(*node).start < event.hi;
            for node in trie.siblings_from(event.node).take_while(here) {
                if trie.tokens_of(node).end <= event.lo || !self.walker.goes_on(x, node) {
                    continue;
                }
                self.walker.walk(from, x, node, |lo, hi, classes| {
                    add(&mut out, lo.max(event.lo), hi.min(event.hi), classes);
                });
            }
        }
        out
    }

    /// The first byte of a token.
    fn first_byte(&self, token: u32) -> u8 {
        self.first[self.first.partition_point(|first| first.lo <= token) - 1].byte
    }

    fn on_its_own(&mut self, x: u32, rest: &ByteSet, groups: &mut Groups, recipe: &mut Recipe) {
        let from = self.from(x);
        let mut own: Vec<Difference> = Vec::new();
        for f in self.first.iter().filter(|f| bits::has(rest, f.byte.into())) {
            self.walker.walk(from, x, f.child, |lo, hi, classes| add(&mut own, lo, hi, classes));
        }
        self.keep(x, own, rest, groups, recipe);
    }

    /// Keep what the tokens of a state do, as partitions if they are many.
    fn keep(&mut self, x: u32, own: Vec<Difference>, bytes: &ByteSet, groups: &mut Groups, recipe: &mut Recipe) {
        let tokens: u32 = own.iter().map(|d| d.hi - d.lo).sum();
        if tokens <= self.shared_tokens {
            recipe.own = own;
            return;
        }
        let mut segments: Vec<(u32, Segments)> = Vec::new();
        for difference in &own {
            for &(emit, class) in &difference.classes {
                let i = segments.iter().position(|(e, _)| *e == emit).unwrap_or_else(|| {
                    segments.push((emit, Segments::default()));
                    segments.len() - 1
                });
                segments[i].1.add(difference.lo, difference.hi, class);
            }
        }
        let partitions = segments.into_iter().map(|(emit, segments)| (emit, self.partition(segments.0, *bytes)));
        let of_groups: Vec<(u32, u32)> = partitions.collect();
        let from = self.from(x);
        self.bases.push(Base { x, from, bytes: *bytes, does: OnceCell::new(), groups: of_groups, tokens });
        self.build_on(self.bases.len() - 1, bytes, groups);
    }
}

/// Add what tokens do, to the last ones if they come next and do the same.
fn add(own: &mut Vec<Difference>, lo: u32, hi: u32, classes: Classes) {
    match own.last_mut() {
        Some(last) if last.hi == lo && last.classes == classes => last.hi = hi,
        _ if lo < hi => own.push(Difference { lo, hi, classes }),
        _ => {}
    }
}

/// The segments that end after a token, looked for from the first one on: it is often near.
fn ending_after(segments: &[Segment], token: u32) -> &[Segment] {
    let mut past = 1;
    while segments.get(past).is_some_and(|segment| segment.hi <= token) {
        past *= 2;
    }
    let before = past / 2;
    let near = &segments[before.min(segments.len())..segments.len().min(past + 1)];
    &segments[before.min(segments.len()) + near.partition_point(|segment| segment.hi <= token)..]
}

/// Ascending segments, neighbours of one class joined.
#[derive(Default)]
struct Segments(Vec<Segment>);

impl Segments {
    fn add(&mut self, lo: u32, hi: u32, class: u32) {
        match self.0.last_mut() {
            Some(last) if last.hi == lo && last.class == class => last.hi = hi,
            _ if lo < hi => self.0.push(Segment { lo, hi, class }),
            _ => {}
        }
    }
}

#[derive(Default)]
struct Groups {
    groups: Vec<Group>,
    /// Group, partition, first bytes.
    pieces: Vec<(u32, u32, ByteSet)>,
}

impl Groups {
    fn get(&mut self, emit: u32) -> &mut Group {
        let i = self.groups.iter().position(|g| g.emit == emit).unwrap_or_else(|| {
            self.groups.push(Group { emit, pieces: Vec::new(), ends: false });
            self.groups.len() - 1
        });
        &mut self.groups[i]
    }

    /// Add the tokens of a partition that begin with these bytes.
    fn piece(&mut self, emit: u32, partition: u32, bytes: &ByteSet) {
        if *bytes == [0; 4] {
            return;
        }
        match self.pieces.iter_mut().find(|(e, p, _)| (*e, *p) == (emit, partition)) {
            Some((.., set)) => _ = bits::unite(set, bytes),
            None => self.pieces.push((emit, partition, *bytes)),
        }
    }

    fn finish(mut self, partition_bytes: &[ByteSet]) -> Vec<Group> {
        for (emit, partition, bytes) in std::mem::take(&mut self.pieces) {
            let all = partition_bytes[partition as usize].iter().zip(&bytes).all(|(of, bytes)| of & !bytes == 0);
            self.get(emit).pieces.push(Piece { partition, bytes: (!all).then_some(bytes) });
        }
        self.groups.sort_by_key(|g| g.emit);
        self.groups
    }
}
