//! Products of matrices.

use super::call::call;
use super::operand::tensor;
use super::{AnyRank, MatmulRank, Rank, SameDtype, Tensor};
use crate::dtype::{Element, Float, Num, f8e4m3};

use fuse_compiler::op::Attr;

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

impl<const R: usize> Tensor<f8e4m3, R> {
    /// The product of fp8 matrices, summed in f32, times `scale` and `other_scale`, which stand for what the operands were divided
    /// by before they were cast: PyTorch's `_scaled_mm` with a scale for each tensor. Leading dims are a batch and broadcast.
    ///
    /// The result is rounded once to `Out`. What else is to happen before that, such as a bias, follows a result in f32:
    /// `(a.scaled_matmul::<f32>(&b, &s, &t) + bias).cast::<bf16>()`.
    ///
    /// On Hopper both operands are multiplied as they are if they lie in aligned runs of 16 along the dim that is summed over: `b`
    /// as `weight.t()`. Its tensor cores keep about 14 bits of a sum of 128 products, which are then added up in f32: measured,
    /// that is off by up to 2e-4 of the sum of |a||b| for normal data and by 1.1e-3 where all are positive, as cuBLASLt's is.
    /// Elsewhere fp8 is multiplied as f16, which holds it exactly.
    ///
    /// The scales have gradients; the operands, which are fp8, are constants to them.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let (x, scale) = (Tensor::from([[96.0f32, 192.0]]), Tensor::of_scalar(0.5f32));
    /// let a = (&x / &scale).cast::<f8e4m3>();
    /// assert_eq!(a.scaled_matmul::<f32>(&a.t(), &scale, &scale).to_vec(), [46080.0]);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`](crate::Error) of kind `Shape` if the inner extents differ.
    #[track_caller]
    pub fn scaled_matmul<Out: Float>(
        &self,
        other: &Self,
        scale: &Tensor<f32, 0>,
        other_scale: &Tensor<f32, 0>,
    ) -> Tensor<Out, R> {
        let operands = [tensor(self), tensor(other), tensor(scale), tensor(other_scale)];
        call("scaled_matmul", &operands, &[Attr::DType(Out::DTYPE)])
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
