use fuse_runtime::prelude::*;

#[compile]
fn flat(#[dims(B, 2)] x: &Tensor<f32, 2>) -> Tensor<f32, 1> {
    x.squeeze(1)
}

fn main() {}
