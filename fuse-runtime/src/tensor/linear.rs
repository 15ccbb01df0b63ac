//! Products of matrices.

use super::call::call;
use super::operand::tensor;
use super::{AnyRank, MatmulRank, Rank, SameDtype, Tensor};
use crate::dtype::{Element, Float, Num};

/// A tensor of `T` with the rank of a product of ranks `A` and `B`.
pub type Product<T, const A: usize, const B: usize> = <<Rank<A> as MatmulRank<Rank<B>>>::Output as AnyRank>::Tensor<T>;

impl<T: Num, const A: usize> Tensor<T, A> {
    /// The product of matrices; leading dims are a batch and broadcast, a vector counts as a row on the left and as a
    /// column on the right.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.matmul(&x).to_vec2(), [[7.0, 10.0], [15.0, 22.0]]);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`](crate::Error) of kind `Shape` if the inner extents differ.
    #[track_caller]
    pub fn matmul<U: Element, const B: usize>(&self, other: &Tensor<U, B>) -> Product<T, A, B>
    where
        T: SameDtype<U>,
        Rank<A>: MatmulRank<Rank<B>>,
    {
        call("matmul", &[tensor(self), tensor(other)], &[])
    }
}

impl<T: Float, const R: usize> Tensor<T, R> {
    /// `x @ weight.t() + bias`, rounded once; the weight is `[out, in]`, as PyTorch's.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let (x, weight, bias) = (Tensor::from([1.0f32, 2.0]), Tensor::from([[3.0, 4.0]]), Tensor::from([0.5]));
    /// assert_eq!(x.linear(&weight, &bias).to_vec(), [11.5]);
    /// ```
    #[track_caller]
    pub fn linear(&self, weight: &Tensor<T, 2>, bias: &Tensor<T, 1>) -> Self {
        call("linear", &[tensor(self), tensor(weight), tensor(bias)], &[])
    }

    /// x plus the product of the matrices `a` and `b`, rounded once.
    #[track_caller]
    pub fn addmm(&self, a: &Tensor<T, 2>, b: &Tensor<T, 2>) -> Tensor<T, 2> {
        call("addmm", &[tensor(self), tensor(a), tensor(b)], &[])
    }

    /// x plus the products of the stacks of matrices `a` and `b`, rounded once.
    #[track_caller]
    pub fn baddbmm(&self, a: &Tensor<T, 3>, b: &Tensor<T, 3>) -> Tensor<T, 3> {
        call("baddbmm", &[tensor(self), tensor(a), tensor(b)], &[])
    }
}
