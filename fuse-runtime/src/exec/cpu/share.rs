//! Sharing pieces of work between threads.

use super::helpers::Helpers;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `work` once for every number below `count`, in bites of `bite` consecutive ones, on the calling thread and on those
/// that come in time; each makes itself a state first.
///
/// The caller works along from the start: handing all to others and sleeping would take two more wakings, which is as long as
/// a small product. Those are the helpers, or threads of the pool where the helpers have work, for instance this one.
pub(super) fn share<S>(count: usize, bite: usize, state: impl Fn() -> S + Sync, work: impl Fn(&mut S, usize) + Sync) {
    let bites = count.div_ceil(bite);
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&taken| taken < bites);
    let run = || {
        let Some(mut taken) = take() else { return };
        let mut state = state();
        loop {
            (taken * bite..count.min((taken + 1) * bite)).for_each(|k| work(&mut state, k));
            match take() {
                Some(another) => taken = another,
                None => return,
            }
        }
    };
    let others = rayon::current_num_threads().min(bites).saturating_sub(1);
    if others == 0 {
        return run();
    }
    if !Helpers::get().join(others, &run) {
        rayon::in_place_scope(|scope| {
            (0..others).for_each(|_| scope.spawn(|_| run()));
            run();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once() {
        for (count, bite) in [(0, 1), (1, 1), (7, 3), (1000, 1), (1000, 64)] {
            let times: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            share(
                count,
                bite,
                || (),
                |(), k| {
                    times[k].fetch_add(1, Ordering::Relaxed);
                },
            );
            assert!(times.iter().all(|times| times.load(Ordering::Relaxed) == 1), "{count} in bites of {bite}");
        }
    }

    #[test]
    fn work_may_share_work() {
        let sum = AtomicUsize::new(0);
        share(
            8,
            1,
            || (),
            |(), k| {
                share(
                    8,
                    1,
                    || (),
                    |(), other| {
                        sum.fetch_add(8 * k + other, Ordering::Relaxed);
                    },
                );
            },
        );
        assert_eq!(sum.into_inner(), 64 * 63 / 2);
    }
}
