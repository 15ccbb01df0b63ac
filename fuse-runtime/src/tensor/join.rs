//! Joining and repeating tensors.

use super::call::{axis, call, sizes};
use super::operand::tensor;
use super::{Raise, Raised, Rank, Tensor};
use crate::dtype::Element;
use crate::eager::Arg;
use std::borrow::Borrow;

impl<T: Element, const R: usize> Tensor<T, R> {
    /// The tensors one after the other along `dim`; other extents must be equal.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let (a, b) = (Tensor::from([1i64]), Tensor::from([2, 3]));
    /// assert_eq!(Tensor::cat([&a, &b], 0).to_vec(), [1, 2, 3]);
    /// ```
    #[track_caller]
    pub fn cat<I>(tensors: I, dim: isize) -> Self
    where
        I: IntoIterator<Item: Borrow<Tensor<T, R>>>,
    {
        call("cat", &all(tensors), &[axis(dim)])
    }

    /// The tensors, of equal extents, side by side in a new dim before `dim`.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let (a, b) = (Tensor::from([1i64, 2]), Tensor::from([3, 4]));
    /// assert_eq!(Tensor::stack([&a, &b], 1).to_vec2(), [[1, 3], [2, 4]]);
    /// ```
    #[track_caller]
    pub fn stack<I>(tensors: I, dim: isize) -> Raised<T, R>
    where
        I: IntoIterator<Item: Borrow<Tensor<T, R>>>,
        Rank<R>: Raise,
    {
        call("stack", &all(tensors), &[axis(dim)])
    }

    /// x repeated `counts` times along its dims.
    #[track_caller]
    pub fn repeat(&self, counts: [usize; R]) -> Self {
        call("repeat", &[tensor(self)], &[sizes(&counts)])
    }
}

fn all<T: Element, const R: usize>(tensors: impl IntoIterator<Item: Borrow<Tensor<T, R>>>) -> Vec<Arg> {
    tensors.into_iter().map(|item| tensor(item.borrow())).collect()
}
