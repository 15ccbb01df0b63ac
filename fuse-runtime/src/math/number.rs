//! Arithmetic of floats and integers. Integers wrap at their width and never panic.

use super::value::Value;

/// A compute type with arithmetic.
pub trait Number: Value {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The sum.
    fn add(self, other: Self) -> Self;
    /// The difference.
    fn sub(self, other: Self) -> Self;
    /// The product.
    fn mul(self, other: Self) -> Self;
    /// The quotient, truncated for integers. An integer divided by zero gives 0; the kernel notes the fault.
    fn div(self, other: Self) -> Self;
    /// What is left of the truncated quotient, with the sign of the dividend.
    fn fmod(self, other: Self) -> Self;
    /// The floor of the quotient.
    fn floor_divide(self, other: Self) -> Self;
    /// What is left of the floored quotient, with the sign of the divisor.
    fn remainder(self, other: Self) -> Self;
    /// The negative.
    fn neg(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
    /// A power by repeated squaring. Of integers, a negative exponent gives 0 but for the bases 1 and -1.
    fn powi(self, exponent: i64) -> Self;
}

macro_rules! integers {
    ($($ty:ty, negative: |$x:ident| $negative:expr;)*) => {$(
        impl Number for $ty {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn fmod(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn floor_divide(self, other: Self) -> Self {
                let (quotient, rest) = (self.div(other), self.fmod(other));
                let down = rest != 0 && is_negative(rest) != is_negative(other);
                quotient.wrapping_sub(Self::from(down))
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                let rest = self.fmod(other);
                let up = rest != 0 && is_negative(rest) != is_negative(other);
                if up { rest.wrapping_add(other) } else { rest }
            }
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                let $x = self;
                if $negative { self.wrapping_neg() } else { self }
            }
            #[inline(always)]
            fn sign(self) -> Self {
                let $x = self;
                if $negative { (0 as Self).wrapping_sub(1) } else { Self::from(self != 0) }
            }
            #[inline(always)]
            fn powi(self, exponent: i64) -> Self {
                if exponent >= 0 {
                    return power(self, exponent.unsigned_abs());
                }
                let minus_one = (0 as Self).wrapping_sub(1);
                let $x = minus_one;
                let signed = $negative;
                match self {
                    1 => 1,
                    _ if signed && self == minus_one => if exponent % 2 == 0 { 1 } else { minus_one },
                    _ => 0,
                }
            }
        }
    )*};
}

integers! {
    i64, negative: |x| x < 0;
    i32, negative: |x| x < 0;
    u8,  negative: |x| { let _ = x; false };
}

#[inline(always)]
fn is_negative<T: Number>(x: T) -> bool {
    x < T::ZERO
}

macro_rules! floats {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn fmod(self, other: Self) -> Self {
                self % other
            }
            #[inline(always)]
            fn floor_divide(self, other: Self) -> Self {
                // The quotient of what is left after fmod is a whole number but for rounding, unlike floor(a / b), which
                // is one too large where a / b rounds up to a whole number.
                let rest = self % other;
                let exact = (self - rest) / other;
                let down = rest != 0.0 && (other < 0.0) != (rest < 0.0);
                let quotient = if down { exact - 1.0 } else { exact };
                let floor = quotient.floor();
                let rounded = if quotient - floor > 0.5 { floor + 1.0 } else { floor };
                let whole = if quotient == 0.0 { (0.0 as $ty).copysign(self / other) } else { rounded };
                if other == 0.0 { self / other } else { whole }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                let rest = self % other;
                let up = rest != 0.0 && (other < 0.0) != (rest < 0.0);
                if up { rest + other } else { rest }
            }
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$ty>::abs(self)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                let one = (1.0 as $ty).copysign(self);
                if self.abs() > 0.0 { one } else { self }
            }
            #[inline(always)]
            fn powi(self, exponent: i64) -> Self {
                let positive = power(self, exponent.unsigned_abs());
                if exponent < 0 { 1.0 / positive } else { positive }
            }
        }
    )*};
}

floats! { f32 f64 }

/// `base` to the `exponent`, squaring from the lowest bit up: x^2 = x*x, x^3 = x*(x*x).
#[inline(always)]
fn power<T: Number>(base: T, exponent: u64) -> T {
    let (mut result, mut square, mut bits) = (T::ONE, base, exponent);
    while bits > 0 {
        if bits & 1 == 1 {
            result = result.mul(square);
        }
        bits >>= 1;
        if bits > 0 {
            square = square.mul(square);
        }
    }
    result
}

macro_rules! functions {
    ($($(#[doc = $doc:literal])* $name:ident($($arg:ident),*);)*) => {$(
        $(#[doc = $doc])*
        #[inline(always)]
        pub fn $name<T: Number>($($arg: T),*) -> T {
            Number::$name($($arg),*)
        }
    )*};
}

functions! {
    /// The sum.
    add(a, b);
    /// The difference.
    sub(a, b);
    /// The product.
    mul(a, b);
    /// The quotient, truncated for integers.
    div(a, b);
    /// What is left of the truncated quotient.
    fmod(a, b);
    /// The floor of the quotient.
    floor_divide(a, b);
    /// What is left of the floored quotient.
    remainder(a, b);
    /// The negative.
    neg(x);
    /// The absolute value.
    abs(x);
    /// -1, 0 or 1; NaN and zeros stay.
    sign(x);
}

/// What Rust's `%` leaves: the rest of the truncated quotient.
#[inline(always)]
pub fn rem<T: Number>(a: T, b: T) -> T {
    a.fmod(b)
}

/// A power with a whole exponent, by repeated squaring.
#[inline(always)]
pub fn powi<T: Number>(x: T, exponent: impl Into<i64>) -> T {
    x.powi(exponent.into())
}

/// `x` where it is above zero, else zero; NaN and -0.0 stay.
#[inline(always)]
pub fn relu<T: Number>(x: T) -> T {
    if x < T::ZERO { T::ZERO } else { x }
}

/// The square.
#[inline(always)]
pub fn square<T: Number>(x: T) -> T {
    x.mul(x)
}
