use fuse_runtime::prelude::*;

#[compile(grad(x))]
fn parts(x: &Tensor<f32, 2>) -> (Tensor<f32, 2>, Tensor<i64, 1>) {
    (x.exp(), x.argmax(-1))
}

fn one_for_two(x: &Tensor<f32, 2>, up: &Tensor<f32, 2>) {
    parts::vjp(x, up);
}

fn one_for_integers(x: &Tensor<f32, 2>, up: &Tensor<f32, 2>, best: &Tensor<i64, 1>) {
    parts::vjp(x, (up, best));
}

fn one_by_value(x: &Tensor<f32, 2>, up: Tensor<f32, 2>) {
    parts::vjp(x, (up, ()));
}

fn main() {}
