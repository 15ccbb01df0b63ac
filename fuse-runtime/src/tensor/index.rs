//! Reading and writing at computed positions. An index out of range is an error, never an access.

use super::call::{axis, call};
use super::operand::tensor;
use super::{Raise, Raised, Rank, Tensor};
use crate::dtype::{Element, Num};
use fuse_compiler::op::Attr;
use fuse_compiler::types::Dim;

impl<T: Element, const R: usize> Tensor<T, R> {
    /// The elements at `index` along `dim`: the result has the extents of `index`.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.gather(1, &Tensor::from([[1i64], [0]])).to_vec(), [2.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn gather(&self, dim: isize, index: &Tensor<i64, R>) -> Self {
        call("gather", &[tensor(self), tensor(index)], &[axis(dim)])
    }

    /// The places of `dim` that `index` lists.
    #[track_caller]
    pub fn index_select(&self, dim: isize, index: &Tensor<i64, 1>) -> Self {
        call("index_select", &[tensor(self), tensor(index)], &[axis(dim)])
    }

    /// x with the places of `dim` that `index` lists replaced by those of `source`.
    #[track_caller]
    pub fn index_copy(&self, dim: isize, index: &Tensor<i64, 1>, source: &Tensor<T, R>) -> Self {
        call("index_copy", &[tensor(self), tensor(index), tensor(source)], &[axis(dim)])
    }

    /// x where it lies on or below the `diagonal` of its last two dims, 0 elsewhere.
    #[track_caller]
    pub fn tril(&self, diagonal: i64) -> Self {
        call("tril", &[tensor(self)], &[Attr::Dim(Dim::Const(diagonal))])
    }

    /// x where it lies on or above the `diagonal` of its last two dims, 0 elsewhere.
    #[track_caller]
    pub fn triu(&self, diagonal: i64) -> Self {
        call("triu", &[tensor(self)], &[Attr::Dim(Dim::Const(diagonal))])
    }
}

impl<T: Num, const R: usize> Tensor<T, R> {
    /// x with every element of `source` added at its `index` along `dim`.
    #[track_caller]
    pub fn scatter_add(&self, dim: isize, index: &Tensor<i64, R>, source: &Tensor<T, R>) -> Self {
        call("scatter_add", &[tensor(self), tensor(index), tensor(source)], &[axis(dim)])
    }

    /// x with the places of `source` added to those of `dim` that `index` lists.
    #[track_caller]
    pub fn index_add(&self, dim: isize, index: &Tensor<i64, 1>, source: &Tensor<T, R>) -> Self {
        call("index_add", &[tensor(self), tensor(index), tensor(source)], &[axis(dim)])
    }
}

impl<T: Element> Tensor<T, 2> {
    /// The rows that `index` lists, in its extents.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let weight = Tensor::from([[1.0f32, -1.0], [2.0, -2.0]]);
    /// assert_eq!(weight.embedding(&Tensor::from([1i64, 0])).to_vec2(), [[2.0, -2.0], [1.0, -1.0]]);
    /// ```
    #[track_caller]
    pub fn embedding<const I: usize>(&self, index: &Tensor<i64, I>) -> Raised<T, I>
    where
        Rank<I>: Raise,
    {
        call("embedding", &[tensor(self), tensor(index)], &[])
    }
}
