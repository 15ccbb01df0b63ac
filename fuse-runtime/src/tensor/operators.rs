//! The operators of Rust on tensors, owned or borrowed, with a tensor or a scalar on either side.
//!
//! They mean what they mean on Rust's scalars; PyTorch's integer division and remainder are methods.

use super::call::call;
use super::operand::{scalar, tensor};
use super::write::assign;
use super::{Joined, Max, Rank, SameDtype, Tensor};
use crate::dtype::{Bits, Element, Int, Num};
use half::{bf16, f16};
use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign, Mul, MulAssign,
    Neg, Not, Rem, RemAssign, Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};

/// One binary operator between two tensors, each owned or borrowed.
macro_rules! between_tensors {
    ($trait:ident $method:ident $op:literal $class:ident: $($a:ty, $b:ty;)*) => {$(
        impl<T: $class + SameDtype<U>, U: Element, const A: usize, const B: usize> $trait<$b> for $a
        where
            Rank<A>: Max<Rank<B>>,
        {
            type Output = Joined<T, A, B>;

            #[track_caller]
            fn $method(self, other: $b) -> Self::Output {
                call($op, &[tensor(self), tensor(other)], &[])
            }
        }
    )*};
}

/// One binary operator between a tensor, owned or borrowed, and a scalar on its right.
macro_rules! scalar_right {
    ($trait:ident $method:ident $op:literal: $([$($t:tt)*] $element:ty, $scalar:ty, $tensor:ty;)*) => {$(
        impl<$($t)* const R: usize> $trait<$scalar> for $tensor {
            type Output = Tensor<$element, R>;

            #[track_caller]
            fn $method(self, other: $scalar) -> Self::Output {
                call($op, &[tensor(self), scalar::<$element, _>(other)], &[])
            }
        }
    )*};
}

/// One binary operator between a scalar on the left and a tensor, owned or borrowed.
///
/// Rust allows no impl for every `T` here, so there is one for each element type.
macro_rules! scalar_left {
    ($trait:ident $method:ident $op:literal: $($scalar:ty, $element:ty;)*) => {$(
        scalar_left! { @one $trait $method $op $scalar, $element, Tensor<$element, R> }
        scalar_left! { @one $trait $method $op $scalar, $element, &Tensor<$element, R> }
    )*};
    (@one $trait:ident $method:ident $op:literal $scalar:ty, $element:ty, $tensor:ty) => {
        impl<const R: usize> $trait<$tensor> for $scalar {
            type Output = Tensor<$element, R>;

            #[track_caller]
            fn $method(self, other: $tensor) -> Self::Output {
                call($op, &[scalar::<$element, _>(self), tensor(other)], &[])
            }
        }
    };
}

/// One assigning operator. The tensor keeps its storage if nothing else holds it.
macro_rules! assigning {
    ($trait:ident $method:ident $op:literal $class:ident) => {
        assigning! { @one $trait $method $op [T: $class + SameDtype<U>, U: Element, const B: usize,] T, Tensor<U, B>, tensor; Rank<R>: Max<Rank<B>, Output = Rank<R>> }
        assigning! { @one $trait $method $op [T: $class + SameDtype<U>, U: Element, const B: usize,] T, &Tensor<U, B>, tensor; Rank<R>: Max<Rank<B>, Output = Rank<R>> }
        assigning! { @one $trait $method $op [T: $class,] T, T, scalar::<T, _>; }
    };
    (@one $trait:ident $method:ident $op:literal [$($t:tt)*] $element:ty, $other:ty, $arg:expr; $($bound:tt)*) => {
        impl<$($t)* const R: usize> $trait<$other> for Tensor<$element, R>
        where
            $($bound)*
        {
            #[track_caller]
            fn $method(&mut self, other: $other) {
                assign(self, $op, $arg(other));
            }
        }
    };
}

macro_rules! binary {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:literal $class:ident: $($left:ty)*;)*) => {$(
        between_tensors! { $trait $method $op $class:
            Tensor<T, A>, Tensor<U, B>;
            Tensor<T, A>, &Tensor<U, B>;
            &Tensor<T, A>, Tensor<U, B>;
            &Tensor<T, A>, &Tensor<U, B>;
        }
        scalar_right! { $trait $method $op: [T: $class,] T, T, Tensor<T, R>; [T: $class,] T, T, &Tensor<T, R>; }
        scalar_left! { $trait $method $op: $($left, $left;)* }
        assigning! { $assign $assign_method $op $class }
    )*};
}

binary! {
    Add add AddAssign add_assign "add" Num: f32 f64 f16 bf16 i64 i32 u8;
    Sub sub SubAssign sub_assign "sub" Num: f32 f64 f16 bf16 i64 i32 u8;
    Mul mul MulAssign mul_assign "mul" Num: f32 f64 f16 bf16 i64 i32 u8;
    Div div DivAssign div_assign "div" Num: f32 f64 f16 bf16 i64 i32 u8;
    Rem rem RemAssign rem_assign "fmod" Num: f32 f64 f16 bf16 i64 i32 u8;
    BitAnd bitand BitAndAssign bitand_assign "bitwise_and" Bits: i64 i32 u8 bool;
    BitOr bitor BitOrAssign bitor_assign "bitwise_or" Bits: i64 i32 u8 bool;
    BitXor bitxor BitXorAssign bitxor_assign "bitwise_xor" Bits: i64 i32 u8 bool;
    Shl shl ShlAssign shl_assign "bitwise_left_shift" Int: i64 i32 u8;
    Shr shr ShrAssign shr_assign "bitwise_right_shift" Int: i64 i32 u8;
}

/// The halves also take f32 scalars, which are not rounded to the half type first.
macro_rules! half_and_single {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:literal;)*) => {$(
        scalar_right! { $trait $method $op:
            [] f16, f32, Tensor<f16, R>; [] f16, f32, &Tensor<f16, R>;
            [] bf16, f32, Tensor<bf16, R>; [] bf16, f32, &Tensor<bf16, R>;
        }
        scalar_left! { $trait $method $op: f32, f16; f32, bf16; }
        assigning! { @one $assign $assign_method $op [] f16, f32, scalar::<f16, _>; }
        assigning! { @one $assign $assign_method $op [] bf16, f32, scalar::<bf16, _>; }
    )*};
}

half_and_single! {
    Add add AddAssign add_assign "add";
    Sub sub SubAssign sub_assign "sub";
    Mul mul MulAssign mul_assign "mul";
    Div div DivAssign div_assign "div";
    Rem rem RemAssign rem_assign "fmod";
}

macro_rules! unary {
    ($($trait:ident $method:ident $op:literal $class:ident: $($tensor:ty)*;)*) => {$($(
        impl<T: $class, const R: usize> $trait for $tensor {
            type Output = Tensor<T, R>;

            #[track_caller]
            fn $method(self) -> Self::Output {
                call($op, &[tensor(self)], &[])
            }
        }
    )*)*};
}

unary! {
    Neg neg "neg" Num: Tensor<T, R> &Tensor<T, R>;
    Not not "bitwise_not" Bits: Tensor<T, R> &Tensor<T, R>;
}
