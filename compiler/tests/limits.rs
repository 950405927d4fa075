//! What counting does to limits.

use compiler::vocab::Trie;
use compiler::{Config, Schedule, Source, compile};
use dwa_runtime::Vocab;
use std::sync::Arc;

/// Three terminals that count side by side: a state for each triple of their last values, where copies take 65 states.
const GRAMMAR: &str = r#"{"start":0,"lexer":"basic","terminals":[
{"name":"A","expr":["cat",[["repeat",["lit","a"],20,60],["lit","1"]]],"priority":0,"literal":false,"ignored":false,
 "reject":false,"fallback":null,"position":null},
{"name":"B","expr":["cat",[["repeat",["lit","a"],0,62],["lit",";"]]],"priority":0,"literal":false,"ignored":false,
 "reject":false,"fallback":null,"position":null},
{"name":"C","expr":["cat",[["repeat",["lit","a"],0,64],["lit","."]]],"priority":0,"literal":false,"ignored":false,
 "reject":false,"fallback":null,"position":null}],
"nonterminals":[{"name":"s","position":null}],
"productions":[{"lhs":0,"rhs":[0],"name":"s"},{"lhs":0,"rhs":[1],"name":"s"},{"lhs":0,"rhs":[2],"name":"s"}]}"#;

#[test]
fn what_counting_makes_too_large_is_copied() {
    let tokens = [&b"a"[..], b"aaaaaaaa", b"1", b";", b".", b""].map(<[u8]>::to_vec);
    let vocab = Arc::new(Vocab::new(&tokens, &[5]).expect("a small vocabulary"));
    let trie = Arc::new(Trie::new(&vocab));
    let source = Source::read(GRAMMAR.to_owned()).expect("canonical text");
    let states = |max_watched_states| {
        let config = Config { copied_states: 0, max_watched_states, ..Config::default() };
        let built = compile(&source, &vocab, &trie, Schedule::AheadOfTime, &config, &mut |_, _| true);
        let sizes = built.expect("a small grammar").stats.sizes;
        sizes.iter().find(|(what, _)| *what == "lexer_states").expect("a count of them").1
    };
    assert!(states(1_000_000) > 500);
    assert!(states(500) < 100);
}
