//! Reductions in the one canonical order of their length.
//!
//! The order is a function of the length alone: a fixed number of virtual lanes and fixed trees over them. Eager ops,
//! fused loops and CUDA kernels add in this order, on any number of threads and with any vector width, so sums are equal
//! bit for bit everywhere.

mod ahead;
mod columns;
mod extremes;
mod sums;

pub(crate) use ahead::{comes_next, is_long, prefetch};
pub(crate) use columns::Columns;
pub use extremes::{Ordered, argmax, argmin, max, min};
pub use sums::{Accumulate, column_prod, column_sum, row_prod, row_sum};
pub(crate) use sums::{COLUMN_LANES, SUB_BLOCK, column_chunks};

#[cfg(test)]
mod tests;
