//! The largest and the smallest, and where they are. NaN wins. Of values -0.0 is below +0.0; of places zeros are equal, and
//! ties go to the first.

use super::sums::{BLOCK, PARALLEL, below};
use crate::rt::vectorised;
use rayon::prelude::*;

/// A type whose values have an order, as integers that compare cheaply.
pub trait Ordered: Copy + Send + Sync + 'static {
    /// An integer type.
    type Key: Copy + Ord + Send + Sync;
    /// Below or at every key.
    const LOWEST: Self::Key;
    /// Above or at every key.
    const HIGHEST: Self::Key;
    /// The identity of `max`: what it gives for no elements.
    const LEAST: Self;
    /// The identity of `min`.
    const MOST: Self;
    /// A key that orders as values do, but for NaN, which gets the key `nan`.
    fn key(self, nan: Self::Key) -> Self::Key;
    /// The same where it matters only which is greater: zeros of both signs have one key.
    fn place_key(self, nan: Self::Key) -> Self::Key;
    /// The value of a key.
    fn value(key: Self::Key) -> Self;
    /// `key(b)` for every block `b`, on all threads; compiled once a type, here.
    fn keys(blocks: usize, key: &(dyn Fn(usize) -> Self::Key + Sync)) -> Vec<Self::Key>;
}

macro_rules! integers {
    ($($ty:ty, $least:expr, $most:expr;)*) => {$(
        impl Ordered for $ty {
            type Key = $ty;
            const LOWEST: $ty = $least;
            const HIGHEST: $ty = $most;
            const LEAST: Self = $least;
            const MOST: Self = $most;
            #[inline(always)]
            fn key(self, _: Self::Key) -> Self::Key {
                self
            }
            #[inline(always)]
            fn place_key(self, nan: Self::Key) -> Self::Key {
                self.key(nan)
            }
            #[inline(always)]
            fn value(key: Self::Key) -> Self {
                key
            }
            fn keys(blocks: usize, key: &(dyn Fn(usize) -> Self::Key + Sync)) -> Vec<Self::Key> {
                (0..blocks).into_par_iter().map(key).collect()
            }
        }
    )*};
}

integers! {
    i64,  i64::MIN, i64::MAX;
    i32,  i32::MIN, i32::MAX;
    u8,   u8::MIN,  u8::MAX;
    bool, false,    true;
}

macro_rules! floats {
    ($($ty:ty, $key:ty;)*) => {$(
        impl Ordered for $ty {
            type Key = $key;
            const LOWEST: $key = <$key>::MIN;
            const HIGHEST: $key = <$key>::MAX;
            const LEAST: Self = <$ty>::NEG_INFINITY;
            const MOST: Self = <$ty>::INFINITY;
            #[inline(always)]
            fn key(self, nan: $key) -> $key {
                if self.is_nan() { nan } else { flip(self.to_bits() as $key) }
            }
            #[inline(always)]
            fn place_key(self, nan: $key) -> $key {
                // -0.0 + 0.0 is 0.0; every other value stays.
                (self + 0.0).key(nan)
            }
            #[inline(always)]
            fn value(key: $key) -> Self {
                // Both keys of NaN decode to NaNs.
                <$ty>::from_bits(flip(key) as _)
            }
            fn keys(blocks: usize, key: &(dyn Fn(usize) -> Self::Key + Sync)) -> Vec<Self::Key> {
                (0..blocks).into_par_iter().map(key).collect()
            }
        }

        impl Flip for $key {
            #[inline(always)]
            fn flip(self) -> Self {
                // Negative floats order backwards by their bits.
                self ^ ((self >> (<$key>::BITS - 1)) & <$key>::MAX)
            }
        }
    )*};
}

/// The bits of a float to a key and back.
trait Flip {
    fn flip(self) -> Self;
}

#[inline(always)]
fn flip<K: Flip>(bits: K) -> K {
    bits.flip()
}

floats! {
    f32, i32;
    f64, i64;
}

/// The largest of `value(0), .., value(n - 1)`; the lowest value of the type for none.
#[inline(always)]
pub fn max<A: Ordered>(n: usize, value: impl Fn(usize) -> A + Sync) -> A {
    let key = |i| below(n, i, &value).key(A::HIGHEST);
    if n == 0 { A::LEAST } else { A::value(extreme::<A>(n, A::LOWEST, Ord::max, key)) }
}

/// The smallest of `value(0), .., value(n - 1)`; the highest value of the type for none.
#[inline(always)]
pub fn min<A: Ordered>(n: usize, value: impl Fn(usize) -> A + Sync) -> A {
    let key = |i| below(n, i, &value).key(A::LOWEST);
    if n == 0 { A::MOST } else { A::value(extreme::<A>(n, A::HIGHEST, Ord::min, key)) }
}

/// The first index of the largest of `value(0), .., value(n - 1)`, the first NaN if there is one.
#[inline(always)]
pub fn argmax<A: Ordered>(n: usize, value: impl Fn(usize) -> A + Sync) -> i64 {
    let key = |i| below(n, i, &value).place_key(A::HIGHEST);
    first_extreme(n, A::LOWEST, Ord::max, |new, best| new > best, key)
}

/// The first index of the smallest of `value(0), .., value(n - 1)`, the first NaN if there is one.
#[inline(always)]
pub fn argmin<A: Ordered>(n: usize, value: impl Fn(usize) -> A + Sync) -> i64 {
    let key = |i| below(n, i, &value).place_key(A::LOWEST);
    first_extreme(n, A::HIGHEST, Ord::min, |new, best| new < best, key)
}

/// The extreme of the keys of `0..n`; the order of combining does not matter, so blocks go to any thread.
#[inline(always)]
fn extreme<A: Ordered>(
    n: usize,
    identity: A::Key,
    pick: impl Fn(A::Key, A::Key) -> A::Key + Copy + Sync,
    key: impl Fn(usize) -> A::Key + Sync,
) -> A::Key {
    if n < PARALLEL {
        return block_extreme(0, n, identity, pick, &key);
    }
    let blocks = A::keys(n.div_ceil(BLOCK), &|b| {
        vectorised(
            #[inline(always)]
            || block_extreme(b * BLOCK, ((b + 1) * BLOCK).min(n), identity, pick, &key),
        )
    });
    blocks.into_iter().fold(identity, pick)
}

#[inline(always)]
fn block_extreme<K: Copy>(
    start: usize,
    end: usize,
    identity: K,
    pick: impl Fn(K, K) -> K,
    key: &impl Fn(usize) -> K,
) -> K {
    const LANES: usize = 64;
    let mut lanes = [identity; LANES];
    let mut at = start;
    while at + LANES <= end {
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane = pick(*lane, key(at + l));
        }
        at += LANES;
    }
    let mut best = identity;
    for i in at..end {
        best = pick(best, key(i));
    }
    lanes.into_iter().fold(best, pick)
}

/// Where the extreme is first met: block by block, looking for the place only in blocks that hold a better one.
#[inline(always)]
fn first_extreme<K: Copy + PartialEq + Send + Sync>(
    n: usize,
    identity: K,
    pick: impl Fn(K, K) -> K + Copy + Send + Sync,
    better: impl Fn(K, K) -> bool,
    key: impl Fn(usize) -> K + Sync,
) -> i64 {
    const STEP: usize = 1024;
    let (mut best, mut place) = (identity, 0);
    for start in (0..n).step_by(STEP) {
        let end = (start + STEP).min(n);
        let here = block_extreme(start, end, identity, pick, &key);
        if better(here, best) {
            best = here;
            place = (start..end).find(|&i| key(i) == here).unwrap_or(start);
        }
    }
    place as i64
}
