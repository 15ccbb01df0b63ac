use fuse_runtime::prelude::*;

#[compile(grad(x))]
fn position(x: &Tensor<f32, 1>) -> Tensor<i64, 0> {
    x.argmax(0)
}

#[compile(grad(x))]
fn both(x: &Tensor<f32, 1>) -> (Tensor<f32, 0>, Tensor<f32, 0>) {
    (x.sum_all(), x.mean_all())
}

#[compile(grad(x))]
fn nothing(x: &mut Tensor<f32, 1>) {
    let y = &*x * 2.0;
    x.copy_(&y);
}

fn main() {}
