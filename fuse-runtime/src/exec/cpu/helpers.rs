//! Threads that stay awake for a moment after their last piece of work.
//!
//! Waking a thread takes the system longer than a small launch takes, and the next launch mostly follows at once. So helpers look out
//! for it before they sleep, as those of OpenMP do, but for microseconds. On a machine with one core there are none.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// How long a helper looks out for work before it sleeps. What lies between two launches of one function takes less.
const AWAKE: Duration = Duration::from_micros(50);
/// How often one looks between two looks at the clock, or at helpers that are still at it before one sleeps.
const LOOKS: usize = 64;
const LOOKS_AT_HELPERS: usize = 2000;

/// The helpers of this process and the one job that they may have at a time.
pub(super) struct Helpers {
    count: usize,
    /// Who has put a job here, or is about to.
    taken: AtomicBool,
    /// How many helpers may still join the job, and how many are at it: a helper joins and is counted in one step.
    seats: AtomicU64,
    job: Job,
    /// What a helper panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Helpers that sleep, and whether the one who waits for them does.
    sleepers: AtomicUsize,
    waits: AtomicBool,
    lock: Mutex<()>,
    posted: Condvar,
    left: Condvar,
}

/// The work of the job, which lives as long as there are seats or somebody is at it.
struct Job(UnsafeCell<Option<&'static (dyn Fn() + Sync)>>);

// SAFETY: it is written by whoever has `taken` while nobody is at it and there are no seats, and read by those who have joined.
unsafe impl Sync for Job {}

/// One helper that is at the job, in `seats`; what lies below is the number of seats.
const AT_IT: u64 = 1 << 32;

impl Helpers {
    /// The helpers of this process: one less than the cores that it may use.
    pub fn get() -> &'static Helpers {
        static HELPERS: OnceLock<&Helpers> = OnceLock::new();
        HELPERS.get_or_init(|| {
            let count = available_parallelism().map_or(0, |cores| cores.get() - 1);
            let helpers = &*Box::leak(Box::new(Helpers::new(count)));
            let started = (0..count).map(|k| {
                std::thread::Builder::new()
                    .name(format!("fuse-{k}"))
                    .spawn(|| helpers.serve())
                    .expect("a thread can be started")
            });
            started.for_each(drop);
            helpers
        })
    }

    fn new(count: usize) -> Self {
        Helpers {
            count,
            taken: AtomicBool::new(false),
            seats: AtomicU64::new(0),
            job: Job(UnsafeCell::new(None)),
            panic: Mutex::new(None),
            sleepers: AtomicUsize::new(0),
            waits: AtomicBool::new(false),
            lock: Mutex::new(()),
            posted: Condvar::new(),
            left: Condvar::new(),
        }
    }

    /// Runs `work` here and on as many helpers as come while it lasts, at most `most`; false, and nothing, where there are not as
    /// many or they have a job.
    pub fn join(&self, most: usize, work: &(dyn Fn() + Sync)) -> bool {
        if most > self.count || self.taken.swap(true, SeqCst) {
            return false;
        }
        // SAFETY: the job is over before this function returns or unwinds, see `Over`.
        let work = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
        // SAFETY: `taken` is ours, so there are no seats and nobody is at a job.
        unsafe { *self.job.0.get() = Some(work) };
        self.seats.store(most as u64, SeqCst);
        let sleepers = self.sleepers.load(SeqCst);
        if sleepers > 0 {
            let _lock = self.locked();
            (0..most.min(sleepers)).for_each(|_| self.posted.notify_one());
        }
        let over = Over(self);
        work();
        drop(over);
        true
    }

    fn locked(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A helper's life.
    fn serve(&self) {
        loop {
            self.look_out();
            let taken = self.seats.fetch_update(SeqCst, SeqCst, |seats| (seats % AT_IT > 0).then(|| seats - 1 + AT_IT));
            if taken.is_err() {
                continue;
            }
            // SAFETY: this thread is counted, so the job stays.
            let work = unsafe { *self.job.0.get() }.expect("there are seats for a job");
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            }
            self.seats.fetch_sub(AT_IT, SeqCst);
            if self.waits.load(SeqCst) {
                let _lock = self.locked();
                self.left.notify_all();
            }
        }
    }

    /// Returns when there are seats: looks for a while, then sleeps.
    fn look_out(&self) {
        let start = Instant::now();
        while start.elapsed() < AWAKE {
            for _ in 0..LOOKS {
                if self.has_seats() {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        let mut lock = self.locked();
        self.sleepers.fetch_add(1, SeqCst);
        while !self.has_seats() {
            lock = self.posted.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    fn has_seats(&self) -> bool {
        !self.seats.load(SeqCst).is_multiple_of(AT_IT)
    }

    fn is_busy(&self) -> bool {
        self.seats.load(SeqCst) >= AT_IT
    }
}

/// Ends a job, however its work ended: nobody joins any more, and those who are at it are waited for.
struct Over<'a>(&'a Helpers);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let helpers = self.0;
        helpers.seats.fetch_and(!(AT_IT - 1), SeqCst);
        // The last pieces mostly take less than sleeping does.
        (0..LOOKS_AT_HELPERS).take_while(|_| helpers.is_busy()).for_each(|_| std::hint::spin_loop());
        if helpers.is_busy() {
            helpers.waits.store(true, SeqCst);
            let mut lock = helpers.locked();
            while helpers.is_busy() {
                lock = helpers.left.wait(lock).unwrap_or_else(PoisonError::into_inner);
            }
            helpers.waits.store(false, SeqCst);
        }
        let panic = helpers.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        helpers.taken.store(false, SeqCst);
        if let Some(panic) = panic
            && !std::thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: usize) -> &'static Helpers {
        let helpers = &*Box::leak(Box::new(Helpers::new(count)));
        (0..count).for_each(|_| drop(std::thread::spawn(|| helpers.serve())));
        helpers
    }

    #[test]
    fn awake_or_asleep_helpers_join_and_are_waited_for() {
        let helpers = some(3);
        for round in 0..200 {
            let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = || {
                begun.fetch_add(1, SeqCst);
                // Whoever is first waits for another one, so that somebody does join.
                while begun.load(SeqCst) < 2 {
                    std::thread::yield_now();
                }
                ended.fetch_add(1, SeqCst);
            };
            assert!(helpers.join(3, &work));
            assert_eq!(begun.load(SeqCst), ended.load(SeqCst), "everybody who came has left");
            if round % 20 == 0 {
                std::thread::sleep(2 * AWAKE);
            }
        }
    }

    #[test]
    fn there_is_one_job_at_a_time_and_no_more_helpers_than_there_are() {
        let helpers = some(1);
        assert!(!helpers.join(2, &|| unreachable!("it is not run")));
        assert!(helpers.join(1, &|| assert!(!helpers.join(1, &|| ()))));
    }

    #[test]
    fn a_panic_of_a_helper_is_one_of_the_caller() {
        let helpers = some(1);
        let caller = std::thread::current().id();
        let met = AtomicBool::new(false);
        let work = || {
            if std::thread::current().id() != caller {
                met.store(true, SeqCst);
                panic!("in a helper");
            }
            while !met.load(SeqCst) {
                std::thread::yield_now();
            }
        };
        let panic = catch_unwind(AssertUnwindSafe(|| helpers.join(1, &work))).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "in a helper");
        assert!(helpers.join(1, &|| ()), "the helper is still there");
    }
}
