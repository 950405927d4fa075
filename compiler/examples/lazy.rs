//! Compiles an IR file lazily and fills one mask, repeatedly, for profiling (see build.rs).
use compiler::{Config, compile_lazy, vocab::Trie};
use dwa_runtime::{Compiled, Matcher, artifact::Buffer};
use std::sync::Arc;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let ir = std::fs::read_to_string(&args[1]).unwrap();
    let mut tokens: Vec<Vec<u8>> = Vec::new();
    for line in std::fs::read_to_string(&args[2]).unwrap().lines() {
        let (id, hex) = line.split_once(' ').unwrap();
        let id: usize = id.parse().unwrap();
        tokens.resize(tokens.len().max(id + 1), Vec::new());
        tokens[id] = (0..hex.len() / 2).map(|k| u8::from_str_radix(&hex[2 * k..2 * k + 2], 16).unwrap()).collect();
    }
    let vocab = Arc::new(dwa_runtime::Vocab::new(&tokens, &[]).unwrap());
    let trie = Arc::new(Trie::new(&vocab));
    let n: usize = args.get(3).map_or(1, |s| s.parse().unwrap());
    let mut row = vec![0; vocab.words()];
    for i in 0..n {
        let (a, lazy) = compile_lazy(&ir, &vocab, &trie, &Config::default(), &mut |_, _| true).unwrap();
        let compiled = Compiled::on_demand(Buffer::from_bytes(&a.bytes), Arc::clone(&vocab), lazy).unwrap();
        let started = std::time::Instant::now();
        Matcher::new(Arc::new(compiled)).fill_bitmask(&mut row).unwrap();
        if i + 1 == n {
            println!("{:?} first mask {:?}", a.stats.milliseconds, started.elapsed());
        }
    }
}
