//! Values of the reference evaluator.

use super::Literal;
use crate::types::DType;

/// A value of the reference evaluator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    /// A float in double precision.
    F(f64),
    /// An integer; the evaluator wraps it to its declared width.
    I(i64),
    /// A bool.
    B(bool),
}

impl Num {
    /// The float.
    pub fn f(self) -> f64 {
        match self {
            Num::F(x) => x,
            other => panic!("{other:?} is no float"),
        }
    }

    /// The integer.
    pub fn i(self) -> i64 {
        match self {
            Num::I(x) => x,
            other => panic!("{other:?} is no integer"),
        }
    }

    /// Whether the value is not zero, as a cast to bool has it: NaN is true.
    pub fn truthy(self) -> bool {
        match self {
            Num::F(x) => x != 0.0,
            Num::I(x) => x != 0,
            Num::B(x) => x,
        }
    }

    /// The value of a constant.
    pub fn of(literal: Literal) -> Num {
        match literal {
            Literal::Float(x) => Num::F(x),
            Literal::Int(x) => Num::I(x),
            Literal::Bool(x) => Num::B(x),
        }
    }

    /// The value converted to an element type, as Rust's `as`, and rounded to it.
    ///
    /// # Panics
    /// On a generic element type.
    pub fn cast(self, dtype: DType) -> Num {
        match dtype {
            DType::Bool => Num::B(self.truthy()),
            DType::I64 => Num::I(self.to_int(|x| x as i64)),
            DType::I32 => Num::I(self.to_int(|x| i64::from(x as i32)) as i32 as i64),
            DType::U8 => Num::I(self.to_int(|x| i64::from(x as u8)) as u8 as i64),
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 | DType::F8E4M3 => Num::F(self.to_float()).round(dtype),
            DType::Param(_) | DType::Compute(_) => panic!("{dtype} is generic"),
        }
    }

    /// The value rounded (floats) or wrapped (integers) to an element type of its own kind.
    pub fn round(self, dtype: DType) -> Num {
        match self {
            Num::F(x) => Num::F(round_float(x, dtype)),
            Num::I(x) => Num::I(wrap(x, dtype)),
            Num::B(x) => Num::B(x),
        }
    }

    fn to_int(self, saturate: fn(f64) -> i64) -> i64 {
        match self {
            Num::F(x) => saturate(x),
            Num::I(x) => x,
            Num::B(x) => x as i64,
        }
    }

    fn to_float(self) -> f64 {
        match self {
            Num::F(x) => x,
            Num::I(x) => x as f64,
            Num::B(x) => x as i64 as f64,
        }
    }
}

fn wrap(x: i64, dtype: DType) -> i64 {
    match dtype {
        DType::I32 => x as i32 as i64,
        DType::U8 => x as u8 as i64,
        _ => x,
    }
}

fn round_float(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => x as f32 as f64,
        DType::F16 => round_to(x, 11, -14, 65504.0),
        DType::BF16 => round_to(x, 8, -126, 3.389_531_389_251_535_5e38),
        // What halves would have as infinity is NaN: there is none.
        DType::F8E4M3 => match round_to(x, 4, -6, 448.0) {
            infinite if infinite.is_infinite() => f64::NAN,
            finite => finite,
        },
        _ => x,
    }
}

/// Rounds to nearest, ties to even, to a format with this many significant bits, this least exponent of a normal number
/// and this largest finite number.
fn round_to(x: f64, bits: i32, least_exponent: i32, largest: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = (((x.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(least_exponent);
    // Scaling by a power of two is exact here: no format that is rounded to reaches near the subnormals of f64.
    let unit = 2f64.powi(exponent - bits + 1);
    let rounded = (x / unit).round_ties_even() * unit;
    if rounded.abs() > largest { f64::INFINITY.copysign(x) } else { rounded }
}

/// The error function, to about two units in the last place.
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { 1f64.copysign(x) };
    }
    // erf(x) = 2/sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (1 * 3 * .. * (2n+1)): every term has the sign of x, so nothing cancels.
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term != 0.0 && term.abs() > sum.abs() * 1e-18 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bf16(x: f64) -> f64 {
        Num::F(x).round(DType::BF16).f()
    }

    fn f16(x: f64) -> f64 {
        Num::F(x).round(DType::F16).f()
    }

    #[test]
    fn halves_round_to_nearest_even() {
        assert_eq!(bf16(257.0), 256.0);
        assert_eq!(bf16(259.0), 260.0);
        assert_eq!(f16(2049.0), 2048.0);
        assert_eq!(f16(2051.0), 2052.0);
        assert_eq!(f16(0.1), 0.0999755859375);
    }

    #[test]
    fn halves_keep_subnormals_and_overflow_to_infinity() {
        assert_eq!(f16(2f64.powi(-24)), 2f64.powi(-24));
        assert_eq!(f16(2f64.powi(-25)), 0.0);
        assert_eq!(f16(65519.0), 65504.0);
        assert_eq!(f16(65520.0), f64::INFINITY);
        assert_eq!(bf16(-3.4e38), -f64::INFINITY);
    }

    #[test]
    fn fp8_has_no_infinity() {
        let f8 = |x: f64| Num::F(x).round(DType::F8E4M3).f();
        assert_eq!(f8(17.0), 16.0);
        assert_eq!(f8(19.0), 20.0);
        assert_eq!(f8(464.0), 448.0);
        assert_eq!(f8(-2f64.powi(-9)), -2f64.powi(-9));
        assert_eq!(f8(2f64.powi(-10)), 0.0);
        assert!([465.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].into_iter().all(|x| f8(x).is_nan()));
    }

    #[test]
    fn casts_saturate_and_send_nan_to_zero() {
        let to = |x: f64, dtype| Num::F(x).cast(dtype);
        assert_eq!(to(f64::NAN, DType::I32), Num::I(0));
        assert_eq!(to(3e9, DType::I32), Num::I(i32::MAX as i64));
        assert_eq!(to(-1.0, DType::U8), Num::I(0));
        assert_eq!(to(255.9, DType::U8), Num::I(255));
        assert_eq!(to(f64::NAN, DType::Bool), Num::B(true));
        assert_eq!(to(-0.0, DType::Bool), Num::B(false));
        assert_eq!(Num::I(300).cast(DType::U8), Num::I(44));
    }

    #[test]
    fn erf_has_its_known_values() {
        for (x, want) in [(0.5, 0.5204998778130465), (1.0, 0.8427007929497149), (3.0, 0.9999779095030014)] {
            assert!((erf(x) - want).abs() < 4e-16, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert!((erf(1e-8) / 1.1283791670955126e-8 - 1.0).abs() < 4e-16);
        assert_eq!(erf(f64::INFINITY), 1.0);
    }
}
