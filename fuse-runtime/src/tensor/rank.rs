//! Arithmetic on ranks in the type system: the rank of a result follows from the ranks of its operands.

use super::Tensor;
use crate::dtype::Element;
use crate::raw::RawTensor;

/// A rank as a type.
#[derive(Clone, Copy, Debug)]
pub struct Rank<const R: usize>;

/// A tensor type whose element type and rank the caller need not know.
pub trait AnyTensor {
    /// The typed form of `raw`, whose element type and rank are the ones of this type.
    fn from_raw(raw: RawTensor) -> Self;

    /// The untyped tensor.
    fn as_raw(&self) -> &RawTensor;
}

impl<T: Element, const R: usize> AnyTensor for Tensor<T, R> {
    fn from_raw(raw: RawTensor) -> Self {
        Tensor::from_raw(raw)
    }

    fn as_raw(&self) -> &RawTensor {
        self.raw()
    }
}

/// Every [`Rank`], and the tensors that have it.
pub trait AnyRank {
    /// Tensors of this rank.
    type Tensor<T: Element>: AnyTensor;
}

impl<const R: usize> AnyRank for Rank<R> {
    type Tensor<T: Element> = Tensor<T, R>;
}

/// The rank two operands broadcast to: the larger one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{Other}` do not broadcast",
    note = "tensors have ranks 0 to 6; in a function generic over the rank both operands need the same one"
)]
pub trait Max<Other> {
    /// The larger rank.
    type Output: AnyRank;
}

impl<const R: usize> Max<Rank<R>> for Rank<R> {
    type Output = Rank<R>;
}

/// The rank that is left when one dim goes. A tensor of rank 0 counts as one element, so rank 0 stays.
#[diagnostic::on_unimplemented(
    message = "the rank below `{Self}` is not known",
    note = "tensors have ranks 0 to 6; a function generic over the rank cannot drop a dim"
)]
pub trait Lower {
    /// The rank below.
    type Output: AnyRank;
}

/// The rank that comes about when one dim is added.
#[diagnostic::on_unimplemented(
    message = "the rank above `{Self}` is not known",
    note = "tensors have ranks 0 to 6; a function generic over the rank cannot add a dim"
)]
pub trait Raise {
    /// The rank above.
    type Output: AnyRank;
}

/// The rank of a product of matrices, by PyTorch's rule: a vector counts as a row on the left and as a column on the right.
#[diagnostic::on_unimplemented(
    message = "`matmul` does not multiply `{Self}` by `{Other}`",
    note = "`matmul` takes ranks 1 to 6; a scalar is multiplied with `*`"
)]
pub trait MatmulRank<Other> {
    /// The rank of the product.
    type Output: AnyRank;
}

macro_rules! pairs {
    ($trait:ident: $($a:literal $b:literal => $c:literal,)*) => {
        $(impl $trait<Rank<$b>> for Rank<$a> { type Output = Rank<$c>; })*
    };
}

macro_rules! singles {
    ($trait:ident: $($a:literal => $b:literal,)*) => { $(impl $trait for Rank<$a> { type Output = Rank<$b>; })* };
}

singles! { Lower: 0 => 0, 1 => 0, 2 => 1, 3 => 2, 4 => 3, 5 => 4, 6 => 5, }
singles! { Raise: 0 => 1, 1 => 2, 2 => 3, 3 => 4, 4 => 5, 5 => 6, }

#[rustfmt::skip]
pairs! { Max:
             0 1 => 1, 0 2 => 2, 0 3 => 3, 0 4 => 4, 0 5 => 5, 0 6 => 6,
    1 0 => 1,          1 2 => 2, 1 3 => 3, 1 4 => 4, 1 5 => 5, 1 6 => 6,
    2 0 => 2, 2 1 => 2,          2 3 => 3, 2 4 => 4, 2 5 => 5, 2 6 => 6,
    3 0 => 3, 3 1 => 3, 3 2 => 3,          3 4 => 4, 3 5 => 5, 3 6 => 6,
    4 0 => 4, 4 1 => 4, 4 2 => 4, 4 3 => 4,          4 5 => 5, 4 6 => 6,
    5 0 => 5, 5 1 => 5, 5 2 => 5, 5 3 => 5, 5 4 => 5,          5 6 => 6,
    6 0 => 6, 6 1 => 6, 6 2 => 6, 6 3 => 6, 6 4 => 6, 6 5 => 6,
}

#[rustfmt::skip]
pairs! { MatmulRank:
    1 1 => 0, 1 2 => 1, 1 3 => 2, 1 4 => 3, 1 5 => 4, 1 6 => 5,
    2 1 => 1, 2 2 => 2, 2 3 => 3, 2 4 => 4, 2 5 => 5, 2 6 => 6,
    3 1 => 2, 3 2 => 3, 3 3 => 3, 3 4 => 4, 3 5 => 5, 3 6 => 6,
    4 1 => 3, 4 2 => 4, 4 3 => 4, 4 4 => 4, 4 5 => 5, 4 6 => 6,
    5 1 => 4, 5 2 => 5, 5 3 => 5, 5 4 => 5, 5 5 => 5, 5 6 => 6,
    6 1 => 5, 6 2 => 6, 6 3 => 6, 6 4 => 6, 6 5 => 6, 6 6 => 6,
}

/// The rank that ranks `A` and `B` broadcast to.
pub type Broadcast<const A: usize, const B: usize> = <Rank<A> as Max<Rank<B>>>::Output;

/// A tensor of `T` with the rank that ranks `A` and `B` broadcast to.
pub type Joined<T, const A: usize, const B: usize> = <Broadcast<A, B> as AnyRank>::Tensor<T>;

/// A tensor of `T` with one dim less than `R`.
pub type Lowered<T, const R: usize> = <<Rank<R> as Lower>::Output as AnyRank>::Tensor<T>;

/// A tensor of `T` with one dim more than `R`.
pub type Raised<T, const R: usize> = <<Rank<R> as Raise>::Output as AnyRank>::Tensor<T>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::TypeId;

    fn same<A: 'static, B: 'static>() -> bool {
        TypeId::of::<A>() == TypeId::of::<B>()
    }

    #[test]
    fn ranks_broadcast_to_the_larger() {
        assert!(same::<Joined<f32, 2, 3>, Tensor<f32, 3>>());
        assert!(same::<Joined<f32, 6, 0>, Tensor<f32, 6>>());
        assert!(same::<Joined<f32, 4, 4>, Tensor<f32, 4>>());
    }

    #[test]
    fn dims_come_and_go() {
        assert!(same::<Lowered<i64, 3>, Tensor<i64, 2>>());
        assert!(same::<Lowered<i64, 0>, Tensor<i64, 0>>());
        assert!(same::<Raised<i64, 5>, Tensor<i64, 6>>());
    }

    #[test]
    fn vectors_lose_their_dim_in_a_product() {
        assert!(same::<<Rank<1> as MatmulRank<Rank<1>>>::Output, Rank<0>>());
        assert!(same::<<Rank<1> as MatmulRank<Rank<3>>>::Output, Rank<2>>());
        assert!(same::<<Rank<4> as MatmulRank<Rank<1>>>::Output, Rank<3>>());
        assert!(same::<<Rank<2> as MatmulRank<Rank<5>>>::Output, Rank<5>>());
    }
}
