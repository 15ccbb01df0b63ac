use fuse_runtime::prelude::*;

#[compile]
fn scaled(#[dims(B, D / 2)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x * 2.0
}

fn main() {}
