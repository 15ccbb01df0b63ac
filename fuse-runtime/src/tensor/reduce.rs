//! Methods that reduce: over one dim, over one dim that stays with extent 1, or over all elements.

use super::call::{axis, call};
use super::operand::tensor;
use super::{Lower, Lowered, Rank, Tensor};
use crate::dtype::{Element, Float};

use fuse_compiler::op::Attr;
use fuse_compiler::types::Dim;

/// The three forms of each reduction: `class of T, element type of the result: name name_keepdim name_all "doc";`.
macro_rules! reductions {
    ($($class:ident -> $out:ty: $($name:ident $keepdim:ident $all:ident $doc:literal)*;)*) => {$(
        impl<T: $class, const R: usize> Tensor<T, R> {$(
            #[doc = concat!($doc, " over `dim`, which goes away.")]
            #[track_caller]
            pub fn $name(&self, dim: isize) -> Lowered<$out, R>
            where
                Rank<R>: Lower,
            {
                call(stringify!($name), &[tensor(self)], &[axis(dim)])
            }

            #[doc = concat!($doc, " over `dim`, which stays with extent 1.")]
            #[track_caller]
            pub fn $keepdim(&self, dim: isize) -> Tensor<$out, R> {
                call(stringify!($keepdim), &[tensor(self)], &[axis(dim)])
            }

            #[doc = concat!($doc, " over all elements.")]
            #[track_caller]
            pub fn $all(&self) -> Tensor<$out, 0> {
                call(stringify!($all), &[tensor(self)], &[])
            }
        )*}
    )*};
}

reductions! {
    Element -> T::Sum:
        sum sum_keepdim sum_all "The sum (i64 for integers and bool)"
        prod prod_keepdim prod_all "The product (i64 for integers and bool)";
    Element -> T:
        max max_keepdim max_all "The largest element, NaN if there is one,"
        min min_keepdim min_all "The smallest element, NaN if there is one,";
    Element -> i64:
        argmax argmax_keepdim argmax_all "The first place of the largest element, or of the first NaN,"
        argmin argmin_keepdim argmin_all "The first place of the smallest element, or of the first NaN,";
    Float -> T:
        mean mean_keepdim mean_all "The mean"
        var var_keepdim var_all "The variance with correction 1"
        std std_keepdim std_all "The standard deviation with correction 1"
        norm norm_keepdim norm_all "The L2 norm"
        logsumexp logsumexp_keepdim logsumexp_all "The logarithm of the sum of exponentials";
}

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

impl<T: Element, const R: usize> Tensor<T, R> {
    /// The running sum along `dim` (i64 for integers and bool).
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::from([1i64, 2, 3]).cumsum(0).to_vec(), [1, 3, 6]);
    /// ```
    #[track_caller]
    pub fn cumsum(&self, dim: isize) -> Tensor<T::Sum, R> {
        call("cumsum", &[tensor(self)], &[axis(dim)])
    }
}
