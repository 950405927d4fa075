//! No forged artifact does harm: damage is refused, and what loads because its hashes are right serves without a panic.
//!
//! `make valgrind` runs these tests under valgrind, which sees reads out of bounds. They are a smaller twin of
//! `tests/python/test_artifact.py`, whose cases run in processes of their own.

mod forge;

use dwa_runtime::Vocab;
use dwa_runtime::artifact;
use forge::{GRAMMARS, Random, build, change, drive, rehash, split, vocab};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};
use std::time::Duration;

const CASES: u64 = 500;
/// After this long a case counts as hung. Under valgrind, on a busy machine, a sound one may take seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Drive forged artifacts, each named before it runs; abort if one hangs. Returns how many were loaded.
fn drive_all(vocab: &Arc<Vocab>, texts: &[&[u8]], forged: impl Iterator<Item = (String, Vec<u8>)>) -> usize {
    let (begun, watched) = mpsc::channel::<String>();
    let watchdog = std::thread::spawn(move || {
        let mut case = String::new();
        loop {
            match watched.recv_timeout(PATIENCE) {
                Ok(next) => case = next,
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    eprintln!("{case} hangs");
                    std::process::abort();
                }
            }
        }
    });
    let mut loaded = 0;
    for (case, bytes) in forged {
        begun.send(case.clone()).expect("the watchdog lives");
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| drive(&bytes, vocab, texts)));
        loaded += usize::from(outcome.unwrap_or_else(|_| panic!("{case} panics")));
    }
    drop(begun);
    watchdog.join().expect("the watchdog does not panic");
    loaded
}

#[test]
fn what_was_compiled_loads() {
    let vocab = vocab();
    for (name, grammar, texts) in GRAMMARS {
        for shared in [true, false] {
            let bytes = build(grammar, &vocab, shared);
            let (header, sections) = split(&bytes);
            assert_eq!(artifact::write(artifact::FORMAT, &header, &sections), bytes);
            let mut same = bytes.clone();
            rehash(&mut same);
            assert_eq!(same, bytes);
            assert_eq!(drive_all(&vocab, texts, [(name.to_string(), bytes)].into_iter()), 1);
        }
    }
}

#[test]
fn flipped_bytes_and_truncations_are_refused() {
    let vocab = vocab();
    for (name, grammar, texts) in GRAMMARS {
        let bytes = build(grammar, &vocab, true);
        let mut random = Random(1);
        let flipped = (0..bytes.len()).map(|at| {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 + random.below(255) as u8;
            (format!("{name}: byte {at}"), bytes)
        });
        assert_eq!(drive_all(&vocab, texts, flipped), 0);
        let truncated = (0..bytes.len()).map(|length| (format!("{name}: {length} bytes"), bytes[..length].to_vec()));
        assert_eq!(drive_all(&vocab, texts, truncated), 0);
    }
}

#[test]
fn sections_that_lie_elsewhere_or_are_huge_are_refused() {
    let vocab = vocab();
    for (name, grammar, texts) in GRAMMARS {
        let bytes = build(grammar, &vocab, true);
        let forged = (0..split(&bytes).1.len()).flat_map(|section| {
            let entry = 128 + 56 * section;
            let huge = [1 << 31, 1 << 32, 1 << 63, u64::MAX, u64::MAX - 63, bytes.len() as u64];
            let values = huge.into_iter().flat_map(move |value| [(entry, value), (entry + 8, value)]);
            let bytes = &bytes;
            // An empty section may lie at the end: that one is there already.
            let is_other = move |&(at, value): &(usize, u64)| bytes[at..at + 8] != value.to_le_bytes();
            values.filter(is_other).map(move |(at, value)| {
                let mut bytes = bytes.clone();
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                rehash(&mut bytes);
                (format!("{name}: section {section}, {value:#x} at {at}"), bytes)
            })
        });
        assert_eq!(drive_all(&vocab, texts, forged), 0);
    }
}

#[test]
fn swapped_sections_do_no_harm() {
    let vocab = vocab();
    for (name, grammar, texts) in GRAMMARS {
        let (header, sections) = split(&build(grammar, &vocab, true));
        let pairs = (0..sections.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let forged = pairs.filter(|&(a, b)| sections[a] != sections[b]).map(|(a, b)| {
            let mut sections = sections.clone();
            sections.swap(a, b);
            (format!("{name}: sections {a} and {b}"), artifact::write(artifact::FORMAT, &header, &sections))
        });
        drive_all(&vocab, texts, forged);
    }
}

#[test]
fn changed_elements_do_no_harm() {
    let vocab = vocab();
    let mut loaded = 0;
    for (name, grammar, texts) in GRAMMARS {
        for shared in [true, false] {
            let (header, sections) = split(&build(grammar, &vocab, shared));
            let forged = (0..CASES / 8).map(|seed| {
                let mut random = Random(seed);
                let mut sections = sections.clone();
                let changes: Vec<String> =
                    (0..1 + random.below(2)).map(|_| change(&mut sections, &mut random)).collect();
                (
                    format!("{name}, seed {seed}: {}", changes.join(", ")),
                    artifact::write(artifact::FORMAT, &header, &sections),
                )
            });
            loaded += drive_all(&vocab, texts, forged) as u64;
        }
    }
    assert!(loaded > CASES / 10 && loaded < CASES * 9 / 10, "{loaded} of {CASES} were loaded");
}
