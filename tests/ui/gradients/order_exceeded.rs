use fuse_runtime::prelude::*;

#[compile(grad(x))]
fn slope_energy(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    let y = x.exp();
    let (_, slope) = value_and_grad(&y, |y| (&y * &y * y).sum_all());
    (&slope * &slope).sum_all()
}

#[compile(grad(order = 2, x))]
fn curvature(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    let curvature = value_and_grad(x, |x| value_and_grad(&x, |x| (&x * &x * x).sum_all()).1.sum_all()).1;
    curvature.sum_all()
}

fn main() {}
