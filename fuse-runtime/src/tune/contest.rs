//! Timing candidates against each other.

use super::progress::Progress;
use crate::error::Result;

/// Timed launches of a candidate; their median counts.
const REPEATS: usize = 7;

/// A candidate whose first time is so many times the best is not timed again.
const HOPELESS: f64 = 1.5;

/// What has to be gained for another candidate to be taken than the one that runs without tuning: less is noise.
const GAIN: f64 = 0.02;

/// The winner among candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Winner {
    /// Its number.
    pub index: usize,
    /// Its time in microseconds.
    pub us: f64,
    /// The time of the first candidate.
    pub default_us: f64,
}

/// The fastest of so many candidates, the first of which runs without tuning. `time` launches one and gives microseconds;
/// a candidate that cannot be launched is out. `None` if the first one cannot.
pub(crate) fn fastest(name: &str, count: usize, mut time: impl FnMut(usize) -> Result<f64>) -> Option<Winner> {
    let progress = Progress::new(name, count);
    let mut best: Option<Winner> = None;
    for index in 0..count {
        let limit = best.map_or(f64::INFINITY, |best| best.us * HOPELESS);
        let taken = median(limit, || time(index));
        progress.step();
        match (taken, &mut best) {
            (Ok(us), None) if index == 0 => best = Some(Winner { index, us, default_us: us }),
            (Err(_), None) => return None,
            (Ok(us), Some(best)) if us < best.us && us < best.default_us * (1.0 - GAIN) => {
                (best.index, best.us) = (index, us);
            }
            _ => {}
        }
    }
    best
}

/// The median of several times; the first of them where it is beyond `limit`. A launch before them is not counted: it may
/// load the kernel.
fn median(limit: f64, mut time: impl FnMut() -> Result<f64>) -> Result<f64> {
    time()?;
    let first = time()?;
    if first > limit {
        return Ok(first);
    }
    let mut times = vec![first];
    for _ in 1..REPEATS {
        times.push(time()?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[REPEATS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn winner(times: &[f64]) -> Option<usize> {
        fastest("k", times.len(), |index| Ok(times[index])).map(|winner| winner.index)
    }

    #[test]
    fn the_fastest_wins_where_it_gains_something() {
        assert_eq!(winner(&[10.0, 12.0, 8.0, 9.0]), Some(2));
        assert_eq!(winner(&[10.0, 9.9, 9.95]), Some(0));
        assert_eq!(winner(&[10.0, 9.0, 8.99]), Some(2));
        assert_eq!(winner(&[]), None);
    }

    #[test]
    fn one_slow_launch_does_not_decide() {
        let mut launches = 0;
        let found = fastest("k", 2, |index| {
            launches += 1;
            Ok(if index == 1 && launches == 12 { 1000.0 } else { [10.0, 8.0][index] })
        });
        assert_eq!(found, Some(Winner { index: 1, us: 8.0, default_us: 10.0 }));
    }

    #[test]
    fn a_hopeless_candidate_is_not_timed_again() {
        let mut launches = [0, 0];
        fastest("k", 2, |index| {
            launches[index] += 1;
            Ok([10.0, 100.0][index])
        });
        assert_eq!(launches, [1 + REPEATS, 2]);
    }

    #[test]
    fn a_candidate_that_cannot_be_launched_is_out() {
        let found =
            fastest(
                "k",
                3,
                |index| if index == 1 { Err(Error::driver("no".to_owned())) } else { Ok([10.0, 0.0, 5.0][index]) },
            );
        assert_eq!(found.map(|winner| winner.index), Some(2));
        assert_eq!(fastest("k", 2, |_| Err(Error::driver("no".to_owned()))), None);
    }
}
