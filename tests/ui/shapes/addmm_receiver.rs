use fuse_runtime::prelude::*;

#[compile]
fn project(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(D, H)] w: &Tensor<f32, 2>,
    #[dims(D)] bias: &Tensor<f32, 1>,
) -> Tensor<f32, 2> {
    bias.addmm(x, w)
}

fn main() {}
