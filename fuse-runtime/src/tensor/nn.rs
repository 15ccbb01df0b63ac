//! Layers and losses.

use super::call::call;
use super::operand::{exact, tensor};
use super::{AnyTensor, Lower, Lowered, Rank, Tensor};
use crate::dtype::{Element, Float};
use crate::eager::Arg;
use fuse_compiler::op::Attr;
use fuse_compiler::types::Dim;

impl<T: Float, const R: usize> Tensor<T, R> {
    /// x along its last dim, shifted to mean 0, scaled to variance 1, then times `weight` plus `bias`.
    #[track_caller]
    pub fn layer_norm(&self, weight: &Tensor<T, 1>, bias: &Tensor<T, 1>, eps: f64) -> Self {
        call("layer_norm", &[tensor(self), tensor(weight), tensor(bias), exact(eps)], &[])
    }

    /// x along its last dim, scaled to mean square 1, then times `weight`.
    #[track_caller]
    pub fn rms_norm(&self, weight: &Tensor<T, 1>, eps: f64) -> Self {
        call("rms_norm", &[tensor(self), tensor(weight), exact(eps)], &[])
    }

    /// In training, every element set to 0 with probability `p` and the others scaled by `1 / (1 - p)`; x itself otherwise.
    #[track_caller]
    pub fn dropout(&self, p: f64, training: bool) -> Self {
        call("dropout", &[tensor(self), exact(p)], &[Attr::Bool(training)])
    }

    /// The mean cross-entropy of logits, whose classes are dim 1 (dim 0 for rank 1), against class numbers; those of -100
    /// are left out.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let logits = Tensor::from([[1000.0f32, 0.0]]);
    /// assert_eq!(logits.cross_entropy(&Tensor::from([1i64])).item(), 1000.0);
    /// ```
    #[track_caller]
    pub fn cross_entropy(&self, targets: &Lowered<i64, R>) -> Tensor<T, 0>
    where
        Rank<R>: Lower,
    {
        call("cross_entropy", &[tensor(self), Arg::Tensor(targets.as_raw().clone())], &[])
    }

    /// The cross-entropy of logits against class numbers, reduced as asked for; targets of `ignore_index` are left out.
    #[track_caller]
    pub fn cross_entropy_with<K: ReductionKind<T, R>>(
        &self,
        targets: &Lowered<i64, R>,
        _reduction: K,
        ignore_index: i64,
    ) -> K::Out
    where
        Rank<R>: Lower,
    {
        let attrs = [Attr::Int(K::CHOICE), Attr::Dim(Dim::Const(ignore_index))];
        call("cross_entropy_with", &[tensor(self), Arg::Tensor(targets.as_raw().clone())], &attrs)
    }

    /// `softmax(x @ k^T / sqrt(head)) @ v` over the last two dims, sequence and head.
    ///
    /// The mask is `()` or `None` for no mask, a bool tensor (true: may attend) or a tensor that is added to the scores.
    /// Causal masks align at the top left; a row that may attend to nothing gives 0.
    #[track_caller]
    pub fn scaled_dot_product_attention(
        &self,
        k: &Tensor<T, R>,
        v: &Tensor<T, R>,
        mask: impl AttentionMask<T, R>,
        is_causal: bool,
    ) -> Self {
        let mut args = vec![tensor(self), tensor(k), tensor(v)];
        args.extend(mask.into_arg());
        call("scaled_dot_product_attention", &args, &[Attr::Bool(is_causal)])
    }
}

/// How a loss is reduced; the type of the choice decides the rank of the result.
#[allow(non_snake_case)]
pub mod Reduction {
    /// One loss for every target.
    #[derive(Clone, Copy, Debug)]
    pub struct None;
    /// The mean over all targets that count.
    #[derive(Clone, Copy, Debug)]
    pub struct Mean;
    /// The sum over all targets that count.
    #[derive(Clone, Copy, Debug)]
    pub struct Sum;
}

/// A choice of [`Reduction`] for logits of `T` with rank `R`.
pub trait ReductionKind<T: Element, const R: usize> {
    /// The loss.
    type Out: AnyTensor;

    /// Its position among the choices of the op.
    const CHOICE: i64;
}

impl<T: Element, const R: usize> ReductionKind<T, R> for Reduction::None
where
    Rank<R>: Lower,
{
    type Out = Lowered<T, R>;
    const CHOICE: i64 = 0;
}

impl<T: Element, const R: usize> ReductionKind<T, R> for Reduction::Mean {
    type Out = Tensor<T, 0>;
    const CHOICE: i64 = 1;
}

impl<T: Element, const R: usize> ReductionKind<T, R> for Reduction::Sum {
    type Out = Tensor<T, 0>;
    const CHOICE: i64 = 2;
}

/// What attention takes as mask over queries of `T` with rank `R`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no attention mask for tensors of `{T}`",
    label = "expected `()`, `None`, `&Tensor<bool, _>` or `&Tensor<{T}, _>`"
)]
pub trait AttentionMask<T: Element, const R: usize> {
    /// The mask as eager ops take it.
    fn into_arg(self) -> Option<Arg>;
}

impl<T: Element, const R: usize> AttentionMask<T, R> for () {
    fn into_arg(self) -> Option<Arg> {
        None
    }
}

impl<T: Float, const R: usize, const M: usize> AttentionMask<T, R> for &Tensor<bool, M> {
    fn into_arg(self) -> Option<Arg> {
        Some(tensor(self))
    }
}

impl<T: Float, const R: usize, const M: usize> AttentionMask<T, R> for &Tensor<T, M> {
    fn into_arg(self) -> Option<Arg> {
        Some(tensor(self))
    }
}

/// One element type and rank only, so that a bare `None` needs no annotation.
impl<T: Float, const R: usize> AttentionMask<T, R> for Option<&Tensor<bool, R>> {
    fn into_arg(self) -> Option<Arg> {
        self.map(tensor)
    }
}
