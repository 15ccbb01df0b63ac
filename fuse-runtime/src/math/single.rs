//! Real functions of f32, written so that loops over them become vector code.
//!
//! Polynomials, no tables, no branches. Multiply-adds are fused where they are written so and nowhere else: with the
//! vectors of AVX2 and wider that is one instruction, without them a slow call that rounds the same, so results do not
//! depend on the vector width. Errors are measured against f64 in the tests beside this module: at most two units in the
//! last place.

use super::real::Real;

const LOG2_E: f32 = std::f32::consts::LOG2_E;

// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// The value of the polynomial with these coefficients, highest degree first.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for c in &coefficients[1..] {
        sum = sum.mul_add(x, *c);
    }
    sum
}

/// 2 to the `n`, for `n` in the range of normal exponents.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `exp(x + low)` in two parts, `n` and `m`: it is `2^n * (1 + m)`. Here `low` is small beside `x` and carries what `x`
/// could not hold.
#[inline(always)]
fn exp_parts(x: f32, low: f32) -> (i32, f32) {
    // Adding 1.5 * 2^23 leaves the rounded value in the low bits.
    const SHIFT: f32 = 12_582_912.0;
    let shifted = x.mul_add(LOG2_E, SHIFT);
    let n = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    let whole = shifted - SHIFT;
    let r = whole.mul_add(-LN_2_LOW, whole.mul_add(-LN_2_HIGH, x)) + low;
    // Taylor's terms, moved so that the error is least on half of ln 2 to either side.
    let p = polynomial(r, [1.365_093_9e-3, 8.357_099e-3, 4.166_918_6e-2, 1.666_663e-1, 0.5]);
    (n, p.mul_add(r * r, r))
}

/// `exp(x + low)`, where `low` is small beside `x` and carries what `x` could not hold.
#[inline(always)]
fn exp_with_low(x: f32, low: f32) -> f32 {
    // Beyond these bounds the result is 0 or infinity anyway. NaN passes both comparisons.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (n, m) = exp_parts(x, low);
    // In two steps, so that neither factor leaves the normal range and subnormal results round once.
    let half = n >> 1;
    (1.0 + m) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

#[inline(always)]
fn ln(x: f32) -> f32 {
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 8_388_608.0 } else { x };
    let bias = if subnormal { -23.0f32 } else { 0.0 };
    // The exponent is split off so that the mantissa lies in [sqrt(1/2), sqrt(2)).
    const ROOT: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    let offset = scaled.to_bits().wrapping_sub(ROOT);
    let exponent = (offset as i32 >> 23) as f32 + bias;
    let z = f32::from_bits((offset & 0x007F_FFFF).wrapping_add(ROOT)) - 1.0;
    // Cephes' logf.
    let p = polynomial(
        z,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_8e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_8e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    );
    let zz = z * z;
    let tail = exponent.mul_add(LN_2_LOW, (-0.5f32).mul_add(zz, p * z * zz));
    let finite = exponent.mul_add(LN_2_HIGH, z + tail);
    let positive = if x < f32::INFINITY { finite } else { x };
    let nonnegative = if x == 0.0 { f32::NEG_INFINITY } else { positive };
    if x < 0.0 { f32::NAN } else { nonnegative }
}

#[inline(always)]
fn tanh(x: f32) -> f32 {
    let zz = x * x;
    // Cephes' tanhf.
    let p = polynomial(zz, [-5.704_988_7e-3, 2.063_908_8e-2, -5.373_971_5e-2, 1.333_144_2e-1, -3.333_328e-1]);
    let near = (p * zz).mul_add(x, x);
    // e / (e + 2) with e = exp(2a) - 1, which is 1 from 10 on.
    let twice = x.abs() * 2.0;
    let (n, m) = exp_parts(if twice > 20.0 { 20.0 } else { twice }, 0.0);
    let power = power_of_two(n);
    let e = power.mul_add(m, power - 1.0);
    // NaN fails the comparison and comes out of the far form.
    let number = if twice < 1.25 { near } else { e / (e + 2.0) };
    number.copysign(x)
}

/// `0.5 * erfc(a / sqrt(2))` for `a >= 0`, to a few units in the last place down to where it underflows.
#[inline(always)]
fn upper_tail(a: f32) -> f32 {
    // exp(a^2/2) * tail * (1 + a) as a polynomial in t = (a - 2.5) / (a + 2.5), fitted for relative error on [0, 14.7].
    let a = if a > 14.7 { 14.7 } else { a };
    let t = (a - 2.5) / (a + 2.5);
    let p = polynomial(
        t,
        [
            -6.253_651_4e-5,
            -2.264_458_5e-4,
            -2.122_573_6e-7,
            1.263_138_3e-3,
            1.284_468_6e-3,
            -6.047_266e-3,
            -8.699_933e-3,
            4.606_285e-2,
            -3.771_665e-2,
            -9.158_748e-2,
            4.946_596_6e-1,
        ],
    );
    // a^2 does not fit into f32; its high part has few bits and so an exact square, the rest goes in apart.
    let high = f32::from_bits(a.to_bits() & 0xFFFF_F000);
    let rest = (a - high) * (a + high);
    p / (1.0 + a) * exp_with_low(-0.5 * high * high, -0.5 * rest)
}

#[inline(always)]
fn erf(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    // The odd power series of erf(x) - x, refitted (after N. Juffa).
    let p = polynomial(
        s,
        [-5.967_617e-4, 4.991_194_2e-3, -2.676_813_5e-2, 1.128_199_25e-1, -3.761_253_4e-1, 1.283_791_7e-1],
    );
    let near = p.mul_add(x, x).copysign(x);
    let far = (1.0 - 2.0 * upper_tail(a * std::f32::consts::SQRT_2)).copysign(x);
    let number = if a < 0.921_875 { near } else { far };
    if x.is_nan() { x } else { number }
}

#[inline(always)]
fn normal_cdf(x: f32) -> f32 {
    let tail = upper_tail(x.abs());
    let number = if x < 0.0 { tail } else { 1.0 - tail };
    // Where the tail has been cut off it is 0, so that gelu(-inf) is the NaN of -inf * 0, as in PyTorch.
    let cut = if x < -14.7 { 0.0 } else { number };
    if x.is_nan() { x } else { cut }
}

impl Real for f32 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn exp(self) -> Self {
        exp_with_low(self, 0.0)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        ln(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn powf(self, exponent: Self) -> Self {
        f32::powf(self, exponent)
    }
    #[inline(always)]
    fn sin(self) -> Self {
        f32::sin(self)
    }
    #[inline(always)]
    fn cos(self) -> Self {
        f32::cos(self)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        tanh(self)
    }
    #[inline(always)]
    fn erf(self) -> Self {
        erf(self)
    }
    #[inline(always)]
    fn normal_cdf(self) -> Self {
        normal_cdf(self)
    }
    #[inline(always)]
    fn floor(self) -> Self {
        f32::floor(self)
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        f32::ceil(self)
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        f32::trunc(self)
    }
    #[inline(always)]
    fn round(self) -> Self {
        f32::round_ties_even(self)
    }
    #[inline(always)]
    fn isnan(self) -> bool {
        f32::is_nan(self)
    }
    #[inline(always)]
    fn isinf(self) -> bool {
        f32::is_infinite(self)
    }
}
