//! Low precision and fused numerics: every op rounds where it stands.

use crate::cases::*;

traps! {
    fn error_term(x: bf16 1, y: bf16 1) -> Tensor<bf16, 1> {
        let t = x + y;
        let d = &t - x;
        y - &d
    }
    fn ties(x: bf16 1) -> (Tensor<i64, 0>, Tensor<f32, 1>) {
        let q = x / 3.0;
        let m = q.max_all();
        let ties = q.eq(&m);
        let c = ties.cast::<i64>().sum_all();
        let w = ties.cast::<f32>() / c.cast::<f32>();
        (c, w)
    }
    fn cast_epilogue(x: f32 2, w: f32 2, b: f32 1) -> Tensor<f32, 2> {
        x.matmul(w).cast::<bf16>().cast::<f32>() + b
    }
    fn recomputed(x: f32 1) -> Tensor<f32, 1> {
        let h = x.cast::<bf16>().cast::<f32>();
        &h * &h * &h
    }
    fn wide_constants(x: f64 1) -> (Tensor<f64, 1>, Tensor<f64, 1>, Tensor<i64, 1>) {
        (x + 3e45, x * 0.1, (x * 0.12).cast::<i64>())
    }
    fn exact_cancelling(a: f32 1, b: f32 1, x: f32 1) -> Tensor<f32, 1> {
        a * x + b * x
    }
    fn no_reassociation(s: f32 1, m: f32 0) -> Tensor<f32, 1> {
        let t = s + (-1e30 * (1.0 - m));
        &t - t.max_all()
    }
}

#[compile]
fn wide_scalars(x: &Tensor<f64, 1>, a: f64, b: f64, c: f64) -> (Tensor<f64, 1>, Tensor<f64, 1>, Tensor<i64, 1>) {
    (x + a, x * b, (x * c).cast::<i64>())
}

#[test]
fn case_001_bf16_error_term() {
    let (x, y) = (bf([256.0, 1.0, 3.140625]), bf([1.0, 0.00390625, 0.10009765625]));
    error_term::trap().pointwise().exactly((x, y), bf([1.0, 0.00390625, 0.00634765625]));
}

#[test]
fn case_003_rounding_before_an_equality() {
    ties::trap().exactly((bf([1.0, 2.0, 2.0]),), (scalar(2i64), Tensor::from([0.0f32, 0.5, 0.5])));
}

#[test]
fn case_004_the_epilogue_keeps_the_cast() {
    let x = Tensor::from([[1.0f32, 0.00390625], [2.0, 0.0078125]]);
    let (w, b) = (Tensor::from([[1.0f32], [1.0]]), Tensor::from([0.5f32]));
    cast_epilogue::trap().exactly((x, w, b), Tensor::from([[1.5f32], [2.5]]));
}

#[test]
fn case_006_the_rounded_value_is_the_one_used() {
    recomputed::trap().pointwise().exactly((Tensor::from([1.00390625f32]),), Tensor::from([1.0f32]));
}

#[test]
fn case_008_f64_constants_stay_f64() {
    let x = Tensor::from([1.0f64, 50.0]);
    let want = (Tensor::from([3e45f64, 3e45]), Tensor::from([0.1f64, 5.0]), Tensor::from([0i64, 6]));
    wide_constants::trap().pointwise().exactly((x.clone(),), want.clone());
    let runs: Trap<(Tensor<f64, 1>,)> = Trap::new(vec![
        ("compiled", Box::new(|(x,)| wide_scalars(x, 3e45, 0.1, 0.12).results())),
        ("eager", Box::new(|(x,)| wide_scalars::eager(x, 3e45, 0.1, 0.12).results())),
    ]);
    runs.exactly((x,), want);
}

#[test]
fn case_009_no_contraction() {
    let (a, b) = (Tensor::from([2e19f32, 3.0]), Tensor::from([-2e19f32, -3.0]));
    let x = Tensor::from([30000001024.0f32, 0.1]);
    exact_cancelling::trap().pointwise().exactly((a, b, x), Tensor::from([0.0f32, 0.0]));
}

#[test]
fn case_011_no_reassociation() {
    no_reassociation::trap()
        .exactly((Tensor::from([0.9f32, 0.3]), scalar(1.0f32)), Tensor::from([0.0f32, -0.59999996]));
}
