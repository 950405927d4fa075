//! Builds that can be stopped: by whoever asked for them, or because they take more than they may.
//!
//! A build runs on a thread of its own; the caller's thread looks after it every few milliseconds ([`supervise`]), passes
//! progress on, and decides whether it has to stop. The stages only call [`check`] in their loops. It leaves a build that
//! has to stop by unwinding, so that no stage has to hand "stopped" up through all of its functions, and it finds the build
//! it belongs to by thread: a pool's threads join one with [`Control::run`]. The caller does not wait for the memory of a
//! build that stopped to be given back.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// How often the caller's thread looks.
const INTERVAL: Duration = Duration::from_millis(10);
/// Bytes after which a build that may stay partial, and has no limits, leaves the rest to be filled on demand: few machines have
/// room for whatever a grammar could take.
pub(crate) const MOST_OPTIONAL: usize = 1 << 30;
/// Stack of a build's thread: expressions nest up to a limit.
const STACK_BYTES: usize = 32 << 20;

/// What a build may take.
#[derive(Debug, Clone, Default)]
pub struct Budget {
    /// Seconds. When a build may stay partial, what it needs to serve at all does not count.
    pub max_seconds: Option<f64>,
    /// Bytes allocated while it runs.
    pub max_memory: Option<usize>,
    /// Bytes of the artifact.
    pub max_artifact: Option<usize>,
    /// Whether a build that passes one of these leaves the rest to be filled on demand, or fails.
    pub partial: bool,
    /// Bytes that the process has allocated now, for `max_memory` and the statistics; `None` if nobody counts.
    pub allocated: Option<fn() -> usize>,
}

impl Budget {
    /// Whether the build may stay partial and nobody said when, so that the defaults hold.
    pub(crate) fn is_default(&self) -> bool {
        let limits = [self.max_seconds.is_some(), self.max_memory.is_some(), self.max_artifact.is_some()];
        self.partial && limits == [false; 3]
    }
}

/// Why a build stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The caller asked for it.
    Cancelled,
    /// `max_seconds` have passed.
    Seconds,
    /// `max_memory` was passed.
    Memory,
}

/// A stage's peak.
#[derive(Debug, Clone, Copy)]
struct Stage {
    name: &'static str,
    started: Instant,
    milliseconds: f64,
    peak: usize,
}

/// A build as seen from both threads.
#[derive(Debug)]
pub struct Control {
    stop: AtomicBool,
    /// Whether it is leaving because of that.
    left: AtomicBool,
    done: AtomicU32,
    of: AtomicU32,
    /// Highest number of bytes allocated in this stage.
    peak: AtomicUsize,
    allocated: Option<fn() -> usize>,
    at_first: usize,
    /// Whether passing `max_seconds` stops it now.
    optional: AtomicBool,
    stages: Mutex<Vec<Stage>>,
    /// Threads it may use; `None`: one for each core.
    pub threads: Option<usize>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Control>>> = const { RefCell::new(None) };
}

/// What leaves a build that has to stop.
struct Stopped;

/// Leave the build if it has to stop. Costs a few nanoseconds; loops that can take long call it at every turn.
#[inline]
pub(crate) fn check() {
    CURRENT.with_borrow(|current| {
        if let Some(control) = current {
            control.check();
        }
    });
}

/// Say how much of the current stage is done.
pub(crate) fn progress(done: usize, of: usize) {
    CURRENT.with_borrow(|current| {
        if let Some(control) = current {
            control.done.store(done.min(u32::MAX as usize) as u32, Ordering::Relaxed);
            control.of.store(of.min(u32::MAX as usize) as u32, Ordering::Relaxed);
            control.check();
        }
    });
}

/// Begin a stage.
pub(crate) fn begin(stage: &'static str) {
    CURRENT.with_borrow(|current| {
        if let Some(control) = current {
            control.begin(stage);
            control.check();
        }
    });
}

/// The build this thread works for.
pub(crate) fn current() -> Option<Arc<Control>> {
    CURRENT.with_borrow(Clone::clone)
}

impl Control {
    fn new(budget: &Budget, threads: Option<usize>) -> Self {
        Control {
            stop: AtomicBool::new(false),
            left: AtomicBool::new(false),
            done: AtomicU32::new(0),
            of: AtomicU32::new(0),
            peak: AtomicUsize::new(0),
            allocated: budget.allocated,
            at_first: budget.allocated.map_or(0, |allocated| allocated()),
            optional: AtomicBool::new(!budget.partial),
            stages: Mutex::new(Vec::new()),
            threads,
        }
    }

    /// Bytes allocated since the build began.
    fn taken(&self) -> usize {
        self.allocated.map_or(0, |allocated| allocated().saturating_sub(self.at_first))
    }

    fn stages(&self) -> std::sync::MutexGuard<'_, Vec<Stage>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) {
        if self.allocated.is_some() {
            self.peak.fetch_max(self.taken(), Ordering::Relaxed);
        }
        if self.stop.load(Ordering::Relaxed) {
            self.left.store(true, Ordering::Relaxed);
            resume_unwind(Box::new(Stopped));
        }
    }

    fn begin(&self, name: &'static str) {
        self.end();
        self.done.store(0, Ordering::Relaxed);
        self.peak.store(self.taken(), Ordering::Relaxed);
        self.stages().push(Stage { name, started: Instant::now(), milliseconds: -1.0, peak: 0 });
    }

    fn end(&self) {
        let peak = self.peak.load(Ordering::Relaxed).max(self.taken());
        if let Some(stage) = self.stages().last_mut().filter(|stage| stage.milliseconds < 0.0) {
            (stage.milliseconds, stage.peak) = (stage.started.elapsed().as_secs_f64() * 1e3, peak);
        }
    }

    /// What follows is not needed to serve: it stops when the time is over.
    pub(crate) fn rest_is_optional(&self) {
        self.optional.store(true, Ordering::Relaxed);
    }

    /// Do `work` on this thread as part of the build.
    pub(crate) fn run<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        let before = CURRENT.replace(Some(Arc::clone(self)));
        let result = catch_unwind(AssertUnwindSafe(work));
        CURRENT.set(before);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The stage it is in.
    pub(crate) fn stage(&self) -> &'static str {
        self.stages().last().map_or("", |stage| stage.name)
    }

    /// Name, milliseconds and highest number of bytes allocated of each stage.
    pub(crate) fn summary(&self) -> Vec<(&'static str, f64, usize)> {
        self.end();
        self.stages().iter().map(|stage| (stage.name, stage.milliseconds, stage.peak)).collect()
    }

    fn decide(&self, budget: &Budget, started: Instant) -> Option<Stop> {
        let optional = self.optional.load(Ordering::Relaxed);
        let most_memory = budget.max_memory.or((budget.is_default() && optional).then_some(MOST_OPTIONAL));
        if most_memory.is_some_and(|most| self.taken() > most) {
            return Some(Stop::Memory);
        }
        let late = budget.max_seconds.is_some_and(|most| started.elapsed().as_secs_f64() > most);
        (late && optional).then_some(Stop::Seconds)
    }
}

/// Run a build. `tell` hears of each stage and its share done, from 0 when it begins to 1 when it has ended, and returns
/// false to cancel it.
///
/// # Panics
/// With what `work` panicked with.
pub(crate) fn supervise<R: Send + 'static>(
    budget: &Budget,
    threads: Option<usize>,
    tell: &mut dyn FnMut(&'static str, f64) -> bool,
    work: impl FnOnce(&Arc<Control>) -> R + Send + 'static,
) -> (Result<R, Stop>, Arc<Control>) {
    let control = Arc::new(Control::new(budget, threads));
    let started = Instant::now();
    let (sender, receiver) = mpsc::channel();
    let of_build = Arc::clone(&control);
    let build = move || {
        let result = catch_unwind(AssertUnwindSafe(|| of_build.run(|| work(&of_build))));
        // Nobody listens to a build that was stopped.
        drop(sender.send(result));
    };
    if let Err(e) = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(build) {
        panic!("no thread could be started for the build: {e}");
    }
    let (mut told, mut stop) = (0, None);
    let result = loop {
        let ended = receiver.recv_timeout(INTERVAL).ok();
        let names: Vec<&'static str> = control.stages().iter().map(|stage| stage.name).collect();
        let mut go_on = true;
        for at in told..names.len() {
            if at > 0 {
                go_on &= tell(names[at - 1], 1.0);
            }
            go_on &= tell(names[at], 0.0);
        }
        told = names.len();
        if let Some(result) = ended {
            if let (Ok(_), Some(name)) = (&result, names.last()) {
                go_on &= tell(name, 1.0);
            }
            // A short build is over before anybody could stop it.
            break if go_on { result } else { Err(Box::new(Stopped) as _) };
        }
        if control.left.load(Ordering::Relaxed) {
            break Err(Box::new(Stopped) as _);
        }
        let (done, of) = (control.done.load(Ordering::Relaxed), control.of.load(Ordering::Relaxed));
        if let Some(name) = names.last() {
            go_on &= tell(name, (f64::from(done) / f64::from(of.max(1))).min(1.0));
        }
        if stop.is_none() {
            stop = if go_on { control.decide(budget, started) } else { Some(Stop::Cancelled) };
            control.stop.store(stop.is_some(), Ordering::Relaxed);
        }
    };
    let result = result.map_err(|panic| match panic.downcast::<Stopped>() {
        Ok(_) => stop.unwrap_or(Stop::Cancelled),
        Err(panic) => resume_unwind(panic),
    });
    (result, control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_limits_what_is_optional_may_take_so_much_memory() {
        static TAKEN: AtomicUsize = AtomicUsize::new(0);
        let decide = |taken: usize, is_optional: bool, budget: &Budget| {
            TAKEN.store(0, Ordering::Relaxed);
            let control = Control::new(budget, None);
            if is_optional {
                control.rest_is_optional();
            }
            TAKEN.store(taken, Ordering::Relaxed);
            control.decide(budget, Instant::now())
        };
        let budget = Budget { partial: true, allocated: Some(|| TAKEN.load(Ordering::Relaxed)), ..Budget::default() };
        assert_eq!(decide(MOST_OPTIONAL + 1, true, &budget), Some(Stop::Memory));
        assert_eq!(decide(MOST_OPTIONAL, true, &budget), None);
        assert_eq!(decide(MOST_OPTIONAL + 1, false, &budget), None);
        let whole = Budget { partial: false, ..budget.clone() };
        assert_eq!(decide(MOST_OPTIONAL + 1, true, &whole), None);
        let limited = Budget { max_seconds: Some(1e9), ..budget };
        assert_eq!(decide(MOST_OPTIONAL + 1, true, &limited), None);
    }
}
