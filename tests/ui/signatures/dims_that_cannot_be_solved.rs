use fuse_runtime::prelude::*;

#[compile]
fn flat(#[dims(H * W)] x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x * 2.0
}

fn main() {}
