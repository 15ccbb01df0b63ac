use fuse_runtime::prelude::*;

#[compile(grad())]
fn energy(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x * x).sum_all()
}

#[compile(grad)]
fn power(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x * x).sum_all()
}

#[compile(grad = "x")]
fn work(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x * x).sum_all()
}

fn main() {}
