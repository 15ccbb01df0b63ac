//! Conversions between element types, with the rules of Rust's `as`.

use crate::dtype::{Element, f8e4m3};
use crate::float8;
use fuse_compiler::types::DType;
use half::{bf16, f16};

/// What every element type can be made from and turned into; the pieces of [`cast`].
///
/// Floats go through f32 or f64, whichever holds the source exactly, and everything else through i64, so that each cast
/// rounds once.
pub trait Convert: Copy {
    /// The nearest value.
    fn of_f32(x: f32) -> Self;
    /// The nearest value.
    fn of_f64(x: f64) -> Self;
    /// The value, wrapped to the width, or the nearest float.
    fn of_i64(x: i64) -> Self;
    /// As f32; exact for the floats of at most 32 bits.
    fn as_f32(self) -> f32;
    /// As f64; exact but for large i64.
    fn as_f64(self) -> f64;
    /// As i64; exact for integers and bool.
    fn as_i64(self) -> i64;
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl Convert for $ty {
            #[inline(always)]
            fn of_f32(x: f32) -> Self {
                x as $ty
            }
            #[inline(always)]
            fn of_f64(x: f64) -> Self {
                x as $ty
            }
            #[inline(always)]
            fn of_i64(x: i64) -> Self {
                x as $ty
            }
            #[inline(always)]
            fn as_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn as_i64(self) -> i64 {
                self as i64
            }
        }
    )*};
}

numbers! { f32 f64 i64 i32 u8 }

impl Convert for bool {
    #[inline(always)]
    fn of_f32(x: f32) -> Self {
        x != 0.0
    }
    #[inline(always)]
    fn of_f64(x: f64) -> Self {
        x != 0.0
    }
    #[inline(always)]
    fn of_i64(x: i64) -> Self {
        x != 0
    }
    #[inline(always)]
    fn as_f32(self) -> f32 {
        f32::from(u8::from(self))
    }
    #[inline(always)]
    fn as_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
    #[inline(always)]
    fn as_i64(self) -> i64 {
        i64::from(self)
    }
}

macro_rules! narrow {
    ($($ty:ty, $from_f32:path, $to_f32:path;)*) => {$(
        impl Convert for $ty {
            #[inline(always)]
            fn of_f32(x: f32) -> Self {
                <$ty>::from_bits($from_f32(x))
            }
            #[inline(always)]
            fn of_f64(x: f64) -> Self {
                <$ty>::from_f64(x)
            }
            #[inline(always)]
            fn of_i64(x: i64) -> Self {
                // Integers that f64 cannot hold are values of a type so coarse that only exact ties could tell.
                <$ty>::from_f64(x as f64)
            }
            #[inline(always)]
            fn as_f32(self) -> f32 {
                $to_f32(self.to_bits())
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                f64::from($to_f32(self.to_bits()))
            }
            #[inline(always)]
            fn as_i64(self) -> i64 {
                $to_f32(self.to_bits()) as i64
            }
        }
    )*};
}

narrow! {
    f16,  f16_bits, f16_value;
    bf16, bf16_bits, bf16_value;
    f8e4m3, float8::bits_of, float8::value_of;
}

/// `value as B`.
#[inline(always)]
pub fn cast<A: Element, B: Element>(value: A) -> B {
    match A::DTYPE {
        DType::F32 | DType::F16 | DType::BF16 | DType::F8E4M3 => B::of_f32(value.as_f32()),
        DType::F64 => B::of_f64(value.as_f64()),
        _ => B::of_i64(value.as_i64()),
    }
}

/// The nearest f16, held in f32.
#[inline(always)]
pub fn round_f16(x: f32) -> f32 {
    f16_value(f16_bits(x))
}

/// The nearest bf16, held in f32.
#[inline(always)]
pub fn round_bf16(x: f32) -> f32 {
    bf16_value(bf16_bits(x))
}

/// The nearest f8e4m3, held in f32.
#[inline(always)]
pub fn round_f8e4m3(x: f32) -> f32 {
    float8::value_of(float8::bits_of(x))
}

/// The nearest `T`, held in its compute type.
#[inline(always)]
pub fn round_to<T: Element>(x: T::Compute) -> T::Compute {
    T::from_compute(x).to_compute()
}

/// The bits of the nearest f16. Branch-free, after F. Giesen, "float to half".
#[inline(always)]
fn f16_bits(x: f32) -> u16 {
    const OVERFLOW: u32 = (127 + 16) << 23;
    const NORMAL: u32 = 113 << 23;
    // Adding this float shifts a subnormal's mantissa into place, rounding it as any addition.
    const ALIGN: u32 = ((127 - 15) + (23 - 10) + 1) << 23;
    let magnitude = x.to_bits() & 0x7FFF_FFFF;
    let sign = (x.to_bits() >> 16) & 0x8000;
    let special = if magnitude > 0x7F80_0000 { 0x7E00 } else { 0x7C00 };
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(ALIGN)).to_bits().wrapping_sub(ALIGN);
    let odd = (magnitude >> 13) & 1;
    // Half a unit less one, plus one if the mantissa is odd: rounds to nearest, ties to even.
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xFFF + odd) >> 13;
    let finite = if magnitude < NORMAL { subnormal } else { normal };
    let bits = if magnitude >= OVERFLOW { special } else { finite };
    (bits | sign) as u16
}

/// The value of an f16 by its bits.
#[inline(always)]
fn f16_value(bits: u16) -> f32 {
    let magnitude = (u32::from(bits) & 0x7FFF) << 13;
    let sign = (u32::from(bits) & 0x8000) << 16;
    // The product moves the exponent's bias and normalises subnormals.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((254 - 15) << 23)).to_bits();
    let special = magnitude | (255 << 23);
    let value = if magnitude >= 0x7C00 << 13 { special } else { scaled };
    f32::from_bits(value | sign)
}

/// The bits of the nearest bf16.
#[inline(always)]
fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1)) >> 16;
    // A NaN keeps its sign and must not round to infinity.
    let quiet = (bits >> 16) | 0x40;
    (if x.is_nan() { quiet } else { rounded }) as u16
}

/// The value of a bf16 by its bits.
#[inline(always)]
fn bf16_value(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}
