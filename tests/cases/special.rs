//! NaN, infinities, signed zeros.

use crate::cases::*;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

traps! {
    fn nan_bounds(v: f32 1, lo: f32 1, hi: f32 1, p: f32 1, q: f32 1) -> (Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>) {
        (v.clamp(lo, hi), p.maximum(q), p.minimum(q))
    }
    fn nan_extremes(x: f32 2) -> (Tensor<i64, 1>, Tensor<i64, 1>, Tensor<f32, 1>, Tensor<f32, 1>) {
        (x.argmax(1), x.argmin(1), x.max(1), x.min(1))
    }
    fn not_folded(x: f32 1) -> (Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>) {
        (x * 0.0, x - x, x.powi(0), x.powf(0.0))
    }
    fn over_itself(d: f32 1) -> Tensor<f32, 1> {
        d / d
    }
    fn nan_tests(x: f32 1) -> (Tensor<bool, 1>, Tensor<bool, 1>, Tensor<bool, 1>, Tensor<bool, 1>, Tensor<bool, 1>) {
        (x.ln().isnan(), x.eq(x), x.ne(x), x.lt(1.0), !x.ge(1.0))
    }
    fn large_norm(x: f32 2, w: f32 1, b: f32 1) -> (Tensor<f32, 1>, Tensor<f32, 2>) {
        (x.var_correction(1, 0), x.layer_norm(w, b, 1e-5))
    }
    fn axis_of_one(x: f32 2, k: f32 0) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
        ((x * k).softmax(1), (x * k).log_softmax(1))
    }
    fn saturating(x: f32 1) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
        (x.tanh(), x.sigmoid())
    }
    fn to_ints(x: f32 1) -> (Tensor<i32, 1>, Tensor<u8, 1>, Tensor<i64, 1>) {
        (x.cast::<i32>(), x.cast::<u8>(), x.cast::<i64>())
    }
    fn zero_extremes(p: f32 1, q: f32 1) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
        (1.0 / p.minimum(q), 1.0 / p.maximum(q))
    }
    fn zero_places(x: f32 2) -> (Tensor<i64, 1>, Tensor<i64, 1>, Tensor<i64, 1>, Tensor<i64, 0>) {
        (x.argmax(1), x.argmin(1), x.argmax(0), x.argmin_all())
    }
    fn zero_identities(x: f32 1) -> (Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>) {
        (1.0 / (x.ceil() + 0.0), 1.0 / (x.ceil() - 0.0), 1.0 / (x.ceil() * 1.0))
    }
    fn branch_not_taken(x: f32 1) -> Tensor<f32, 1> {
        x.gt(0.0).where_cond(x.sqrt(), x)
    }
}

macro_rules! zero_signs {
    ($($name:ident $t:ident)*) => {
        traps! {$(
            fn $name(x: $t 1) -> ([Tensor<$t, 1>; 7], Tensor<$t, 1>) {
                let kept = [
                    1.0 / x.sin(),
                    1.0 / x.tanh(),
                    1.0 / x.erf(),
                    1.0 / x.sqrt(),
                    1.0 / x.round(),
                    1.0 / x.ceil(),
                    1.0 / x.floor(),
                ];
                (kept, 1.0 / x.abs())
            }
        )*}
    };
}

zero_signs! { zero_signs_f16 f16 zero_signs_bf16 bf16 zero_signs_f32 f32 zero_signs_f64 f64 }

#[test]
fn case_014_nan_in_the_bound() {
    let v = Tensor::from([0.0, 5.0, NAN]);
    let (lo, hi) = (Tensor::from([NAN, 1.0, 0.0]), Tensor::from([1.0, NAN, 1.0]));
    let (p, q) = (Tensor::from([NAN, 1.0, 2.0]), Tensor::from([1.0, NAN, 3.0]));
    let want = (Tensor::from([NAN; 3]), Tensor::from([NAN, NAN, 3.0]), Tensor::from([NAN, NAN, 2.0]));
    nan_bounds::trap().pointwise().exactly((v, lo, hi, p, q), want);
}

#[test]
fn case_015_nan_in_extremes() {
    let x = Tensor::from([[NAN, 4.6, 1.0], [1.0, NAN, NAN], [0.0, -1.0, 3.0]]);
    let want = (
        Tensor::from([0i64, 1, 2]),
        Tensor::from([0i64, 1, 1]),
        Tensor::from([NAN, NAN, 3.0]),
        Tensor::from([NAN, NAN, -1.0]),
    );
    nan_extremes::trap().exactly((x,), want);
}

#[test]
fn case_017_float_algebra_is_not_folded() {
    let (zero, one) = (Tensor::from([NAN, NAN, 0.0]), Tensor::from([1.0f32; 3]));
    not_folded::trap().pointwise().exactly((Tensor::from([INF, NAN, 1.0]),), (zero.clone(), zero, one.clone(), one));
    over_itself::trap().pointwise().exactly((Tensor::from([0.0, INF, NAN, 2.0]),), Tensor::from([NAN, NAN, NAN, 1.0]));
}

#[test]
fn case_019_nan_can_be_tested() {
    let want = (
        Tensor::from([true, true, false, false]),
        Tensor::from([true, false, true, true]),
        Tensor::from([false, true, false, false]),
        Tensor::from([true, false, false, true]),
        Tensor::from([true, true, false, true]),
    );
    nan_tests::trap().pointwise().exactly((Tensor::from([-1.5, NAN, 2.0, 0.0]),), want);
}

#[test]
fn case_020_norm_of_large_values() {
    let ones = Tensor::from([1.0f32; 3]);
    let want = (Tensor::from([6.6666673e37f32]), Tensor::from([[-1.2247449f32, 0.0, 1.2247449]]));
    large_norm::trap().within(1e-6, 1e-6, (Tensor::from([[1e19f32, 2e19, 3e19]]), ones.clone(), ones * 0.0), want);
}

#[test]
fn case_022_softmax_of_one() {
    let x = Tensor::from([[3.0f32], [-2.0], [0.5]]);
    let want = (Tensor::from([[1.0f32]; 3]), Tensor::from([[0.0f32]; 3]));
    axis_of_one::trap().exactly((x, scalar(-3.3e14f32)), want);
}

#[test]
fn case_024_saturating_functions() {
    let x = Tensor::from([100.0f32, -100.0]);
    let want = (Tensor::from([1.0f32, -1.0]), Tensor::from([1.0f32, 3.783506e-44]));
    saturating::trap().pointwise().within(0.0, 1e-43, (x,), want);
}

#[test]
fn case_025_float_to_int() {
    let x = Tensor::from([NAN, INF, -INF, 3000000000.0, -3000000000.0, 2.9, -2.9, -1.0, 255.9, 256.0, -0.5, 300.0]);
    let want = (
        Tensor::from([0, i32::MAX, i32::MIN, i32::MAX, i32::MIN, 2, -2, -1, 255, 256, 0, 300]),
        Tensor::from([0u8, 255, 0, 255, 0, 2, 0, 0, 255, 255, 0, 255]),
        Tensor::from([0, i64::MAX, i64::MIN, 3000000000, -3000000000, 2, -2, -1, 255, 256, 0, 300]),
    );
    to_ints::trap().pointwise().exactly((x,), want);
}

#[test]
fn case_026_extremes_of_signed_zeros() {
    let (p, q) = (Tensor::from([-0.0f32, 0.0]), Tensor::from([0.0f32, -0.0]));
    zero_extremes::trap().pointwise().exactly((p, q), (Tensor::from([-INF, -INF]), Tensor::from([INF, INF])));
}

#[test]
fn places_of_signed_zeros_are_ties() {
    let x = Tensor::from([[-0.0f32, 0.0, -0.0], [0.0, -0.0, 0.0]]);
    let first = Tensor::from([0i64, 0]);
    let want = (first.clone(), first, Tensor::from([0i64; 3]), Tensor::of_scalar(0i64));
    zero_places::trap().exactly((x,), want);
}

#[test]
fn case_027_adding_zero_is_no_identity() {
    let want = (Tensor::from([INF, INF]), Tensor::from([-INF, -INF]), Tensor::from([-INF, -INF]));
    zero_identities::trap().pointwise().exactly((Tensor::from([-0.5f32, -0.1]),), want);
}

#[test]
fn case_029_functions_keep_the_sign_of_zero() {
    let minus: [_; 7] = std::array::from_fn(|_| Tensor::from([-INF]));
    zero_signs_f32::trap().pointwise().exactly((Tensor::from([-0.0f32]),), (minus, Tensor::from([INF])));
    let minus: [_; 7] = std::array::from_fn(|_| Tensor::from([f64::NEG_INFINITY]));
    zero_signs_f64::trap().pointwise().exactly((Tensor::from([-0.0f64]),), (minus, Tensor::from([f64::INFINITY])));
    let minus: [_; 7] = std::array::from_fn(|_| hf([-INF]));
    zero_signs_f16::trap().pointwise().exactly((hf([-0.0]),), (minus, hf([INF])));
    let minus: [_; 7] = std::array::from_fn(|_| bf([-INF]));
    zero_signs_bf16::trap().pointwise().exactly((bf([-0.0]),), (minus, bf([INF])));
}

#[test]
fn case_098_nan_in_the_branch_not_taken() {
    branch_not_taken::trap()
        .pointwise()
        .exactly((Tensor::from([-1.0f32, -4.0, 4.0]),), Tensor::from([-1.0f32, -4.0, 2.0]));
}
