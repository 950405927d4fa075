//! Builds an artifact from an IR file and a vocabulary file (lines of `id hex`), repeatedly, for profiling.
use compiler::{Config, Source, compile, vocab::Trie};
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
    let vocab = dwa_runtime::Vocab::new(&tokens, &[]).unwrap();
    let trie = std::sync::Arc::new(Trie::new(&vocab));
    let n: usize = args.get(3).map_or(1, |s| s.parse().unwrap());
    for i in 0..n {
        let a =
            compile(&Source::read(ir.clone()).unwrap(), &vocab, &trie, &Config::default(), &mut |_, _| true).unwrap();
        if i + 1 == n {
            println!("{:?}\n{:?}", a.stats.milliseconds, a.stats.sizes);
        }
    }
}
