use fuse_runtime::prelude::*;

#[compile]
fn scaled(#[dims(-1, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x * 2.0
}

fn main() {}
