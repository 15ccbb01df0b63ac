use fuse_runtime::prelude::*;

#[compile]
fn normed(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(H)] weight: &Tensor<f32, 1>,
    #[dims(D)] bias: &Tensor<f32, 1>,
) -> Tensor<f32, 2> {
    x.layer_norm(weight, bias, 1e-5)
}

fn main() {}
