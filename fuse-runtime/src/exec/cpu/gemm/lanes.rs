//! Vectors of the widths that processors have.

use crate::math::Number;

/// Elements that are multiplied and added side by side.
pub(super) trait Lanes: Copy {
    /// What a lane holds.
    type Element: Number;
    /// How many lanes there are.
    const WIDTH: usize;
    /// How many rows of sums, two vectors each, the registers hold beside two vectors of the right operand and one of the left.
    const ROWS: usize;
    /// Zeros.
    unsafe fn zero() -> Self;
    /// The elements from an address on.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// Writes the elements from an address on.
    unsafe fn store(self, to: *mut Self::Element);
    /// One element in every lane.
    unsafe fn splat(from: *const Self::Element) -> Self;
    /// The sum.
    unsafe fn plus(self, other: Self) -> Self;
    /// The sum with a product, which is rounded once where the processor can.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
}

/// Lanes of any type on any processor, which compilers make vectors of.
#[derive(Clone, Copy)]
pub(super) struct Plain<A, const WIDTH: usize>([A; WIDTH]);

impl<A: Number, const N: usize> Lanes for Plain<A, N> {
    type Element = A;
    const WIDTH: usize = N;
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Plain([A::ZERO; N])
    }

    #[inline(always)]
    unsafe fn load(from: *const A) -> Self {
        // SAFETY: passed on from the caller.
        Plain(unsafe { from.cast::<[A; N]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut A) {
        // SAFETY: passed on from the caller.
        unsafe { to.cast::<[A; N]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const A) -> Self {
        // SAFETY: passed on from the caller.
        Plain([unsafe { from.read() }; N])
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Plain(std::array::from_fn(|lane| self.0[lane].add(other.0[lane])))
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        Plain(std::array::from_fn(|lane| self.0[lane].add(a.0[lane].mul(b.0[lane]))))
    }
}

/// Registers by their intrinsics: names of those that load, store, repeat an element and add; how a product is added.
macro_rules! registers {
    ($($register:ty, $element:ty, $width:literal, $rows:literal, $load:ident $store:ident $splat:ident $add:ident,
       |$sum:ident, $a:ident, $b:ident| $plus_product:expr;)*) => {$(
        impl Lanes for $register {
            type Element = $element;
            const WIDTH: usize = $width;
            const ROWS: usize = $rows;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: whoever uses these lanes has asked the processor for them.
                unsafe { $splat(0.0) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: as above; the address is passed on from the caller.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: as above.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn splat(from: *const $element) -> Self {
                // SAFETY: as above.
                unsafe { $splat(from.read()) }
            }

            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $add(self, other) }
            }

            #[inline(always)]
            unsafe fn plus_product(self, $a: Self, $b: Self) -> Self {
                let $sum = self;
                // SAFETY: as above.
                unsafe { $plus_product }
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    registers! {
        __m512, f32, 16, 14, _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps,
            |sum, a, b| _mm512_fmadd_ps(a, b, sum);
        __m512d, f64, 8, 14, _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_add_pd,
            |sum, a, b| _mm512_fmadd_pd(a, b, sum);
        __m128, f32, 4, 4, _mm_loadu_ps _mm_storeu_ps _mm_set1_ps _mm_add_ps,
            |sum, a, b| _mm_add_ps(sum, _mm_mul_ps(a, b));
        __m128d, f64, 2, 4, _mm_loadu_pd _mm_storeu_pd _mm_set1_pd _mm_add_pd,
            |sum, a, b| _mm_add_pd(sum, _mm_mul_pd(a, b));
        __m256, f32, 8, 6, _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps,
            |sum, a, b| _mm256_fmadd_ps(a, b, sum);
        __m256d, f64, 4, 6, _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_add_pd,
            |sum, a, b| _mm256_fmadd_pd(a, b, sum);
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::Lanes;
    use std::arch::aarch64::*;

    registers! {
        float32x4_t, f32, 4, 8, vld1q_f32 vst1q_f32 vdupq_n_f32 vaddq_f32, |sum, a, b| vfmaq_f32(sum, a, b);
        float64x2_t, f64, 2, 8, vld1q_f64 vst1q_f64 vdupq_n_f64 vaddq_f64, |sum, a, b| vfmaq_f64(sum, a, b);
    }
}
