//! Accuracy against f64, and the traps of single functions.

use super::*;
use half::{bf16, f16};

/// How far `got` is from `want`, in units in the last place of f32 at `want`.
fn ulps(got: f32, want: f64) -> f64 {
    if got.is_nan() && want.is_nan() || f64::from(got) == want || f64::from(got) == f64::from(want as f32) {
        return 0.0;
    }
    let magnitude = (want.abs() as f32).max(f32::MIN_POSITIVE);
    let unit = f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude);
    (f64::from(got) - want).abs() / unit
}

/// Floats of both signs over all exponents, every `step`-th.
fn floats(step: usize) -> impl Iterator<Item = f32> {
    (0..0x7F80_0000u32).step_by(step).map(f32::from_bits).flat_map(|x| [x, -x])
}

/// Every float of a fine grid over all exponents between two bounds, both signs if `low` is negative.
fn grid(low: f32, high: f32) -> impl Iterator<Item = f32> {
    floats(7919).filter(move |x| (low..=high).contains(x))
}

fn check(name: &str, low: f32, high: f32, bound: f64, f: fn(f32) -> f32, exact: fn(f64) -> f64) {
    check_all(name, grid(low, high), bound, f, exact);
}

fn check_all(name: &str, all: impl Iterator<Item = f32>, bound: f64, f: fn(f32) -> f32, exact: fn(f64) -> f64) {
    let (error, at) = all
        .map(|x| (ulps(f(x), exact(f64::from(x))), x))
        .fold((0.0, 0.0), |worst, here| if here.0 > worst.0 { here } else { worst });
    assert!(error <= bound, "{name}({at:e}) = {:e} is {error} units off", f(at));
}

#[test]
fn single_precision_functions_are_within_two_units() {
    check("exp", -120.0, 90.0, 1.1, exp, f64::exp);
    check("ln", 0.0, f32::MAX, 1.0, ln, f64::ln);
    check("tanh", -100.0, 100.0, 1.5, tanh, f64::tanh);
    check("erf", -100.0, 100.0, 1.5, erf, libm::erf);
    check("sigmoid", -87.0, 200.0, 2.5, sigmoid, |x| 1.0 / (1.0 + (-x).exp()));
    check("sin", -1e6, 1e6, 1.0, sin, f64::sin);
    check("cos", -1e6, 1e6, 1.0, cos, f64::cos);
}

/// The same for every float there is.
#[test]
#[ignore = "takes minutes: cargo test --release -p fuse-runtime --lib every_float -- --ignored"]
fn every_float_is_within_its_bound() {
    check_all("exp", floats(1), 1.1, exp, f64::exp);
    check_all("ln", floats(1), 1.0, ln, f64::ln);
    check_all("tanh", floats(1), 1.5, tanh, f64::tanh);
    check_all("erf", floats(1), 1.5, erf, libm::erf);
}

#[test]
fn gelu_keeps_its_accuracy_in_the_lower_tail() {
    let exact = |x: f64| 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    check("gelu", -13.0, f32::MAX, 5.0, gelu, exact);
    check("silu", -87.0, f32::MAX, 3.0, silu, |x| x / (1.0 + (-x).exp()));
}

#[test]
fn specials_are_those_of_ieee() {
    assert_eq!(exp(f32::INFINITY), f32::INFINITY);
    assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    assert!(exp(f32::NAN).is_nan() && ln(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && erf(f32::NAN).is_nan());
    assert_eq!(ln(0.0f32), f32::NEG_INFINITY);
    assert_eq!(ln(-0.0f32), f32::NEG_INFINITY);
    assert!(ln(-1.0f32).is_nan() && ln(f32::NEG_INFINITY).is_nan());
    assert_eq!(ln(f32::INFINITY), f32::INFINITY);
    assert_eq!((tanh(f32::INFINITY), tanh(-100.0f32)), (1.0, -1.0));
    assert_eq!((erf(f32::INFINITY), erf(f32::NEG_INFINITY)), (1.0, -1.0));
    assert_eq!(sigmoid(f32::NEG_INFINITY), 0.0);
    assert!(gelu(f32::NEG_INFINITY).is_nan() && gelu(f32::NAN).is_nan());
    assert_eq!(gelu(f32::INFINITY), f32::INFINITY);
}

#[test]
fn the_sign_of_zero_is_kept() {
    for f in [tanh::<f32>, erf, sin, sqrt, trunc, round, ceil, floor, gelu, relu] {
        assert_eq!(f(-0.0).to_bits(), (-0.0f32).to_bits());
    }
    assert_eq!(abs(-0.0f32).to_bits(), 0);
}

#[test]
fn nan_wins_and_zeros_are_ordered() {
    let nan = f32::NAN;
    for (a, b) in [(nan, 1.0), (1.0, nan)] {
        assert!(minimum(a, b).is_nan() && maximum(a, b).is_nan());
    }
    for (a, b) in [(-0.0f32, 0.0f32), (0.0, -0.0)] {
        assert_eq!(1.0 / minimum(a, b), f32::NEG_INFINITY);
        assert_eq!(1.0 / maximum(a, b), f32::INFINITY);
    }
    for (x, low, high) in [(nan, 0.0, 1.0), (0.0, nan, 1.0), (5.0, 1.0, nan)] {
        assert!(clamp(x, low, high).is_nan());
    }
}

#[test]
fn integer_division_floors_and_truncates() {
    let pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2)];
    assert_eq!(pairs.map(|(a, b)| floor_divide(a, b)), [3, -4, -4, 3]);
    assert_eq!(pairs.map(|(a, b)| remainder(a, b)), [1, 1, -1, -1]);
    assert_eq!(pairs.map(|(a, b)| div(a, b)), [3, -3, -3, 3]);
    assert_eq!(pairs.map(|(a, b)| fmod(a, b)), [1, -1, 1, -1]);
    assert_eq!((floor_divide(i32::MIN, -1), remainder(i32::MIN, -1)), (i32::MIN, 0));
    assert_eq!((neg(i64::MIN), abs(i64::MIN)), (i64::MIN, i64::MIN));
    assert_eq!((div(5u8, 0), remainder(5i64, 0)), (0, 0));
}

#[test]
fn float_floor_division_goes_by_what_fmod_leaves() {
    let pairs = [(1.0f32, 0.1), (0.5, 0.1), (6.0, 0.2), (1.0, 0.333_333_34), (-1.0, 0.1)];
    assert_eq!(pairs.map(|(a, b)| floor_divide(a, b)), [9.0, 4.0, 29.0, 2.0, -10.0]);
    assert_eq!([(1.0, 0.1), (0.5, 0.1), (6.0, 0.2)].map(|(a, b): (f64, f64)| floor_divide(a, b)), [9.0, 4.0, 29.0]);
}

#[test]
fn shifts_outside_of_the_width_leave_zero_or_the_sign() {
    assert_eq!([(77i64, 64), (-77, 64), (1, 65)].map(|(v, k)| bitwise_right_shift(v, k)), [0, -1, 0]);
    assert_eq!([(77i64, 64), (-77, 64), (1, 65)].map(|(v, k)| bitwise_left_shift(v, k)), [0, 0, 0]);
    assert_eq!((bitwise_left_shift(255u8, 8), bitwise_left_shift(255u8, 7)), (0, 128));
    assert_eq!((bitwise_right_shift(255u8, 8), bitwise_right_shift(255u8, 7)), (0, 1));
    assert_eq!((bitwise_right_shift(-8i64, -1), bitwise_left_shift(8i64, -1)), (-1, 0));
    assert_eq!(bitwise_right_shift(-1i32, 31), -1);
}

#[test]
fn integer_powers_wrap() {
    let cases = [(2i64, -1), (1, -1), (-1, -1), (-1, -2), (0, -1)];
    assert_eq!(cases.map(|(a, e)| powi(a, e)), [0, 1, -1, 1, 0]);
    assert_eq!(powi(3i64, 39), 4_052_555_153_018_976_267);
    assert_eq!(powi(f32::NAN, 0), 1.0);
    assert_eq!(powi(2.0f32, -2), 0.25);
}

#[test]
fn casts_truncate_saturate_and_turn_nan_to_zero() {
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, 2.9, -2.9];
    assert_eq!(values.map(cast::<f32, i32>), [0, i32::MAX, i32::MIN, i32::MAX, i32::MIN, 2, -2]);
    assert_eq!([-1.0, 255.9, 256.0, -0.5, 300.0].map(cast::<f32, u8>), [0, 255, 255, 0, 255]);
    assert_eq!([f32::NAN, -0.0, 0.25, -3.0].map(cast::<f32, bool>), [true, false, true, true]);
    assert_eq!((cast::<i64, u8>(-1), cast::<bool, f32>(true)), (255, 1.0));
}

#[test]
fn halves_round_as_the_half_crate_does() {
    for x in grid(f32::NEG_INFINITY, f32::INFINITY).chain([f32::INFINITY, f32::NEG_INFINITY, 65519.996, 65520.0]) {
        assert_eq!(f16::of_f32(x).to_bits(), f16::from_f32_const(x).to_bits(), "{x:e}");
        assert_eq!(bf16::of_f32(x).to_bits(), bf16::from_f32(x).to_bits(), "{x:e}");
    }
    for bits in 0..=u16::MAX {
        let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
        assert!(x.as_f32() == x.to_f32_const() || x.is_nan() && x.as_f32().is_nan());
        assert!(y.as_f32() == y.to_f32() || y.is_nan() && y.as_f32().is_nan());
    }
    assert!(round_f16(f32::NAN).is_nan() && round_bf16(f32::NAN).is_nan());
}
