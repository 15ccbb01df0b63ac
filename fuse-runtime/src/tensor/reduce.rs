//! Methods that reduce: over one dim, over one dim that stays with extent 1, or over all elements.

use super::call::{axis, call};
use super::operand::tensor;
use super::{Lower, Lowered, Rank, Tensor};
use crate::dtype::Float;

use fuse_compiler::op::Attr;
use fuse_compiler::types::Dim;

impl<T: Float, const R: usize> Tensor<T, R> {
    /// The variance over `dim`: the sum of squared deviations over the number of elements less `correction`.
    #[track_caller]
    pub fn var_correction(&self, dim: isize, correction: i64) -> Lowered<T, R>
    where
        Rank<R>: Lower,
    {
        call("var_correction", &[tensor(self)], &[axis(dim), Attr::Dim(Dim::Const(correction))])
    }

    /// The standard deviation over `dim`: the root of [`var_correction`](Tensor::var_correction).
    #[track_caller]
    pub fn std_correction(&self, dim: isize, correction: i64) -> Lowered<T, R>
    where
        Rank<R>: Lower,
    {
        call("std_correction", &[tensor(self)], &[axis(dim), Attr::Dim(Dim::Const(correction))])
    }
}
