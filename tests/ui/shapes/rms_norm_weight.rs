use fuse_runtime::prelude::*;

#[compile]
fn normed(#[dims(B, 64)] x: &Tensor<f32, 2>, #[dims(32)] weight: &Tensor<f32, 1>) -> Tensor<f32, 2> {
    x.rms_norm(weight, 1e-6)
}

fn main() {}
