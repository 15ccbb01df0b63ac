//! Methods that compute each element of the result from the elements at the same place.

use super::call::call;
use super::operand::{Arms, Chosen, exact, tensor};
use super::{AnyRank, Broadcast, Max, Operand, Rank, Tensor};
use crate::dtype::{Bits, Element, Float, Int, Num};
use fuse_compiler::op::Attr;

/// Methods without parameters: `class of T, element type of the result: name "doc";`.
macro_rules! unary {
    ($($class:ident -> $out:ty: $($name:ident $doc:literal)*;)*) => {$(
        impl<T: $class, const R: usize> Tensor<T, R> {$(
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self) -> Tensor<$out, R> {
                call(stringify!($name), &[tensor(self)], &[])
            }
        )*}
    )*};
}

unary! {
    Num -> T:
        abs "The absolute value; the smallest integer stays itself."
        neg "The negative value."
        relu "`max(x, 0)`; NaN stays NaN.";
    Float -> T:
        exp "e to the power of x."
        ln "The natural logarithm."
        sqrt "The square root, correctly rounded."
        rsqrt "One over the square root."
        recip "One over x."
        sin "The sine."
        cos "The cosine."
        tanh "The hyperbolic tangent."
        erf "The error function."
        sigmoid "`1 / (1 + exp(-x))`."
        silu "`x * sigmoid(x)`."
        gelu "The exact GELU: x times the normal distribution function of x."
        gelu_tanh "The GELU with the distribution function approximated by a tanh."
        floor "The largest whole number not above x."
        ceil "The smallest whole number not below x."
        round "The nearest whole number, the even one of two.";
    Float -> bool:
        isnan "Whether x is not a number."
        isinf "Whether x is infinite.";
    Element -> bool:
        logical_not "Whether x is zero (false for bool: `!x`).";
    Bits -> T:
        bitwise_not "All bits inverted; `not` for bool.";
}

/// Methods with one operand that broadcasts.
macro_rules! binary {
    ($($class:ident -> $out:ty: $($name:ident $doc:literal)*;)*) => {$(
        impl<T: $class, const R: usize> Tensor<T, R> {$(
            #[doc = $doc]
            #[track_caller]
            pub fn $name<O: Operand<T, R>>(&self, other: O) -> <O::Out as AnyRank>::Tensor<$out> {
                call(stringify!($name), &[tensor(self), other.into_arg()], &[])
            }
        )*}
    )*};
}

binary! {
    Element -> bool:
        eq "Whether x equals `other`; NaN equals nothing."
        ne "Whether x differs from `other`; NaN differs from everything."
        lt "Whether x is less than `other`; false with NaN."
        le "Whether x is less than or equal to `other`; false with NaN."
        gt "Whether x is greater than `other`; false with NaN."
        ge "Whether x is greater than or equal to `other`; false with NaN."
        logical_and "Whether both are non-zero."
        logical_or "Whether one of both is non-zero.";
    Num -> T:
        minimum "The smaller of x and `other`; NaN wins, -0 is below 0."
        maximum "The larger of x and `other`; NaN wins, -0 is below 0."
        floor_divide "The quotient rounded down, as Python's `//`."
        remainder "What is left of `floor_divide`: it has the sign of the divisor, as Python's `%`."
        fmod "The remainder with the sign of the dividend, as C's `fmod` and Rust's `%`.";
    Bits -> T:
        bitwise_and "The bits set in both."
        bitwise_or "The bits set in one of both."
        bitwise_xor "The bits set in exactly one of both.";
    Int -> T:
        bitwise_left_shift "x shifted left by `other` bits; 0 where the count is outside of the width."
        bitwise_right_shift "x shifted right by `other` bits; 0, or the sign, where the count is outside of the width.";
    Float -> T:
        powf "x to the power of `other`.";
}

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
