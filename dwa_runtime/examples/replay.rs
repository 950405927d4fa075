//! Replays token sequences against an artifact in fresh loads, for profiling: ARTIFACT VOCAB(id hex lines) SEQUENCES PASSES.
use dwa_runtime::artifact::Buffer;
use dwa_runtime::{Compiled, Matcher, Vocab};
use std::sync::Arc;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&args[1]).unwrap();
    let mut tokens: Vec<Vec<u8>> = Vec::new();
    for line in std::fs::read_to_string(&args[2]).unwrap().lines() {
        let (id, hex) = line.split_once(' ').unwrap();
        let id: usize = id.parse().unwrap();
        tokens.resize(tokens.len().max(id + 1), Vec::new());
        tokens[id] = (0..hex.len() / 2).map(|k| u8::from_str_radix(&hex[2 * k..2 * k + 2], 16).unwrap()).collect();
    }
    let size: usize = args.get(5).map_or(tokens.len(), |s| s.parse().unwrap());
    tokens.resize(size, Vec::new());
    let eos: Vec<u32> = args.get(6).map_or(Vec::new(), |s| s.split(',').map(|x| x.parse().unwrap()).collect());
    let vocab = Arc::new(Vocab::new(&tokens, &eos).unwrap());
    let sequences: Vec<Vec<u32>> = std::fs::read_to_string(&args[3])
        .unwrap()
        .lines()
        .map(|l| l.split(' ').map(|x| x.parse().unwrap()).collect())
        .collect();
    let mut out = vec![0u32; vocab.words()];
    let mut minima: Vec<u64> = Vec::new();
    for pass in 0..args[4].parse::<usize>().unwrap() {
        let t = Instant::now();
        let compiled = Arc::new(Compiled::new(Buffer::from_bytes(&bytes), vocab.clone()).unwrap());
        let load = t.elapsed();
        let mut times = Vec::new();
        for sequence in &sequences {
            let mut matcher = Matcher::new(compiled.clone());
            for &id in sequence {
                let t = Instant::now();
                matcher.fill_bitmask(&mut out).unwrap();
                let ok = matcher.accept_token(id).unwrap();
                times.push(t.elapsed().as_nanos() as u64);
                if !ok {
                    break;
                }
            }
        }
        if minima.is_empty() {
            minima.clone_from(&times);
        }
        minima.iter_mut().zip(&times).for_each(|(m, t)| *m = (*m).min(*t));
        let show = |name: &str, times: &[u64]| {
            let mut t = times.to_vec();
            t.sort_unstable();
            let q = |p: f64| t[((t.len() - 1) as f64 * p) as usize];
            println!("{name} p50 {} p90 {} p99 {} p99.9 {} max {}", q(0.5), q(0.9), q(0.99), q(0.999), q(1.0));
        };
        println!("load {load:?}");
        show(&format!("pass {pass}"), &times);
        show("minima", &minima);
    }
}
