//! The 8-bit float with 4 bits of exponent and 3 of mantissa.
//!
//! It is a type of our own because PyTorch's casts to it give NaN beyond the largest value, where crates of 8-bit floats
//! saturate, and because it has no arithmetic.

use std::cmp::Ordering;
use std::fmt::{Debug, Display, Formatter, Result};

/// An 8-bit float with 4 bits of exponent and 3 of mantissa, PyTorch's `float8_e4m3fn`: up to 448, subnormals down to 2^-9, no
/// infinities, one NaN of either sign.
///
/// Tensors of it are stored, moved, compared, summed (in f32) and multiplied
/// ([`scaled_matmul`](crate::Tensor::scaled_matmul)); for anything else they are cast to another type. A cast rounds to nearest,
/// ties to even, and gives NaN for what is then beyond 448.
///
/// ```
/// use fuse_runtime::prelude::*;
/// let x = Tensor::from([0.3f32, 448.0, 464.1]).cast::<f8e4m3>();
/// assert_eq!(x.cast::<f32>().to_vec()[..2], [0.3125, 448.0]);
/// assert!(x.to_vec()[2].is_nan());
/// ```
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct f8e4m3(u8);

impl f8e4m3 {
    /// The largest value, 448.
    pub const MAX: f8e4m3 = f8e4m3(0x7E);
    /// The least value, -448.
    pub const MIN: f8e4m3 = f8e4m3(0xFE);
    /// The smallest positive normal number, 2^-6.
    pub const MIN_POSITIVE: f8e4m3 = f8e4m3(0x08);
    /// Not a number.
    pub const NAN: f8e4m3 = f8e4m3(0x7F);

    /// The value of these bits: sign, exponent, mantissa.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Self {
        f8e4m3(bits)
    }

    /// The bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// The nearest value, ties to even; NaN beyond 464, where the next one would begin.
    #[inline(always)]
    pub fn from_f32(x: f32) -> Self {
        f8e4m3(bits_of(x))
    }

    /// The same from a double, rounded once.
    pub fn from_f64(x: f64) -> Self {
        let exponent = ((x.to_bits() >> 52) & 0x7FF) as i32 - 1023;
        // One unit of the last bit; scaling by powers of two is exact, and what is then rounded is an f32 or far too large for one.
        let unit = 2f64.powi(exponent.clamp(-6, 9) - 3);
        Self::from_f32(((x / unit).round_ties_even() * unit) as f32)
    }

    /// The value, exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        value_of(self.0)
    }

    /// Whether this is no number.
    #[inline(always)]
    pub const fn is_nan(self) -> bool {
        self.0 & 0x7F == 0x7F
    }
}

/// The bits of the nearest value, branch-free as those of halves are.
#[inline(always)]
pub(crate) fn bits_of(x: f32) -> u8 {
    // 464: half a unit above the largest value, a tie that goes down.
    const MOST: u32 = 0x43E8_0000;
    const NORMAL: u32 = 121 << 23;
    // Adding this float shifts a subnormal's mantissa into place, rounding it as any addition.
    const ALIGN: u32 = ((127 - 7) + (23 - 3) + 1) << 23;
    let magnitude = x.to_bits() & 0x7FFF_FFFF;
    let sign = (x.to_bits() >> 24) & 0x80;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(ALIGN)).to_bits().wrapping_sub(ALIGN);
    let odd = (magnitude >> 20) & 1;
    // Half a unit less one, plus one if the mantissa is odd.
    let normal = magnitude.wrapping_sub((127 - 7) << 23).wrapping_add(0x7_FFFF + odd) >> 20;
    let finite = if magnitude < NORMAL { subnormal } else { normal };
    let bits = if magnitude > MOST { 0x7F } else { finite };
    (bits | sign) as u8
}

/// The value of these bits.
#[inline(always)]
pub(crate) fn value_of(bits: u8) -> f32 {
    let magnitude = (u32::from(bits) & 0x7F) << 20;
    let sign = (u32::from(bits) & 0x80) << 24;
    // The product moves the exponent's bias and normalises subnormals.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((254 - 7) << 23)).to_bits();
    let value = if magnitude == 0x7F << 20 { f32::NAN.to_bits() } else { scaled };
    f32::from_bits(value | sign)
}

impl PartialEq for f8e4m3 {
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl PartialOrd for f8e4m3 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
}

impl From<f8e4m3> for f32 {
    fn from(x: f8e4m3) -> f32 {
        x.to_f32()
    }
}

impl From<f8e4m3> for f64 {
    fn from(x: f8e4m3) -> f64 {
        x.to_f32().into()
    }
}

impl Display for f8e4m3 {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Display::fmt(&self.to_f32(), f)
    }
}

impl Debug for f8e4m3 {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Debug::fmt(&self.to_f32(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of bits as the format has it.
    fn defined(bits: u8) -> f64 {
        let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
        let magnitude = match (exponent, bits & 7) {
            (15, 7) => f64::NAN,
            (0, _) => mantissa / 8.0 * 2f64.powi(-6),
            _ => (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
        };
        if bits > 127 { -magnitude } else { magnitude }
    }

    #[test]
    fn all_values_are_those_of_the_format_and_come_back() {
        for bits in 0..=255 {
            let (x, want) = (f8e4m3::from_bits(bits), defined(bits));
            assert_eq!(x.is_nan(), want.is_nan());
            assert_eq!((f64::from(x) == want, f64::from(x).is_sign_negative()), (!want.is_nan(), bits > 127), "{bits}");
            assert_eq!(f8e4m3::from_f32(x.to_f32()).to_bits(), bits);
            assert_eq!(f8e4m3::from_f64(x.into()).to_bits(), bits);
        }
    }

    #[test]
    fn what_lies_between_two_values_goes_to_the_nearest_and_ties_to_the_even_one() {
        for bits in 0..0x7Eu8 {
            let (low, high) = (defined(bits), defined(bits + 1));
            let tie = (low + high) / 2.0;
            let even = bits + (bits & 1);
            for (x, want) in [(tie, even), (tie.next_down(), bits), (tie.next_up(), bits + 1)] {
                assert_eq!(f8e4m3::from_f64(x).to_bits(), want, "{x}");
                assert_eq!(f8e4m3::from_f64(-x).to_bits(), want | 0x80, "-{x}");
            }
            let tie = tie as f32;
            for (x, want) in [(tie, even), (tie.next_down(), bits), (tie.next_up(), bits + 1)] {
                assert_eq!(f8e4m3::from_f32(x).to_bits(), want, "{x}");
                assert_eq!(f8e4m3::from_f32(-x).to_bits(), want | 0x80, "-{x}");
            }
        }
    }

    #[test]
    fn what_is_too_large_is_nan_of_the_same_sign() {
        let bits = |x: f32| (f8e4m3::from_f32(x).to_bits(), f8e4m3::from_f64(x.into()).to_bits());
        for x in [464.0f32.next_up(), 479.0, 480.0, 1e9, f32::MAX, f32::INFINITY, f32::NAN] {
            assert_eq!((bits(x), bits(-x)), ((0x7F, 0x7F), (0xFF, 0xFF)), "{x}");
        }
        assert_eq!((bits(464.0), bits(-464.0)), ((0x7E, 0x7E), (0xFE, 0xFE)));
        assert_eq!(f8e4m3::from_f64(f64::MAX).to_bits(), 0x7F);
        assert_eq!(bits(f32::from_bits(1)), (0, 0));
    }

    #[test]
    fn values_compare_as_numbers() {
        assert!(f8e4m3::NAN != f8e4m3::NAN && f8e4m3::from_bits(0x80) == f8e4m3::default());
        assert!(f8e4m3::MIN < f8e4m3::MIN_POSITIVE && f8e4m3::MIN_POSITIVE < f8e4m3::MAX);
        assert_eq!(format!("{} {:?}", f8e4m3::MAX, f8e4m3::MIN_POSITIVE), "448 0.015625");
    }
}
