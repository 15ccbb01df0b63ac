use fuse_runtime::prelude::*;

#[compile]
fn project(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(H, D)] weight: &Tensor<f32, 2>,
    #[dims(D)] bias: &Tensor<f32, 1>,
) -> Tensor<f32, 2> {
    x.linear(weight, bias)
}

fn main() {}
