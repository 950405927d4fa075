//! A matcher that is reset and given the same texts again allocates nothing for masks and commits.
//!
//! With the bundled vocabulary, and with Llama 3's where `GLRGRID_DATA` names the folder that has it.

use compiler::vocab::Trie;
use compiler::{Config, Schedule, Source};
use dwa_runtime::artifact::Buffer;
use dwa_runtime::{Compiled, Matcher, Vocab};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Steps after which the last few are undone and taken again, as with refused drafts.
const DRAFT: usize = 5;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

/// The vocabulary of a byte-level tokenizer, in which characters stand for bytes. Its first added token ends the output.
fn vocabulary(path: impl AsRef<Path>) -> Vocab {
    let file: serde_json::Value = serde_json::from_str(&read(path)).unwrap();
    let printable = |b: &u32| matches!(b, 33..=126 | 161..=172 | 174..=255);
    let (shown, hidden): (Vec<u32>, Vec<u32>) = (0..256).partition(printable);
    let mut bytes: HashMap<char, u8> = shown.iter().map(|&b| (char::from_u32(b).unwrap(), b as u8)).collect();
    bytes.extend(hidden.iter().zip(256..).map(|(&b, c)| (char::from_u32(c).unwrap(), b as u8)));

    let id = |value: &serde_json::Value| value.as_u64().unwrap() as usize;
    let added: Vec<usize> = file["added_tokens"].as_array().unwrap().iter().map(|token| id(&token["id"])).collect();
    let vocab = file["model"]["vocab"].as_object().unwrap();
    let size = vocab.values().map(id).chain(added.iter().copied()).max().unwrap() + 1;
    let mut tokens: Vec<Vec<u8>> = vec![Vec::new(); size];
    for (text, value) in vocab {
        if !added.contains(&id(value)) {
            tokens[id(value)] = text.chars().map(|c| bytes[&c]).collect();
        }
    }
    Vocab::new(&tokens, &[added[0] as u32]).unwrap()
}

/// Text as ids, the longest token each time.
fn encode(vocab: &Vocab, ids: &HashMap<&[u8], u32>, text: &str) -> Vec<u32> {
    let mut rest = text.as_bytes();
    let mut encoded = Vec::new();
    while !rest.is_empty() {
        let longest = (1..=rest.len().min(vocab.longest())).rev().find_map(|n| Some((n, *ids.get(&rest[..n])?)));
        let (length, id) = longest.expect("every byte is a token");
        encoded.push(id);
        rest = &rest[length..];
    }
    encoded
}

fn compiled(grammar: &str, vocab: &Arc<Vocab>, trie: &Arc<Trie>) -> Compiled {
    let source = Source::read(read(root().join(format!("tests/corpus/ir/{grammar}.json")))).unwrap();
    let artifact =
        compiler::compile(&source, vocab, trie, Schedule::AheadOfTime, &Config::default(), &mut |_, _| true).unwrap();
    Compiled::new(Buffer::from_bytes(&artifact.bytes), Arc::clone(vocab)).unwrap()
}

/// Mask and commit every token of every text, with drafts that are undone; end the output where it may end.
fn pass(matcher: &mut Matcher, row: &mut [u32], texts: &[Vec<u32>], end: u32) {
    for text in texts {
        matcher.reset();
        for (i, &id) in text.iter().enumerate() {
            matcher.fill_bitmask(row).unwrap();
            assert!(row[id as usize / 32] >> (id % 32) & 1 == 1);
            assert!(matcher.accept_token(id).unwrap());
            if i % DRAFT == DRAFT - 1 {
                matcher.rollback(DRAFT - 1).unwrap();
                for &id in &text[i + 2 - DRAFT..=i] {
                    matcher.fill_bitmask(row).unwrap();
                    assert!(matcher.accept_token(id).unwrap());
                }
            }
        }
        if matcher.is_accepting() {
            assert!(matcher.accept_token(end).unwrap());
        }
    }
}

fn check(tokenizer: impl AsRef<Path>, statements: impl AsRef<Path>) {
    let vocab = Arc::new(vocabulary(tokenizer));
    let trie = Arc::new(Trie::new(&vocab));
    let ids: HashMap<&[u8], u32> = (0..vocab.size() as u32).map(|id| (vocab.token(id), id)).collect();
    let list = format!("[{}1.5e-3]", "{\"a\": [true, null]}, \"x\\u00e4\", ".repeat(40));
    let nested = format!("{}1{}", "[".repeat(12), "]".repeat(12));
    let cases: [(&str, Vec<String>); 4] = [
        ("sql_core", read(statements).lines().map(String::from).collect()),
        ("json", vec![list, nested, "{\"key\": {\"key\": -12.0}}".into()]),
        ("calc", vec!["1 + 2 * (3 - f(x, 1.5e3)) ^ 2".into(), "((((1))))".into()]),
        ("script", vec!["let x = 1; while (x < 10) { x = x + 1; } if (a) if (b) c(); else d();".into()]),
    ];
    for (grammar, texts) in cases {
        let texts: Vec<Vec<u32>> = texts.iter().map(|text| encode(&vocab, &ids, text)).collect();
        let mut matcher = Matcher::new(Arc::new(compiled(grammar, &vocab, &trie)));
        let mut row = vec![0; vocab.words()];
        let mut measured = || {
            matcher.reset();
            let counted = allocation_counter::measure(|| pass(&mut matcher, &mut row, &texts, vocab.eos_ids()[0]));
            counted.count_total
        };
        let (first, second) = (measured(), measured());
        println!("{grammar}: {} texts, {first} allocations, then {second}", texts.len());
        assert!(first > 0, "allocations are not counted");
        assert_eq!(second, 0, "{grammar}: allocations on the second pass");
    }
}

#[test]
fn a_second_pass_allocates_nothing() {
    check(root().join("glrgrid/data/default.tokenizer.json"), root().join("bench/statements.sql"));
    match std::env::var_os("GLRGRID_DATA") {
        Some(data) => {
            let data = Path::new(&data);
            check(data.join("vocabs/llama3.tokenizer.json"), data.join("sql/statements.txt"));
        }
        None => println!("GLRGRID_DATA is not set: with the bundled vocabulary only"),
    }
}
