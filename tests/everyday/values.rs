//! Operators, numbers and shapes.

use super::*;

#[compile]
fn chain_over_lines(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.relu()
        // first
        .softmax(-1)
        .transpose(0, 1)
        /* second */
        .matmul(&x.exp())
        .max_keepdim(1)
}

#[compile]
fn casts(x: &Tensor<f32, 1>) -> (Tensor<i64, 1>, Tensor<f64, 1>) {
    let i = x.cast::<i64>();
    let w: Tensor<f64, 1> = i.cast();
    (i + 1, w / 2.0)
}

#[compile]
fn numbers_cast(x: &Tensor<f32, 1>, n: i32, b: bool) -> Tensor<f32, 1> {
    let k = n as f32 / 2.0;
    let m = b as i32 as f32;
    x * k + m + (n as usize + 1) as f32
}

#[compile]
fn compound_assignment(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    y += w;
    y -= 1.0;
    y *= w * 2.0;
    y /= 3.0;
    y = -y;
    y %= 2.0;
    y
}

#[compile]
fn arithmetic_on_sizes(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let (n, d) = (x.size(0), x.size(1));
    let half = (d + 1) / 2;
    let rest = d - half;
    let left = x.narrow(1, 0, half);
    let right = x.narrow(1, half, rest);
    let scale = (d as f32).sqrt().recip();
    Tensor::cat([right, left], 1) * scale + (n * d) as f32 / (n.max(1) as f32)
}

#[compile]
fn constants_of_std(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let eps = 1e-5_f32;
    let pi = std::f32::consts::PI;
    let n = 1 << 3;
    x / (2.0 * pi) + eps + n as f32 + f32::EPSILON + i32::MAX as f32
}

#[compile]
fn masks_and_counts(x: &Tensor<f32, 1>) -> (Tensor<bool, 1>, Tensor<i64, 0>, Tensor<f32, 1>) {
    let mask = x.gt(0.0) & x.lt(2.0);
    let count = mask.sum_all();
    let not = !&mask;
    (mask, count, not.where_cond(x, 0.0))
}

#[compile]
fn operators_on_references(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = x.clone().relu();
    let z = (&y).exp() + x.to_owned();
    let w = -&z + 2.0 - &y * &z / (x + 3.0);
    &w - &*x
}

#[compile]
fn questions_about_shapes(x: &Tensor<f32, 2>, w: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let n: usize = x.dims().iter().product();
    let shape = x.dims();
    let [.., d] = x.dims();
    let last = x.size(-1);
    let y = x.reshape([shape[0] * shape[1]]);
    assert_eq!((d, n), (last, y.size(0)));
    if x.size(0) == w.size(0) { y * d as f32 } else { y - n as f32 }
}

#[compile]
fn scalar_arguments(x: &Tensor<f32, 1>, n: i32, hi: f32) -> Tensor<f32, 1> {
    let lo = hi - 1.0;
    let y = x.powi(n) + x.abs().powf(0.5);
    let z = y.clamp(lo, hi) + x.clamp(0.0, hi);
    z * x.lt(hi).cast::<f32>() + x.ge(lo).cast()
}

#[compile]
fn rank_as_a_formula(x: &Tensor<f32, { 1 + 1 }>) -> Tensor<f32, 2> {
    x.relu() + 1.0
}

#[test]
fn operators_and_numbers_agree() {
    let w = row(&[0.5, 1.5, -1.0]);
    let m = matrix(2, [1.0, -2.0, 0.5, 3.0, 0.25, -1.0, 2.0, 1.0]);
    for x in &rows() {
        same!(casts(x));
        same!(numbers_cast(x, 3, true));
        same!(compound_assignment(x, &w));
        same!(constants_of_std(x));
        same!(masks_and_counts(x));
        same!(operators_on_references(x));
        same!(questions_about_shapes(&m, x));
        same!(scalar_arguments(x, 2, 0.75));
        same!(rank_as_a_formula(&m));
    }
    same!(chain_over_lines(&m));
    same!(arithmetic_on_sizes(&m));
}
