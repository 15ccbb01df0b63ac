use fuse_runtime::prelude::*;

#[compile(grad(x, order = 9))]
fn energy(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x * x).sum_all()
}

#[compile(grad(order = second, x))]
fn other(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x * x).sum_all()
}

fn main() {}
