//! Second derivatives: products with vectors beside a function, and gradients inside of gradients.

use crate::common::{check, device};
use fuse_runtime::prelude::*;

#[compile(grad(order = 2, x, w))]
fn energy(x: &Tensor<f64, 1>, w: &Tensor<f64, 2>, scale: f64) -> Tensor<f64, 0> {
    let y = w.matmul(&x.reshape([4, 1])).tanh();
    (&y * &y * scale).sum_all() + (x * x * x).mean_all()
}

/// The same, with host code in it.
#[compile(grad(order = 2, x, w))]
fn broken_energy(x: &Tensor<f64, 1>, w: &Tensor<f64, 2>, scale: f64) -> Tensor<f64, 0> {
    let y = w.matmul(&x.reshape([4, 1])).tanh();
    println!("{} rows", y.to_vec().len());
    (&y * &y * scale).sum_all() + (x * x * x).mean_all()
}

#[test]
fn products_of_second_derivatives_are_differences_of_gradients() {
    let d = device();
    let (x, w) = (Tensor::randn([4], d), Tensor::randn([3, 4], d));
    let (v, u) = (Tensor::randn([4], d), Tensor::randn([3, 4], d));
    let (value, (x_product, w_product)) = energy::hvp(&x, &w, 0.5, &v, &u);
    assert_eq!(value.item(), energy(&x, &w, 0.5).item());
    // The product is the gradient of the slope along the vectors.
    let slope = |x: &_, w: &_| {
        let (_, (x_grad, w_grad)) = energy::value_and_grad(x, w, 0.5);
        ((x_grad * &v).sum_all() + (w_grad * &u).sum_all()).item()
    };
    check(&x_product, &x, |x| slope(x, &w));
    check(&w_product, &w, |w| slope(&x, w));
    let (_, (x_tape, w_tape)) = broken_energy::hvp(&x, &w, 0.5, &v, &u);
    let close = |a: Vec<f64>, b: Vec<f64>| {
        a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} {b}"));
    };
    close(x_product.to_vec(), x_tape.to_vec());
    close(w_product.to_vec(), w_tape.to_vec());
}

#[compile(grad(order = 2, x))]
fn slope_energy(x: &Tensor<f64, 1>) -> Tensor<f64, 0> {
    let slope = value_and_grad(x, |x| (&x * &x * x.sin()).sum_all()).1;
    (&slope * &slope).sum_all()
}

#[test]
fn a_function_that_takes_gradients_has_gradients() {
    let x = Tensor::randn([5], device());
    let (value, grad) = slope_energy::value_and_grad(&x);
    assert_eq!(value.item(), slope_energy(&x).item());
    check(&grad, &x, |x| slope_energy(x).item());
}

#[compile(grad(order = 2, x))]
fn may_fail(x: &Tensor<f64, 1>, y: &Tensor<f64, 1>) -> Result<Tensor<f64, 0>, Error> {
    Ok((x * y).exp().sum_all())
}

#[test]
fn results_come_back_as_results() {
    let d = device();
    let (x, y, v) = (Tensor::zeros([2], d), Tensor::from_slice(&[2.0, 3.0], [2], d), Tensor::ones([2], d));
    assert_eq!(may_fail::hvp(&x, &y, &v).unwrap().1.to_vec(), [4.0, 9.0]);
    assert!(may_fail::hvp(&x, &Tensor::ones([3], d), &v).is_err());
}
