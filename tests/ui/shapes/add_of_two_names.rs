use fuse_runtime::prelude::*;

#[compile]
fn shift(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(H)] bias: &Tensor<f32, 1>) -> Tensor<f32, 2> {
    x * 2.0 + bias
}

fn main() {}
