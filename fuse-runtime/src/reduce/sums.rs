//! Sums and products.

use super::ahead::{is_long, send_for};
use crate::math::Number;
use crate::rt::vectorised;
use rayon::prelude::*;

/// An accumulator of sums and products: f32, f64 or i64.
pub trait Accumulate: Number + Send + Sync + 'static {
    /// Puts `value(c)` in place `c`, for every place, on all threads.
    ///
    /// A method of each type and not a generic function, so that the machinery of threads is compiled once, here.
    fn fill(places: &mut [Self], value: &(dyn Fn(usize) -> Self + Sync));
}

macro_rules! accumulators {
    ($($ty:ty)*) => {$(
        impl Accumulate for $ty {
            fn fill(places: &mut [Self], value: &(dyn Fn(usize) -> Self + Sync)) {
                places.par_iter_mut().enumerate().for_each(|(c, place)| *place = value(c));
            }
        }
    )*};
}

accumulators! { f32 f64 i64 }

/// Elements of a row that are added together before the next ones.
pub(super) const BLOCK: usize = 16384;
/// Virtual lanes of a row.
const LANES: usize = 1024;
/// Elements of a row between which the next row is sent for.
const PIECE: usize = 128;
/// Rows of a column that are added together before the next ones.
pub(crate) const SUB_BLOCK: usize = 256;
/// Virtual lanes of a column.
pub(crate) const COLUMN_LANES: usize = 8;
/// Rows this long are worth several threads.
pub(super) const PARALLEL: usize = 1 << 18;

/// The sum of `value(0), .., value(n - 1)` in row order.
#[inline(always)]
pub fn row_sum<A: Accumulate>(n: usize, value: impl Fn(usize) -> A + Copy + Sync) -> A {
    row(n, A::ZERO, |a, b| a.add(b), value)
}

/// The product of `value(0), .., value(n - 1)` in row order.
#[inline(always)]
pub fn row_prod<A: Accumulate>(n: usize, value: impl Fn(usize) -> A + Copy + Sync) -> A {
    row(n, A::ONE, |a, b| a.mul(b), value)
}

/// The sum of `value(0), .., value(n - 1)` in column order.
#[inline(always)]
pub fn column_sum<A: Accumulate>(n: usize, value: impl Fn(usize) -> A) -> A {
    column(n, A::ZERO, |a, b| a.add(b), value)
}

/// The product of `value(0), .., value(n - 1)` in column order.
#[inline(always)]
pub fn column_prod<A: Accumulate>(n: usize, value: impl Fn(usize) -> A) -> A {
    column(n, A::ONE, |a, b| a.mul(b), value)
}

/// Row order: blocks of 16384 elements over 1024 lanes, at most 1024 chunks of blocks, and the chunks over the lanes again.
#[inline(always)]
fn row<A: Accumulate>(
    n: usize,
    identity: A,
    combine: impl Fn(A, A) -> A + Copy + Sync,
    value: impl Fn(usize) -> A + Copy + Sync,
) -> A {
    if n <= BLOCK {
        return row_block(0, n, n, identity, combine, &value);
    }
    let blocks = n.div_ceil(BLOCK);
    let per_chunk = blocks.div_ceil(blocks.min(LANES));
    let chunks = blocks.div_ceil(per_chunk);
    let mut lanes = [identity; LANES];
    if n < PARALLEL {
        for (c, lane) in lanes[..chunks].iter_mut().enumerate() {
            *lane = row_chunk(c, per_chunk, n, identity, combine, &value);
        }
    } else {
        A::fill(&mut lanes[..chunks], &|c| {
            vectorised(
                #[inline(always)]
                || {
                    // A copy of this thread's own, so that what it has captured is not read again for every element.
                    let own = value;
                    row_chunk(c, per_chunk, n, identity, combine, &own)
                },
            )
        });
    }
    tree(&mut lanes, chunks, combine)
}

/// The chunk `c` of `per_chunk` blocks of `n` elements, block after block.
///
/// A function and not a closure, which would not be inlined and so not be compiled for the widest vectors.
#[inline(always)]
fn row_chunk<A: Accumulate>(
    c: usize,
    per_chunk: usize,
    n: usize,
    identity: A,
    combine: impl Fn(A, A) -> A + Copy,
    value: &impl Fn(usize) -> A,
) -> A {
    let (first, end) = (c * per_chunk * BLOCK, ((c + 1) * per_chunk * BLOCK).min(n));
    let mut sum = identity;
    for start in (first..end).step_by(BLOCK) {
        let block = row_block(start, (start + BLOCK).min(end), n, identity, combine, value);
        sum = if start == first { block } else { combine(sum, block) };
    }
    sum
}

/// The elements `start..end` of `n` over the lanes, at most [`BLOCK`] of them.
#[inline(always)]
fn row_block<A: Accumulate>(
    start: usize,
    end: usize,
    n: usize,
    identity: A,
    combine: impl Fn(A, A) -> A,
    value: &impl Fn(usize) -> A,
) -> A {
    let mut lanes = [identity; LANES];
    let mut at = start;
    while at < end {
        let width = (end - at).min(LANES);
        // In pieces of a few vectors, between which memory has something to do.
        for (piece, lanes) in lanes[..width].chunks_mut(PIECE).enumerate() {
            let at = at + piece * PIECE;
            if is_long(n) {
                send_for(at, lanes.len());
            }
            for (l, lane) in lanes.iter_mut().enumerate() {
                *lane = combine(*lane, below(n, at + l, value));
            }
        }
        at += width;
    }
    tree(&mut lanes, (end - start).min(LANES), combine)
}

/// Combines lane `l` with lane `l + stride` for strides 1, 2, 4, ..; lanes from `used` on hold the identity.
///
/// No lane that started from the identity is -0.0, so combining with the identity changes nothing and the tree need only
/// be as high as the used lanes. Each level moves its results together, which keeps the loops dense.
#[inline(always)]
fn tree<A: Accumulate>(lanes: &mut [A; LANES], used: usize, combine: impl Fn(A, A) -> A) -> A {
    let mut width = used.next_power_of_two();
    // Results go to an array of their own first, without which the compiler sees no independent iterations.
    let mut joined = [lanes[0]; LANES / 2];
    while width > 1 {
        width /= 2;
        for (to, pair) in joined[..width].iter_mut().zip(lanes.chunks_exact(2)) {
            *to = combine(pair[0], pair[1]);
        }
        lanes[..width].copy_from_slice(&joined[..width]);
    }
    lanes[0]
}

/// Column order: at most 256 chunks of whole sub-blocks of 256 rows, and the chunks as one sub-block again.
#[inline(always)]
fn column<A: Accumulate>(n: usize, identity: A, combine: impl Fn(A, A) -> A + Copy, value: impl Fn(usize) -> A) -> A {
    if n <= SUB_BLOCK {
        return sub_block(0, n, n, identity, combine, &value);
    }
    let (chunks, chunk) = column_chunks(n);
    let mut values = [identity; SUB_BLOCK];
    for (c, slot) in values[..chunks].iter_mut().enumerate() {
        let (start, end) = (c * chunk, ((c + 1) * chunk).min(n));
        let mut sum = sub_block(start, end.min(start + SUB_BLOCK), n, identity, combine, &value);
        let mut at = start + SUB_BLOCK;
        while at < end {
            sum = combine(sum, sub_block(at, end.min(at + SUB_BLOCK), n, identity, combine, &value));
            at += SUB_BLOCK;
        }
        *slot = sum;
    }
    sub_block(0, chunks, chunks, identity, combine, &|c| values[c])
}

/// How many chunks a column of so many rows is cut into, of which there is one at least, and the rows of each.
pub(crate) fn column_chunks(n: usize) -> (usize, usize) {
    let chunk = n.max(1).div_ceil(n.div_ceil(SUB_BLOCK).clamp(1, SUB_BLOCK)).next_multiple_of(SUB_BLOCK);
    (n.div_ceil(chunk).max(1), chunk)
}

/// The rows `start..end` of `n` over eight lanes, at most [`SUB_BLOCK`] of them.
#[inline(always)]
fn sub_block<A: Accumulate>(
    start: usize,
    end: usize,
    n: usize,
    identity: A,
    combine: impl Fn(A, A) -> A,
    value: &impl Fn(usize) -> A,
) -> A {
    let mut lanes = [identity; COLUMN_LANES];
    let mut at = start;
    while at + COLUMN_LANES <= end {
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane = combine(*lane, below(n, at + l, value));
        }
        at += COLUMN_LANES;
    }
    for (l, lane) in lanes.iter_mut().enumerate().take(end - at) {
        *lane = combine(*lane, below(n, at + l, value));
    }
    for stride in [1, 2, 4] {
        for l in (0..COLUMN_LANES).step_by(2 * stride) {
            lanes[l] = combine(lanes[l], lanes[l + stride]);
        }
    }
    lanes[0]
}

/// `value(i)`, telling the compiler that `i < n`: then indexing slices of `n` elements costs no check and the loops
/// around become vector code.
#[inline(always)]
pub(super) fn below<A>(n: usize, i: usize, value: &impl Fn(usize) -> A) -> A {
    debug_assert!(i < n);
    // SAFETY: callers stay below the end of their block, which is at most `n`.
    unsafe { std::hint::assert_unchecked(i < n) };
    value(i)
}
