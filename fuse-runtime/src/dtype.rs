//! The element types of tensors, as types.

pub use crate::float8::f8e4m3;
use crate::math::{Convert, Real};
use crate::tensor::Tensor;
use fuse_compiler::op::Literal;
use fuse_compiler::types::DType;
use half::{bf16, f16};
use std::fmt::{Debug, Display};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

mod sealed {
    pub trait Sealed {}
}

/// An element type of a tensor: `f32 f64 f16 bf16 f8e4m3 i64 i32 u8 bool`.
///
/// ```
/// use fuse_runtime::prelude::*;
/// fn double<T: Element>(value: T) -> T {
///     T::from_f64(value.to_f64() * 2.0)
/// }
/// assert_eq!(double(3i64), 6);
/// assert_eq!(double(1.5f32), 3.0);
/// ```
pub trait Element:
    sealed::Sealed + Convert + Copy + Default + PartialEq + PartialOrd + Debug + Display + Send + Sync + 'static
{
    /// The same type as a value.
    const DTYPE: DType;

    /// The type ops on elements compute in: `f32` for halves and fp8, the type itself otherwise.
    type Compute: Element<Compute = Self::Compute>;

    /// The type of a `sum` or `prod`: `i64` for integers and bool, `f32` for fp8, the type itself otherwise.
    type Sum: Element;

    /// The nearest value to `value`, by the rules of a cast: truncation and saturation for integers, NaN to 0.
    fn from_f64(value: f64) -> Self;

    /// The value as f64, exact for everything but large i64.
    fn to_f64(self) -> f64;

    /// The value in the compute type.
    fn to_compute(self) -> Self::Compute;

    /// The nearest value to one in the compute type.
    fn from_compute(value: Self::Compute) -> Self;

    /// The value as a constant of a graph, exact to the bit.
    fn to_literal(self) -> Literal;
}

/// An element type with arithmetic: all but `bool` and `f8e4m3`.
///
/// ```
/// use fuse_runtime::prelude::*;
/// fn double_plus_one<T: Num>(x: &Tensor<T, 2>) -> Tensor<T, 2> {
///     T::from_f64(2.0) * x + T::from_f64(1.0)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` are not computed with",
    note = "convert them: fp8 with `.cast::<f32>()`, bool with `.cast::<i64>()`"
)]
pub trait Num:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + LeftOf<0>
    + LeftOf<1>
    + LeftOf<2>
    + LeftOf<3>
    + LeftOf<4>
    + LeftOf<5>
    + LeftOf<6>
{
}

/// A scalar that may stand on the left of a tensor of rank `R`; every [`Num`] does for every rank.
///
/// Rust has no bound over all ranks at once, so `Num` lists them.
pub trait LeftOf<const R: usize>:
    Element
    + Add<Tensor<Self, R>, Output = Tensor<Self, R>>
    + Sub<Tensor<Self, R>, Output = Tensor<Self, R>>
    + Mul<Tensor<Self, R>, Output = Tensor<Self, R>>
    + Div<Tensor<Self, R>, Output = Tensor<Self, R>>
    + Rem<Tensor<Self, R>, Output = Tensor<Self, R>>
    + for<'a> Add<&'a Tensor<Self, R>, Output = Tensor<Self, R>>
    + for<'a> Sub<&'a Tensor<Self, R>, Output = Tensor<Self, R>>
    + for<'a> Mul<&'a Tensor<Self, R>, Output = Tensor<Self, R>>
    + for<'a> Div<&'a Tensor<Self, R>, Output = Tensor<Self, R>>
    + for<'a> Rem<&'a Tensor<Self, R>, Output = Tensor<Self, R>>
{
}

/// A floating-point element type: `f32 f64 f16 bf16`.
pub trait Float: Num + Element<Sum = Self, Compute: Real> + Neg<Output = Self> {}

/// An integer element type: `i64 i32 u8`.
pub trait Int: Num + Bits {}

/// An element type with bitwise operators: the integers and `bool`.
pub trait Bits: Element {}

macro_rules! elements {
    ($($ty:ty, $dtype:ident, $compute:ty, $sum:ty, $up:ident, $down:ident, $literal:ident($wide:ty);)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Compute = $compute;
            type Sum = $sum;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                Self::of_f64(value)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.as_f64()
            }
            #[inline(always)]
            fn to_compute(self) -> $compute {
                self.$up()
            }
            #[inline(always)]
            fn from_compute(value: $compute) -> Self {
                Self::$down(value)
            }
            fn to_literal(self) -> Literal {
                Literal::$literal(<$wide>::from(self))
            }
        }
    )*};
}

elements! {
    f32,  F32,  f32,  f32,  clone,  from,   Float(f64);
    f64,  F64,  f64,  f64,  clone,  from,   Float(f64);
    f16,  F16,  f32,  f16,  as_f32, of_f32, Float(f64);
    bf16, BF16, f32,  bf16, as_f32, of_f32, Float(f64);
    f8e4m3, F8E4M3, f32, f32, as_f32, of_f32, Float(f64);
    i64,  I64,  i64,  i64,  clone,  from,   Int(i64);
    i32,  I32,  i32,  i64,  clone,  from,   Int(i64);
    u8,   U8,   u8,   i64,  clone,  from,   Int(i64);
    bool, Bool, bool, i64,  clone,  from,   Bool(bool);
}

macro_rules! classes {
    ($($class:path: $($ty:ty)*;)*) => { $($(impl $class for $ty {})*)* };
}

classes! {
    LeftOf<0>: f32 f64 f16 bf16 i64 i32 u8;
    LeftOf<1>: f32 f64 f16 bf16 i64 i32 u8;
    LeftOf<2>: f32 f64 f16 bf16 i64 i32 u8;
    LeftOf<3>: f32 f64 f16 bf16 i64 i32 u8;
    LeftOf<4>: f32 f64 f16 bf16 i64 i32 u8;
    LeftOf<5>: f32 f64 f16 bf16 i64 i32 u8;
    LeftOf<6>: f32 f64 f16 bf16 i64 i32 u8;
    Num:   f32 f64 f16 bf16 i64 i32 u8;
    Float: f32 f64 f16 bf16;
    Int:   i64 i32 u8;
    Bits:  i64 i32 u8 bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_f64_saturates_and_turns_nan_to_zero() {
        assert_eq!(u8::from_f64(300.0), 255);
        assert_eq!(u8::from_f64(-1.0), 0);
        assert_eq!(i32::from_f64(f64::NAN), 0);
        assert!(bool::from_f64(f64::NAN));
        assert!(!bool::from_f64(-0.0));
    }

    #[test]
    fn halves_round_to_nearest_even() {
        assert_eq!(f16::from_f64(0.1).to_f64(), 0.0999755859375);
        assert_eq!(bf16::from_f64(1.00390625).to_f64(), 1.0);
    }
}
