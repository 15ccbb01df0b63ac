//! What can stand beside a tensor in an op: tensors, owned or borrowed, and scalars.

use super::{AnyRank, Broadcast, Max, Rank, Tensor};
use crate::dtype::Element;
use crate::eager::Arg;
use crate::raw::RawTensor;
use half::{bf16, f16};

/// Element types that are the same. Types never mix silently: one side is converted with `cast`.
#[diagnostic::on_unimplemented(
    message = "a tensor of `{Self}` and a tensor of `{Other}` do not mix",
    label = "the element types differ",
    note = "convert one of them, for example with `.cast::<{Self}>()`"
)]
pub trait SameDtype<Other> {}

impl<T: Element> SameDtype<T> for T {}

/// What a method of a `Tensor<T, R>` takes as its other operand: a tensor of `T` of any rank that broadcasts, owned or
/// borrowed, or a scalar of `T` (for f16 and bf16 also of f32).
///
/// ```
/// use fuse_runtime::prelude::*;
/// fn at_least<T: Num, const R: usize>(x: &Tensor<T, R>, low: impl Operand<T, R, Out = Rank<R>>) -> Tensor<T, R> {
///     x.maximum(low)
/// }
/// let x = Tensor::from_slice(&[-1.0f32, 2.0], [2], Device::cpu());
/// assert_eq!(at_least(&x, 0.0).to_vec(), [0.0, 2.0]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no operand for a tensor of `{T}` with rank {R}",
    label = "expected a tensor or a scalar of `{T}`"
)]
pub trait Operand<T: Element, const R: usize> {
    /// The rank of the result.
    type Out: AnyRank;

    /// The operand as eager ops take it.
    fn into_arg(self) -> Arg;
}

impl<T: Element, const R: usize> Operand<T, R> for T {
    type Out = Rank<R>;

    fn into_arg(self) -> Arg {
        scalar::<T, T>(self)
    }
}

macro_rules! single_scalars {
    ($($half:ty)*) => {$(
        // Scalars enter at the compute type, so an f32 beside halves is not rounded first.
        impl<const R: usize> Operand<$half, R> for f32 {
            type Out = Rank<R>;

            fn into_arg(self) -> Arg {
                scalar::<$half, f32>(self)
            }
        }
    )*};
}
single_scalars! { f16 bf16 }

impl<T: Element + SameDtype<U>, U: Element, const A: usize, const B: usize> Operand<T, A> for Tensor<U, B>
where
    Rank<A>: Max<Rank<B>>,
{
    type Out = <Rank<A> as Max<Rank<B>>>::Output;

    fn into_arg(self) -> Arg {
        tensor(self)
    }
}

impl<T: Element + SameDtype<U>, U: Element, const A: usize, const B: usize> Operand<T, A> for &Tensor<U, B>
where
    Rank<A>: Max<Rank<B>>,
{
    type Out = <Rank<A> as Max<Rank<B>>>::Output;

    fn into_arg(self) -> Arg {
        tensor(self)
    }
}

/// A tensor as eager ops take it; an owned one gives its storage up.
pub(crate) fn tensor(tensor: impl Into<RawTensor>) -> Arg {
    Arg::Tensor(tensor.into())
}

/// A scalar beside a tensor of `T`, without loss: it enters the op in the compute type.
pub(crate) fn scalar<T: Element, S: Element>(value: S) -> Arg {
    Arg::Scalar(value.to_literal(), T::DTYPE.compute())
}

/// A scalar that keeps its own element type.
pub(crate) fn exact<S: Element>(value: S) -> Arg {
    Arg::Scalar(value.to_literal(), S::DTYPE)
}

/// The two values a mask of rank `R` chooses from: tensors or scalars of one element type, in any order.
#[diagnostic::on_unimplemented(
    message = "a mask does not choose from `{Self}`",
    label = "expected tensors or scalars of one element type"
)]
pub trait Arms<const R: usize> {
    /// The element type of both.
    type Elem: Element;

    /// The rank of the result.
    type Out: AnyRank;

    /// Both values as eager ops take them.
    fn into_args(self) -> [Arg; 2];
}

/// What a mask of rank `R` makes of `A` and `B`.
pub type Chosen<A, B, const R: usize> = <<(A, B) as Arms<R>>::Out as AnyRank>::Tensor<<(A, B) as Arms<R>>::Elem>;

impl<T: Element, const R: usize> Arms<R> for (T, T) {
    type Elem = T;
    type Out = Rank<R>;

    fn into_args(self) -> [Arg; 2] {
        // Nothing but the two says what the element type of the result is.
        [exact(self.0), exact(self.1)]
    }
}

macro_rules! two_tensors {
    ($($a:ty, $b:ty;)*) => {$(
        impl<T: Element + SameDtype<U>, U: Element, const R: usize, const A: usize, const B: usize> Arms<R> for ($a, $b)
        where
            Rank<A>: Max<Rank<B>>,
            Rank<R>: Max<Broadcast<A, B>>,
        {
            type Elem = T;
            type Out = <Rank<R> as Max<Broadcast<A, B>>>::Output;

            fn into_args(self) -> [Arg; 2] {
                [tensor(self.0), tensor(self.1)]
            }
        }
    )*};
}

two_tensors! {
    Tensor<T, A>, Tensor<U, B>;
    Tensor<T, A>, &Tensor<U, B>;
    &Tensor<T, A>, Tensor<U, B>;
    &Tensor<T, A>, &Tensor<U, B>;
}

macro_rules! tensor_and_scalar {
    ($([$($t:tt)*] $element:ty, $scalar:ty, $tensor:ty;)*) => {$(
        impl<$($t)* const R: usize, const A: usize> Arms<R> for ($tensor, $scalar)
        where
            Rank<R>: Max<Rank<A>>,
        {
            type Elem = $element;
            type Out = Broadcast<R, A>;

            fn into_args(self) -> [Arg; 2] {
                [tensor(self.0), scalar::<$element, _>(self.1)]
            }
        }

        impl<$($t)* const R: usize, const A: usize> Arms<R> for ($scalar, $tensor)
        where
            Rank<R>: Max<Rank<A>>,
        {
            type Elem = $element;
            type Out = Broadcast<R, A>;

            fn into_args(self) -> [Arg; 2] {
                [scalar::<$element, _>(self.0), tensor(self.1)]
            }
        }
    )*};
}

tensor_and_scalar! {
    [T: Element,] T, T, Tensor<T, A>;
    [T: Element,] T, T, &Tensor<T, A>;
    [] f16, f32, Tensor<f16, A>;
    [] f16, f32, &Tensor<f16, A>;
    [] bf16, f32, Tensor<bf16, A>;
    [] bf16, f32, &Tensor<bf16, A>;
}
