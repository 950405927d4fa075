//! Masks of many matchers at once, on a few threads.
//!
//! A warm row costs half a microsecond, nearly all of it memory traffic, of which a second core makes little more; a cold
//! one up to a thousand times as much. Where cores are busy, a thread takes milliseconds to wake. So the caller fills rows
//! itself, and calls helpers once what is left would take it as long as that. The rest is cut into chunks that caller and
//! helpers take in turn: a slow row delays its own chunk only. The helpers are a pool of their own, so that a grammar being
//! compiled on rayon's global pool does not stall masks.

use crate::error::MatcherError;
use crate::matcher::Matcher;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time that the rows left must be expected to take for helpers to be called.
const WORTH_HELP: Duration = Duration::from_millis(2);
/// Rows a thread takes at a time.
const CHUNK: usize = 8;

/// Helpers, and the process they live in: threads do not survive a fork.
static HELPERS: OnceLock<Option<(u32, ThreadPool)>> = OnceLock::new();

fn helpers() -> Option<&'static ThreadPool> {
    let build = || {
        let threads = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        let named = ThreadPoolBuilder::new().thread_name(|i| format!("glrgrid-batch-{i}"));
        let pool = if threads == 0 { None } else { named.num_threads(threads).build().ok() };
        pool.map(|pool| (std::process::id(), pool))
    };
    match HELPERS.get_or_init(build) {
        Some((process, pool)) if *process == std::process::id() => Some(pool),
        _ => None,
    }
}

/// Fill the row of each matcher, as [`Matcher::fill_bitmask`] does. In a process forked after helpers were first called,
/// the caller does it alone.
///
/// # Errors
/// With the position of the matcher concerned: [`MatcherError::RowLength`] and [`MatcherError::Terminated`] before
/// anything is written; [`MatcherError::DeadEnd`], of the first matcher that has one, after all other rows are filled.
pub fn fill_bitmasks(jobs: &mut [(&Matcher, &mut [u32])]) -> Result<(), (usize, MatcherError)> {
    for (i, (matcher, row)) in jobs.iter().enumerate() {
        matcher.check_fill(row).map_err(|e| (i, e))?;
    }
    let first = Mutex::new(None);
    let fill = |start: usize, jobs: &mut [(&Matcher, &mut [u32])]| {
        for (i, (matcher, row)) in jobs.iter_mut().enumerate() {
            if let Err(error) = matcher.fill_bitmask(row) {
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(at, _)| *at > start + i) {
                    *first = Some((start + i, error));
                }
            }
        }
    };
    let started = Instant::now();
    let mut done = 0;
    while done < jobs.len() {
        let end = jobs.len().min(done + CHUNK);
        fill(done, &mut jobs[done..end]);
        done = end;
        let left = jobs.len() - done;
        if left >= CHUNK && started.elapsed() * left as u32 / done as u32 > WORTH_HELP {
            break;
        }
    }
    let rest = &mut jobs[done..];
    let pool = if rest.is_empty() { None } else { helpers() };
    match pool {
        None => fill(done, rest),
        Some(pool) => {
            let count = pool.current_num_threads().min(rest.len().div_ceil(CHUNK) - 1).max(1);
            let chunks = Mutex::new(rest.chunks_mut(CHUNK).enumerate());
            let work = || {
                loop {
                    let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((i, chunk)) = next else { return };
                    fill(done + i * CHUNK, chunk);
                }
            };
            pool.in_place_scope(|scope| {
                for _ in 0..count {
                    scope.spawn(|_| work());
                }
                work();
            });
        }
    }
    first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
