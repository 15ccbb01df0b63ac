use fuse_runtime::prelude::*;

#[compile]
fn project(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(D, H)] weight: &Tensor<f32, 2>,
    #[dims(H)] bias: &Tensor<f32, 1>,
) -> Tensor<f32, 2> {
    x.linear(weight, bias)
}

fn main() {}
