//! Independent parts of a build, on several threads. Results come in the order of the parts, so the number of threads changes
//! nothing.

use crate::control;
use rayon::prelude::*;

/// `work` on each item. What stops the build stops its threads too.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let Some(build) = control::current().filter(|build| build.threads != Some(1) && items.len() > 1) else {
        return items.iter().map(work).collect();
    };
    let all = || items.par_iter().map(|item| build.run(|| work(item))).collect();
    match build.threads.map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build()) {
        Some(Ok(pool)) => pool.install(all),
        // A pool that cannot be started leaves the common one.
        Some(Err(_)) | None => all(),
    }
}

/// Two independent parts of a build, at once if they are `large`.
pub(crate) fn join<A: Send, B: Send>(
    large: bool,
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    match control::current().filter(|build| large && build.threads != Some(1)) {
        Some(build) => rayon::join(|| build.run(a), || build.run(b)),
        None => (a(), b()),
    }
}
