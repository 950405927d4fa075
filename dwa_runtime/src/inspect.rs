//! An artifact for people: what it holds, and drawings of its automata.

use crate::artifact::{Buffer, Header};
use crate::error::ArtifactError;
use crate::matcher::map_file;
use crate::tables::{END_VERDICT, Meta, NONE, Step, Tables};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Members that a label lists.
const LISTED: usize = 6;

/// An artifact opened without its vocabulary. It is checked as for serving.
#[derive(Debug)]
pub struct Opened {
    tables: Tables,
    meta: Meta,
    header: Header,
    size: usize,
}

impl Opened {
    /// Open the artifact in `buffer`.
    ///
    /// # Errors
    /// [`ArtifactError`] if it is damaged or of another version.
    pub fn new(buffer: Buffer) -> Result<Self, ArtifactError> {
        let size = buffer.bytes().len();
        let (tables, meta, header) = Tables::open(&Arc::new(buffer))?;
        Ok(Opened { tables, meta, header, size })
    }

    /// Map the file at `path` and open it.
    ///
    /// # Errors
    /// As [`new`](Self::new), and those of reading the file.
    pub fn load(path: &Path) -> Result<Self, ArtifactError> {
        Self::new(map_file(path)?)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of the artifact.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes of each section.
    pub fn section_sizes(&self) -> Vec<(&'static str, usize)> {
        self.tables.section_sizes()
    }

    /// How many there are of what.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        counts(&self.tables, &self.meta)
    }

    /// Names of the terminals.
    pub fn terminals(&self) -> Vec<&str> {
        self.names().into_iter().take(self.meta.terminals as usize).collect()
    }

    fn names(&self) -> Vec<&str> {
        std::str::from_utf8(&self.tables.names).unwrap_or_default().split_terminator('\n').collect()
    }

    /// The watched lexer in Graphviz's language, or how many states it has if they are more than `max_states`.
    pub fn lexer_dot(&self, max_states: usize) -> Result<String, usize> {
        let (t, states) = (&self.tables, self.tables.lexer_row.len());
        if states > max_states {
            return Err(states);
        }
        let mut dot = Dot::new("lexer");
        for x in 0..states {
            let (cand, live) = (t.lexer_cand.get(x), t.lexer_live.get(x));
            let label = match (cand, live) {
                (NONE, NONE) => "between lexemes".to_string(),
                (NONE, _) => format!("{x}"),
                _ => format!("{x}\n{}", self.set_label(cand)),
            };
            dot.node(x, &label, cand != NONE);
        }
        for x in 0..states {
            let mut edges: BTreeMap<(u32, String), [bool; 256]> = BTreeMap::new();
            for byte in 0..=255u8 {
                let mut add = |to: u32, emits: String| {
                    edges.entry((to, emits)).or_insert([false; 256])[usize::from(byte)] = true;
                };
                match t.lexer_step(&self.meta, x as u32, byte) {
                    Step::Dead => {}
                    Step::To(to) => add(to, String::new()),
                    Step::Entry(entry) => {
                        for i in t.entry_start.list(entry) {
                            let emits = [t.entry_emit.get(i), t.entry_emit2.get(i)];
                            let emissions = emits.into_iter().filter(|&e| e != NONE);
                            let names = emissions.map(|e| self.set_label(t.change_set.get(e as usize)));
                            add(t.entry_next.get(i), names.map(|name| format!("\nemits {name}")).collect());
                        }
                    }
                }
            }
            for ((to, emits), bytes) in edges {
                let to = t.lexer_state(to) as usize;
                dot.edge(x, to, &format!("{}{emits}", byte_label(&bytes)), false);
            }
        }
        Ok(dot.finish())
    }

    /// The Parser DWA in Graphviz's language, or how many states it has if they are more than `max_states`. Edges are
    /// labelled with the LR states read, each named by the symbol that leads to it, and with the verdicts.
    pub fn parser_dot(&self, max_states: usize) -> Result<String, usize> {
        let (t, states) = (&self.tables, self.tables.dwa_default_next.len());
        if states > max_states {
            return Err(states);
        }
        let mut dot = Dot::new("parser");
        for x in 0..states {
            dot.node(x, &if x == 0 { "top of the stack".to_string() } else { x.to_string() }, false);
        }
        let classes = self.class_labels();
        let mut dead = false;
        for x in 0..states {
            let mut edges: BTreeMap<(u32, u32), Vec<&str>> = BTreeMap::new();
            for i in t.dwa_start.list(x as u32) {
                let label = classes.get(t.dwa_symbol.get(i) as usize).map_or("?", String::as_str);
                edges.entry((t.dwa_next.get(i), t.dwa_output.get(i))).or_default().push(label);
            }
            let default = (t.dwa_default_next.get(x), t.dwa_default_output.get(x));
            if default != (NONE, NONE) {
                edges.entry(default).or_default().push("any other");
            }
            for ((to, output), labels) in edges {
                if to == NONE && output == NONE {
                    continue;
                }
                dead |= to == NONE;
                let to = if to == NONE { states } else { to as usize };
                let label = format!("{}{}", few(&labels, " "), self.output_label(output));
                dot.edge(x, to, &label, labels.contains(&"any other"));
            }
        }
        if dead {
            dot.node(states, "decided", true);
        }
        Ok(dot.finish())
    }

    fn set_label(&self, set: u32) -> String {
        let names = self.names();
        let mut members: Vec<&str> = self.tables.set(set).map(|t| names[t as usize]).collect();
        if self.tables.set_ignored[set as usize] != 0 {
            members.push("ignored text");
        }
        few(&members, " | ")
    }

    fn output_label(&self, output: u32) -> String {
        if output == NONE {
            return String::new();
        }
        let words = self.meta.verdict_words();
        let set = &self.tables.output_verdicts[output as usize * words..][..words];
        let name = |v: u32| if v == END_VERDICT { "end".to_string() } else { format!("v{v}") };
        let verdicts: Vec<String> =
            (0..self.meta.verdicts).filter(|&v| set[v as usize / 64] >> (v % 64) & 1 == 1).map(name).collect();
        format!("\n{{{}}}", few(&verdicts.iter().map(String::as_str).collect::<Vec<_>>(), ", "))
    }

    /// For each class of LR states: its members, each with the symbol that leads to it.
    fn class_labels(&self) -> Vec<String> {
        let (t, names) = (&self.tables, self.names());
        let mut symbol = vec!["start"; t.lr_class.len()];
        for (terminal, to) in t.shift_term.iter().zip(t.shift_to.iter()) {
            if let (Some(symbol), Some(name)) = (symbol.get_mut(to as usize), names.get(terminal as usize)) {
                *symbol = name;
            }
        }
        for (nonterminal, to) in t.goto_nonterminal.iter().zip(t.goto_to.iter()) {
            symbol[to as usize] = names[(self.meta.terminals + nonterminal) as usize];
        }
        let mut members: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (state, class) in t.lr_class.iter().enumerate() {
            members.entry(class).or_default().push(format!("{}#{state}", symbol[state]));
        }
        let count = members.keys().next_back().map_or(0, |&c| c as usize + 1).min(t.lr_class.len());
        let label =
            |c: usize| members.get(&(c as u32)).map(|m| few(&m.iter().map(String::as_str).collect::<Vec<_>>(), " "));
        (0..count).map(|c| label(c).unwrap_or_default()).collect()
    }
}

/// How many of what some tables hold.
pub(crate) fn counts(t: &Tables, m: &Meta) -> Vec<(&'static str, usize)> {
    vec![
        ("terminals", m.terminals as usize),
        ("nonterminals", m.nonterminals as usize),
        ("productions", m.productions as usize),
        ("byte_classes", m.classes as usize),
        ("lexer_states", t.lexer_row.len()),
        ("far_lexer_states", t.far_state.len()),
        ("lr_states", t.lr_class.len()),
        ("dwa_states", t.dwa_default_next.len()),
        ("dwa_edges", t.dwa_next.len()),
        ("verdict_classes", m.verdicts as usize),
        ("sources", t.source_start.len() - 1),
        ("source_classes", t.class_verdict.len()),
        ("dense_rows", t.dense.len() / m.vocab_words as usize + t.dense_base.len()),
        ("sparse_words", t.run_word.len()),
    ]
}

fn few(members: &[&str], between: &str) -> String {
    match members.len().checked_sub(LISTED) {
        None | Some(0) => members.join(between),
        Some(more) => format!("{}{between}… {more} more", members[..LISTED].join(between)),
    }
}

/// Ranges of bytes.
fn byte_label(bytes: &[bool; 256]) -> String {
    let name = |byte: usize| match byte {
        0x21..=0x7e => (byte as u8 as char).to_string(),
        0x20 => "space".to_string(),
        0x09 => "tab".to_string(),
        0x0a => "newline".to_string(),
        _ => format!("{byte:02x}"),
    };
    let mut ranges: Vec<String> = Vec::new();
    let mut from = 0;
    while from < 256 {
        if !bytes[from] {
            from += 1;
            continue;
        }
        let to = (from..256).find(|&b| !bytes[b]).unwrap_or(256) - 1;
        ranges.push(match to - from {
            0 => name(from),
            1 => format!("{} {}", name(from), name(to)),
            _ => format!("{}–{}", name(from), name(to)),
        });
        from = to + 1;
    }
    few(&ranges.iter().map(String::as_str).collect::<Vec<_>>(), " ")
}

/// A drawing being written.
struct Dot(String);

impl Dot {
    fn new(name: &str) -> Self {
        Dot(format!(
            "digraph {name} {{\n  rankdir=LR;\n  node [shape=ellipse, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n"
        ))
    }

    fn escape(text: &str) -> String {
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\\\r")
    }

    fn node(&mut self, id: usize, label: &str, double: bool) {
        let shape = if double { ", peripheries=2" } else { "" };
        writeln!(self.0, "  n{id} [label=\"{}\"{shape}];", Self::escape(label)).ok();
    }

    fn edge(&mut self, from: usize, to: usize, label: &str, dashed: bool) {
        let style = if dashed { ", style=dashed" } else { "" };
        writeln!(self.0, "  n{from} -> n{to} [label=\"{}\"{style}];", Self::escape(label)).ok();
    }

    fn finish(mut self) -> String {
        self.0.push_str("}\n");
        self.0
    }
}
