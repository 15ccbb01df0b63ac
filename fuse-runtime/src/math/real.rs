//! Functions of real numbers, for f32 and f64.

use super::number::Number;
use crate::reduce::{Accumulate, Ordered};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// A floating-point compute type.
pub trait Real:
    Number
    + Accumulate
    + Ordered
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + Neg<Output = Self>
{
    /// The nearest value to `x`.
    fn of(x: f64) -> Self;
    /// e to the `self`.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// A power with any exponent.
    fn powf(self, exponent: Self) -> Self;
    /// The sine of radians.
    fn sin(self) -> Self;
    /// The cosine of radians.
    fn cos(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// The probability that a standard normal number is below `self`, without cancellation in the lower tail.
    fn normal_cdf(self) -> Self;
    /// The largest whole number that is not above.
    fn floor(self) -> Self;
    /// The smallest whole number that is not below.
    fn ceil(self) -> Self;
    /// The whole number next towards zero.
    fn trunc(self) -> Self;
    /// The nearest whole number, halves to even.
    fn round(self) -> Self;
    /// Whether it is NaN.
    fn isnan(self) -> bool;
    /// Whether it is an infinity.
    fn isinf(self) -> bool;
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])* $name:ident($($arg:ident),*) -> $out:ty;)*) => {$(
        $(#[doc = $doc])*
        #[inline(always)]
        pub fn $name<T: Real>($($arg: T),*) -> $out {
            Real::$name($($arg),*)
        }
    )*};
}

functions! {
    /// e to the `x`.
    exp(x) -> T;
    /// The natural logarithm.
    ln(x) -> T;
    /// The square root, correctly rounded.
    sqrt(x) -> T;
    /// A power with any exponent.
    powf(x, exponent) -> T;
    /// The sine of radians.
    sin(x) -> T;
    /// The cosine of radians.
    cos(x) -> T;
    /// The hyperbolic tangent.
    tanh(x) -> T;
    /// The error function.
    erf(x) -> T;
    /// The largest whole number that is not above.
    floor(x) -> T;
    /// The smallest whole number that is not below.
    ceil(x) -> T;
    /// The whole number next towards zero.
    trunc(x) -> T;
    /// The nearest whole number, halves to even.
    round(x) -> T;
    /// Whether it is NaN.
    isnan(x) -> bool;
    /// Whether it is an infinity.
    isinf(x) -> bool;
}

/// The reciprocal.
#[inline(always)]
pub fn recip<T: Real>(x: T) -> T {
    T::ONE / x
}

/// The reciprocal of the square root.
#[inline(always)]
pub fn rsqrt<T: Real>(x: T) -> T {
    T::ONE / Real::sqrt(x)
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub fn sigmoid<T: Real>(x: T) -> T {
    // For large negative x the exponential overflows to infinity, whose reciprocal is the right 0.
    T::ONE / (T::ONE + Real::exp(-x))
}

/// `x * sigmoid(x)`.
#[inline(always)]
pub fn silu<T: Real>(x: T) -> T {
    x / (T::ONE + Real::exp(-x))
}

/// `x` if it is not negative, else `x * slope`.
#[inline(always)]
pub fn leaky_relu<T: Real>(x: T, slope: T) -> T {
    if x > T::ZERO { x } else { x * slope }
}

/// `x` times the probability that a standard normal number is below `x`.
#[inline(always)]
pub fn gelu<T: Real>(x: T) -> T {
    x * Real::normal_cdf(x)
}

/// The form of [`gelu`] with a hyperbolic tangent.
#[inline(always)]
pub fn gelu_tanh<T: Real>(x: T) -> T {
    // 0.5 * (1 + tanh(u)) = sigmoid(2u), which does not cancel for negative u.
    let root = T::of(0.797_884_560_802_865_4);
    let inner = root * (x + T::of(0.044715) * x * x * x);
    x * sigmoid(inner + inner)
}
