//! What a terminal is told while kernels are timed.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shorter waits need no explanation.
const QUIET: Duration = Duration::from_secs(1);

/// Kernels that follow so soon upon each other are one wait.
const PAUSE: Duration = Duration::from_millis(500);

/// When the wait began, and when its latest kernel was done.
static WAIT: Mutex<Option<(Instant, Instant)>> = Mutex::new(None);

/// The candidates of one kernel; shown on a terminal once they take a while, and gone at the end.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    /// So many candidates of a kernel.
    pub(super) fn new(name: &str, count: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("fuse times {msg} {bar:24} {pos}/{len}");
        bar.set_style(style.expect("the template has no unknown keys"));
        bar.set_message(name.to_owned());
        let wait = *WAIT.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let start = wait.filter(|(_, end)| now.duration_since(*end) < PAUSE).map_or(now, |(start, _)| start);
        Progress { bar, start }
    }

    /// One candidate is done.
    pub(super) fn step(&self) {
        if self.bar.is_hidden() && self.start.elapsed() > QUIET && std::io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        *WAIT.lock().unwrap_or_else(PoisonError::into_inner) = Some((self.start, Instant::now()));
    }
}
