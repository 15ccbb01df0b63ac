//! Views: other ways to see the same elements. Nothing is copied, except by `reshape` where strides do not allow a view.

use super::call::{axis, position, refused, seen, sizes};
use super::operand::tensor;
use super::{AnyTensor, Lower, Lowered, Raise, Raised, Rank, Tensor};
use crate::dtype::Element;
use crate::error::{Error, OrRaise, Result, raise};
use crate::layout::Layout;
use fuse_compiler::op::Attr;
use fuse_compiler::types::Dim;

impl<T: Element, const R: usize> Tensor<T, R> {
    /// The same values in row-major order with other extents.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::arange(0i64, 6, Device::cpu()).reshape([2, 3]);
    /// assert_eq!(x.t().reshape([6]).to_vec(), [0, 3, 1, 4, 2, 5]);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`] of kind `Shape` if the number of elements differs.
    #[track_caller]
    pub fn reshape<const N: usize>(&self, dims: [usize; N]) -> Tensor<T, N> {
        Tensor::from_raw(seen(self.raw(), "reshape", || vec![sizes(&dims)], self.raw.reshape(&dims)).or_raise())
    }

    /// The dims in another order: dim `d` of the result is dim `order[d]`.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::<f32, 3>::zeros([2, 3, 4], Device::cpu());
    /// assert_eq!(x.permute([2, 0, 1]).dims(), [4, 2, 3]);
    /// ```
    #[track_caller]
    pub fn permute(&self, order: [isize; R]) -> Self {
        self.view("permute", || vec![axes(&order)], |layout| layout.permute(&order))
    }

    /// Two dims exchanged.
    #[track_caller]
    pub fn transpose(&self, dim0: isize, dim1: isize) -> Self {
        self.view("transpose", || vec![axis(dim0), axis(dim1)], |layout| layout.transpose(dim0, dim1))
    }

    /// A new dim of extent 1 before `dim`.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::<f32, 1>::zeros([3], Device::cpu());
    /// assert_eq!(x.unsqueeze(-1).dims(), [3, 1]);
    /// ```
    #[track_caller]
    pub fn unsqueeze(&self, dim: isize) -> Raised<T, R>
    where
        Rank<R>: Raise,
    {
        self.view("unsqueeze", || vec![axis(dim)], |layout| layout.unsqueeze(dim))
    }

    /// Without `dim`, whose extent must be 1.
    #[track_caller]
    pub fn squeeze(&self, dim: isize) -> Lowered<T, R>
    where
        Rank<R>: Lower,
    {
        self.view("squeeze", || vec![axis(dim)], |layout| layout.squeeze(dim))
    }

    /// Extents of 1, and missing leading dims, repeated to `dims`.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::from_slice(&[1i32, 2], [2], Device::cpu());
    /// assert_eq!(x.expand([2, 2]).to_vec(), [1, 2, 1, 2]);
    /// ```
    #[track_caller]
    pub fn expand<const N: usize>(&self, dims: [usize; N]) -> Tensor<T, N> {
        self.view("expand", || vec![sizes(&dims)], |layout| layout.broadcast_to(&dims))
    }

    /// `len` elements of `dim` from `start` on.
    ///
    /// # Panics
    /// With an [`Error`] of kind `Shape` if they are not all there; [`slice`](Tensor::slice) clamps instead.
    #[track_caller]
    pub fn narrow(&self, dim: isize, start: usize, len: usize) -> Self {
        self.view("narrow", || vec![axis(dim), size(start), size(len)], |layout| layout.narrow(dim, start, len))
    }

    /// The elements `start..end` of `dim`, by Python's rules: negative ends count from the end, and both are clamped.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::arange(0i64, 5, Device::cpu());
    /// assert_eq!(x.slice(0, -2, isize::MAX).to_vec(), [3, 4]);
    /// ```
    #[track_caller]
    pub fn slice(&self, dim: isize, start: isize, end: isize) -> Self {
        let attrs = || vec![axis(dim), position(&self.raw, start), position(&self.raw, end)];
        self.view("slice", attrs, |layout| layout.slice(dim, start, end))
    }

    /// The elements in reverse order along `dims`.
    #[track_caller]
    pub fn flip<const N: usize>(&self, dims: [isize; N]) -> Self {
        self.view("flip", || vec![axes(&dims)], |layout| layout.flip(&dims))
    }

    /// `N` pieces along `dim`, of equal extents but for a smaller last one.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::arange(0i64, 6, Device::cpu()).reshape([2, 3]);
    /// let [q, k, v] = x.chunk(-1);
    /// assert_eq!((q.to_vec(), v.dims()), (vec![0, 3], [2, 1]));
    /// assert_eq!(k.to_vec(), [1, 4]);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`] of kind `Shape` if the extent does not give `N` pieces.
    #[track_caller]
    pub fn chunk<const N: usize>(&self, dim: isize) -> [Tensor<T, R>; N] {
        let extent = self.size(dim);
        let piece = extent.div_ceil(N.max(1));
        if N == 0 || (extent > 0 && (N - 1) * piece >= extent) {
            let error = Error::shape("chunk", format!("an extent of {extent} does not give {N} parts"));
            raise(refused("chunk", &[tensor(self)], &[axis(dim), Attr::Int(N as i64)], error));
        }
        std::array::from_fn(|i| self.narrow(dim, i * piece, piece.min(extent - i * piece)))
    }

    /// Every place of `dim` as a tensor of its own.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::arange(0i64, 6, Device::cpu()).reshape([2, 3]);
    /// let columns: Vec<Tensor<i64, 1>> = x.unbind(1);
    /// assert_eq!(columns[2].to_vec(), [2, 5]);
    /// ```
    #[track_caller]
    pub fn unbind(&self, dim: isize) -> Vec<Lowered<T, R>>
    where
        Rank<R>: Lower,
    {
        let mut places = Vec::with_capacity(self.size(dim));
        for index in 0..self.size(dim) {
            places.push(self.narrow(dim, index, 1).squeeze(dim));
        }
        places
    }

    /// The tensor seen through the layout that `change` makes of its own, as the op of this name does it.
    #[track_caller]
    fn view<O: AnyTensor>(
        &self,
        op: &str,
        attrs: impl FnOnce() -> Vec<Attr>,
        change: impl FnOnce(&Layout) -> Result<Layout>,
    ) -> O {
        let view = change(self.raw.layout()).map(|layout| self.raw.with_layout(layout));
        O::from_raw(seen(&self.raw, op, attrs, view).or_raise())
    }
}

fn axes(axes: &[isize]) -> Attr {
    Attr::Ints(axes.iter().map(|&axis| axis as i64).collect())
}

fn size(size: usize) -> Attr {
    Attr::Dim(Dim::Const(size as i64))
}

impl<T: Element> Tensor<T, 2> {
    /// Rows and columns exchanged.
    #[track_caller]
    pub fn t(&self) -> Self {
        self.transpose(0, 1)
    }
}
