use fuse_runtime::prelude::*;

#[compile]
fn project(#[dims(B, 64)] x: &Tensor<f32, 2>, #[dims(128, 32)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.matmul(&w)
}

fn main() {}
