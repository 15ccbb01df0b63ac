use fuse_runtime::prelude::*;

#[compile]
fn both(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(H)] bias: &Tensor<f32, 1>,
) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
    (x + bias, x.exp())
}

fn main() {}
