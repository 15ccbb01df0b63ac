//! Column order for many neighbouring columns at a time: the same sums as [`column_sum`](super::column_sum) makes of each.

use super::sums::{Accumulate, COLUMN_LANES};
use crate::rt::vectorised;
use fuse_compiler::op::Reduction;
use fuse_compiler::types::DType;

/// What columns are reduced to.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    /// A sum or a product.
    pub kind: Reduction,
    /// The type of an accumulator.
    pub dtype: DType,
}

/// Calls a function for the type of the accumulators and what joins them.
macro_rules! typed {
    ($columns:expr, $function:ident($($arg:expr),*)) => {
        match ($columns.dtype, $columns.kind) {
            (DType::F32, Reduction::Prod) => $function::<f32, true>($($arg),*),
            (DType::F64, Reduction::Prod) => $function::<f64, true>($($arg),*),
            (DType::I64, Reduction::Prod) => $function::<i64, true>($($arg),*),
            (DType::F32, _) => $function::<f32, false>($($arg),*),
            (DType::F64, _) => $function::<f64, false>($($arg),*),
            (DType::I64, _) => $function::<i64, false>($($arg),*),
            (other, _) => unreachable!("nothing is summed up in {other}"),
        }
    };
}

impl Columns {
    /// Makes accumulators neutral.
    ///
    /// # Safety
    /// There are so many of this type, which nobody else uses.
    pub unsafe fn clear(self, at: *mut u8, count: usize) {
        // SAFETY: passed on from the caller.
        unsafe { typed!(self, clear(at, count)) }
    }

    /// Joins accumulators with as many others.
    ///
    /// # Safety
    /// There are so many of this type at either place, which do not overlap, and nobody else uses the first.
    pub unsafe fn join(self, to: *mut u8, from: *const u8, count: usize) {
        // SAFETY: passed on from the caller.
        unsafe { typed!(self, join(to, from, count)) }
    }

    /// Joins the lanes of so many columns in a tree; the values are the first lane's.
    ///
    /// # Safety
    /// There are the lanes of this type, which nobody else uses.
    pub unsafe fn join_lanes(self, lanes: *mut u8, columns: usize) {
        let lane = |k: usize| lanes.wrapping_add(k * columns * self.dtype.bytes());
        for stride in [1, 2, 4] {
            for k in (0..COLUMN_LANES).step_by(2 * stride) {
                // SAFETY: passed on from the caller; two lanes do not overlap.
                unsafe { self.join(lane(k), lane(k + stride), columns) };
            }
        }
    }
}

unsafe fn clear<A: Accumulate, const PROD: bool>(at: *mut u8, count: usize) {
    // SAFETY: passed on from the caller.
    unsafe { std::slice::from_raw_parts_mut(at.cast::<A>(), count) }.fill(if PROD { A::ONE } else { A::ZERO });
}

unsafe fn join<A: Accumulate, const PROD: bool>(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: passed on from the caller.
    let (to, from) = unsafe {
        (std::slice::from_raw_parts_mut(to.cast::<A>(), count), std::slice::from_raw_parts(from.cast::<A>(), count))
    };
    vectorised(
        #[inline(always)]
        || {
            for (to, &from) in to.iter_mut().zip(from) {
                *to = if PROD { to.mul(from) } else { to.add(from) };
            }
        },
    );
}
