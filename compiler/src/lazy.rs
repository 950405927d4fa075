//! The schedule on demand: recipes of the lexer states, and edges of the Parser DWA for the stacks, that matchers meet.
//!
//! The stages are those of an ahead-of-time build, run for one lexer state or one edge at a time. What differs is that the
//! boundary classes are not all known when the automaton is asked about some: so each group of a recipe is a *domain* of
//! its own, the classes that occur in it. What a domain asks never changes, and so no edge has to be computed again.

use crate::bits;
use crate::config::Config;
use crate::front::Front;
use crate::lexer::NONE;
use crate::parser_dwa::{Output, Suspended, Symbolic};
use crate::rows::Collector;
use crate::terminal_dwa::{Builder, Piece, REACHED, ROOT, Recipe};
use crate::vocab::Trie;
use dwa_runtime::supply::{self, Edge, Filler, Source, Supply};
use dwa_runtime::{ALWAYS, END_VERDICT};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Supplies recipes and edges of one grammar for one vocabulary.
#[derive(Debug)]
pub struct Lazy {
    front: Arc<Front>,
    trie: Arc<Trie>,
    words: usize,
    config: Config,
}

impl Lazy {
    pub(crate) fn new(front: Arc<Front>, trie: Arc<Trie>, words: usize, config: Config) -> Self {
        Lazy { front, trie, words, config }
    }
}

impl Supply for Lazy {
    fn begin(&self) -> Box<dyn Filler> {
        Box::new(Demand {
            recipes: self.front.recipes(&self.trie, &self.config),
            symbolic: Symbolic::new(Arc::clone(&self.front.quotient), self.config.overlapping_sets),
            end: self.front.quotient.terminal_classes as u32 - 1,
            trie: Arc::clone(&self.trie),
            words: self.words,
            collector: Collector::new(self.words, &self.front.symbols),
            sources: FxHashMap::default(),
            domains: Vec::new(),
            domain_ids: FxHashMap::default(),
            states: Vec::new(),
            state_ids: FxHashMap::default(),
            outputs: FxHashMap::default(),
            bytes: 0,
        })
    }
}

/// A state of the automaton.
#[derive(Debug)]
struct State {
    domain: u32,
    /// What it is suspended in; nothing at the start of a domain.
    configurations: Arc<[Suspended]>,
}

/// Boundary classes that are decided together.
#[derive(Debug)]
struct Domain {
    /// Classes that do not always hold, ascending; their verdicts are 2 and up.
    classes: Vec<u32>,
    /// Root of its nodes in the simulation, numbered in a row.
    root: u32,
    /// State in which reading starts.
    start: u32,
    /// For each node what its outcomes wait for, and the verdicts that this decides.
    outcomes: Vec<Vec<(u32, Vec<u32>)>>,
}

impl Domain {
    fn verdict(&self, class: u32) -> u32 {
        self.classes.binary_search(&class).map_or(ALWAYS, |i| i as u32 + 2)
    }

    fn words(&self) -> usize {
        bits::words(self.classes.len() + 2)
    }
}

/// A partition as the runtime takes it.
#[derive(Debug)]
struct Shared {
    source: Arc<Source>,
    /// Class of each of its sets of tokens.
    classes: Vec<u32>,
    /// Positions in `classes` that occur at each first byte, as bits.
    by_byte: Vec<(u8, Vec<u64>)>,
    /// Verdicts of the classes in each domain it was used in.
    verdicts: FxHashMap<u32, Arc<[u32]>>,
}

#[derive(Debug)]
struct Demand {
    recipes: Builder,
    symbolic: Symbolic,
    /// Terminal class of the end of input.
    end: u32,
    trie: Arc<Trie>,
    words: usize,
    collector: Collector,
    sources: FxHashMap<u32, Shared>,
    domains: Vec<Domain>,
    domain_ids: FxHashMap<Vec<u32>, u32>,
    states: Vec<State>,
    state_ids: FxHashMap<Arc<[Suspended]>, u32>,
    /// Verdicts of each output met in a domain.
    outputs: FxHashMap<(u32, Output), Option<Arc<[u64]>>>,
    bytes: usize,
}

impl Filler for Demand {
    fn recipe(&mut self, x: u32) -> supply::Recipe {
        let recipe = self.recipes.recipe(x);
        let groups = recipe.groups.iter().filter_map(|group| self.group(&recipe, group)).collect();
        let dropped = (!recipe.lost.is_empty()).then(|| {
            self.collector.add(&self.trie, recipe.lost.iter().copied());
            self.collector.take()
        });
        supply::Recipe { groups, dropped }
    }

    fn edge(&mut self, state: u32, class: u32) -> Edge {
        let State { domain, configurations } = &self.states[state as usize];
        let (domain, configurations) = (*domain, Arc::clone(configurations));
        let starts = configurations.is_empty();
        let (suspended, output) = match starts {
            true => self.symbolic.read_first(self.domains[domain as usize].root, class),
            false => self.symbolic.read(&configurations, class),
        };
        self.bytes += 200;
        let next = if suspended.is_empty() { NONE } else { self.state(domain, suspended) };
        let always = !starts && configurations.iter().all(|c| c.pops > 0);
        Edge { next, output: self.output(domain, output), always }
    }

    fn bytes(&self) -> usize {
        self.bytes + self.symbolic.bytes()
    }
}

impl Demand {
    fn state(&mut self, domain: u32, suspended: Vec<Suspended>) -> u32 {
        let configurations: Arc<[Suspended]> = suspended.into();
        let next = self.states.len() as u32;
        *self.state_ids.entry(configurations).or_insert_with_key(|configurations| {
            self.bytes += size_of_val(&**configurations) + 128;
            self.states.push(State { domain, configurations: Arc::clone(configurations) });
            next
        })
    }

    /// The verdicts that an output of a domain establishes, if any.
    fn output(&mut self, domain: u32, output: Output) -> Option<Arc<[u64]>> {
        if output.is_empty() {
            return None;
        }
        let (symbolic, recipes, end) = (&self.symbolic, &self.recipes, self.end);
        let entry = self.outputs.entry((domain, output));
        let evaluate = |(domain, output): &(u32, Output)| {
            let domain = &self.domains[*domain as usize];
            let mut verdicts = vec![0; domain.words()];
            for &(node, set, reached) in output {
                let set = symbolic.sets.get(set);
                for (pending, decides) in &domain.outcomes[(node - domain.root) as usize] {
                    let holds = match *pending {
                        REACHED => reached,
                        terms => {
                            recipes.outcomes().labels.sets[terms as usize].terms.iter().any(|&t| bits::has(set, t))
                        }
                    };
                    if holds {
                        decides.iter().for_each(|&v| bits::insert(&mut verdicts, v));
                    }
                }
                if node == domain.root && bits::has(set, end) {
                    bits::insert(&mut verdicts, END_VERDICT);
                }
            }
            (!bits::is_empty(&verdicts)).then(|| verdicts.into())
        };
        entry.or_insert_with_key(evaluate).clone()
    }

    /// A group of a recipe; `None` if nothing can hold in it.
    fn group(&mut self, recipe: &Recipe, group: &crate::terminal_dwa::Group) -> Option<supply::Group> {
        // The tokens that only this recipe has, by class.
        let mut own: Vec<(u32, u32, u32)> = Vec::new();
        for difference in &recipe.own {
            let here = difference.classes.iter().filter(|(emit, _)| *emit == group.emit);
            own.extend(here.map(|&(_, class)| (class, difference.lo, difference.hi)));
        }
        own.sort_unstable();
        for piece in &group.pieces {
            self.prepare(piece.partition);
        }
        let of_pieces = group.pieces.iter().flat_map(|piece| &self.sources[&piece.partition].classes);
        let mut classes: Vec<u32> = of_pieces.copied().chain(own.iter().map(|o| o.0)).collect();
        classes.sort_unstable();
        classes.dedup();
        if classes.is_empty() && !group.ends {
            return None;
        }
        let id = self.domain(classes);
        let mut relevant = vec![0; self.domains[id as usize].words()];
        if group.ends {
            bits::insert(&mut relevant, END_VERDICT);
        }
        let pieces = group.pieces.iter().map(|piece| self.piece(piece, id, &mut relevant)).collect();
        let domain = &self.domains[id as usize];
        // Classes that always hold are one verdict.
        let mut by_verdict: Vec<(u32, u32, u32)> = own.iter().map(|&(c, lo, hi)| (domain.verdict(c), lo, hi)).collect();
        by_verdict.sort_unstable();
        let start = domain.start;
        let mut own = Vec::new();
        for class in by_verdict.chunk_by(|a, b| a.0 == b.0) {
            bits::insert(&mut relevant, class[0].0);
            self.collector.add(&self.trie, class.iter().map(|&(_, lo, hi)| (lo, hi)));
            own.push((class[0].0, self.collector.take()));
        }
        let change = (group.emit != NONE).then(|| {
            let outcomes = self.recipes.outcomes();
            let change = outcomes.changes[group.emit as usize];
            let groups = (change.groups != NONE).then(|| outcomes.group_sets.get(change.groups).into());
            supply::Change { id: group.emit, set: change.set, groups }
        });
        Some(supply::Group { change, start, relevant: relevant.into(), ends: group.ends, pieces, own })
    }

    fn piece(&mut self, piece: &Piece, domain: u32, relevant: &mut [u64]) -> supply::Piece {
        let shared = self.sources.get_mut(&piece.partition).expect("the pieces' partitions were prepared");
        let verdicts = shared.verdicts.entry(domain).or_insert_with(|| {
            let domain = &self.domains[domain as usize];
            shared.classes.iter().map(|&class| domain.verdict(class)).collect()
        });
        for (byte, classes) in &shared.by_byte {
            if piece.bytes.is_none_or(|bytes| bytes[*byte as usize / 64] >> (byte % 64) & 1 == 1) {
                bits::iter(classes).for_each(|i| bits::insert(relevant, verdicts[i as usize]));
            }
        }
        let (source, verdicts) = (Arc::clone(&shared.source), Arc::clone(verdicts));
        supply::Piece { source, verdicts, bytes: piece.bytes }
    }

    /// Make a partition's source.
    fn prepare(&mut self, partition: u32) {
        if self.sources.contains_key(&partition) {
            return;
        }
        let segments = self.recipes.segments(partition);
        let mut by_class: Vec<(u32, u32, u32)> = segments.iter().map(|s| (s.class, s.lo, s.hi)).collect();
        by_class.sort_unstable();
        let mut classes: Vec<u32> = by_class.iter().map(|c| c.0).collect();
        classes.dedup();
        let mut by_byte: Vec<(u8, Vec<u64>)> = Vec::new();
        let mut segments = segments.iter().peekable();
        for child in self.trie.first_bytes() {
            let tokens = self.trie.tokens_of(child);
            let mut set = vec![0; bits::words(classes.len())];
            while let Some(segment) = segments.peek().filter(|s| s.lo < tokens.end) {
                let position = classes.partition_point(|&c| c < segment.class);
                bits::insert(&mut set, position as u32);
                if segment.hi > tokens.end {
                    break;
                }
                segments.next();
            }
            if !bits::is_empty(&set) {
                by_byte.push((self.trie.byte[child as usize], set));
            }
        }
        let mut sets = Vec::new();
        for class in by_class.chunk_by(|a, b| a.0 == b.0) {
            let intervals: Vec<(u32, u32)> = class.iter().map(|&(_, lo, hi)| (lo, hi)).collect();
            let (trie, collector) = (&self.trie, &mut self.collector);
            sets.push(trie.known.get(&intervals, || {
                collector.add(trie, intervals.iter().copied());
                collector.take()
            }));
        }
        let source = Arc::new(Source::new(sets, self.words));
        self.bytes += source.bytes() + by_class.len() * 12;
        self.sources.insert(partition, Shared { source, classes, by_byte, verdicts: FxHashMap::default() });
    }

    /// The domain of these classes.
    fn domain(&mut self, classes: Vec<u32>) -> u32 {
        if let Some(&id) = self.domain_ids.get(&classes) {
            return id;
        }
        let outcomes = self.recipes.outcomes();
        let always = |class: &u32| {
            outcomes.classes[*class as usize].iter().any(|&o| outcomes.outcomes[o as usize] == (ROOT, REACHED))
        };
        let deciding: Vec<u32> = classes.iter().copied().filter(|class| !always(class)).collect();
        let of_classes = deciding.iter().flat_map(|&class| outcomes.classes[class as usize].iter().copied());
        let (root, places) = self.symbolic.add_domain(outcomes, of_classes);
        let mut decided: Vec<FxHashMap<u32, Vec<u32>>> = vec![FxHashMap::default(); places.len()];
        for (class, verdict) in deciding.iter().zip(2..) {
            for &outcome in &outcomes.classes[*class as usize] {
                let (place, pending) = outcomes.outcomes[outcome as usize];
                let node = places.partition_point(|&p| p < place);
                decided[node].entry(pending).or_default().push(verdict);
            }
        }
        let id = self.domains.len() as u32;
        let start = self.states.len() as u32;
        self.states.push(State { domain: id, configurations: Arc::new([]) });
        self.bytes += places.len() * 200 + classes.len() * 40;
        let outcomes = decided.into_iter().map(|node| node.into_iter().collect()).collect();
        self.domains.push(Domain { classes: deciding, root, start, outcomes });
        self.domain_ids.insert(classes, id);
        id
    }
}
