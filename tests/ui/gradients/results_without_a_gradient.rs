use fuse_runtime::prelude::*;

#[compile(grad(x))]
fn position(x: &Tensor<f32, 1>) -> (Tensor<i64, 0>, usize) {
    (x.argmax(0), x.size(0))
}

#[compile(grad(x))]
fn optional(x: &Tensor<f32, 1>) -> (Tensor<f32, 0>, Option<Tensor<f32, 1>>) {
    (x.sum_all(), Some(x.exp()))
}

#[compile(grad(x))]
fn nothing(x: &mut Tensor<f32, 1>) {
    let y = &*x * 2.0;
    x.copy_(&y);
}

fn main() {}
