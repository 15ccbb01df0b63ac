//! Elementwise methods whose signatures do not follow from their rows.

use super::call::call;
use super::operand::{Arms, Chosen, exact, tensor};
use super::{AnyRank, Broadcast, Max, Operand, Rank, Tensor};
use crate::dtype::{Element, Float, Num};
use fuse_compiler::op::Attr;

impl<T: Num, const R: usize> Tensor<T, R> {
    /// x to the power of a whole number. Integers wrap.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::from([2.0f32, -3.0]).powi(2).to_vec(), [4.0, 9.0]);
    /// ```
    #[track_caller]
    pub fn powi(&self, exponent: i32) -> Self {
        call("powi", &[tensor(self), exact(exponent)], &[])
    }

    /// x limited to `min..=max`, which are scalars or tensors that broadcast; NaN in any of them wins.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::from([-1.0f32, 0.5, 2.0]).clamp(0.0, 1.0).to_vec(), [0.0, 0.5, 1.0]);
    /// ```
    #[track_caller]
    pub fn clamp<L, H>(&self, min: L, max: H) -> <<L::Out as Max<H::Out>>::Output as AnyRank>::Tensor<T>
    where
        L: Operand<T, R, Out: Max<H::Out>>,
        H: Operand<T, R>,
    {
        call("clamp", &[tensor(self), min.into_arg(), max.into_arg()], &[])
    }
}

impl<T: Float, const R: usize> Tensor<T, R> {
    /// x where it is positive, else x times `slope`.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::from([-2.0f32, 3.0]).leaky_relu(0.5).to_vec(), [-1.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn leaky_relu(&self, slope: impl Operand<T, R, Out = Rank<R>>) -> Self {
        call("leaky_relu", &[tensor(self), slope.into_arg()], &[])
    }
}

impl<T: Element, const R: usize> Tensor<T, R> {
    /// `value` where `mask` is true, x elsewhere.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// assert_eq!(x.masked_fill(&x.gt(1.5), 0.0).to_vec(), [1.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn masked_fill<const M: usize>(
        &self,
        mask: &Tensor<bool, M>,
        value: impl Operand<T, R, Out = Rank<R>>,
    ) -> <Broadcast<R, M> as AnyRank>::Tensor<T>
    where
        Rank<R>: Max<Rank<M>>,
    {
        call("masked_fill", &[tensor(self), tensor(mask), value.into_arg()], &[])
    }

    /// The values in another element type, by the rules of Rust's `as`: truncated and saturated, NaN to 0, non-zero to true.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::from([-1.0f32, 2.9, 300.0]).cast::<u8>().to_vec(), [0, 2, 255]);
    /// ```
    #[track_caller]
    pub fn cast<U: Element>(&self) -> Tensor<U, R> {
        if T::DTYPE == U::DTYPE {
            return Tensor::from_raw(self.raw().clone());
        }
        call("cast", &[tensor(self)], &[Attr::DType(U::DTYPE)])
    }
}

impl<const R: usize> Tensor<bool, R> {
    /// `a` where x is true, `b` elsewhere; both are tensors or scalars and broadcast.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::from([-1.0f32, 2.0]);
    /// assert_eq!(x.gt(0.0).where_cond(&x, 0.0).to_vec(), [0.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn where_cond<A, B>(&self, a: A, b: B) -> Chosen<A, B, R>
    where
        (A, B): Arms<R>,
    {
        let [a, b] = (a, b).into_args();
        call("where_cond", &[tensor(self), a, b], &[])
    }
}
