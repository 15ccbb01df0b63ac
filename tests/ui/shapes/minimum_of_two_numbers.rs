use fuse_runtime::prelude::*;

#[compile]
fn least(#[dims(3)] x: &Tensor<f32, 1>, #[dims(4)] limit: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x.exp().minimum(limit)
}

fn main() {}
