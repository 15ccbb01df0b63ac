use fuse_runtime::prelude::*;

#[compile]
fn turned(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.permute([0, 1, 2])
}

fn main() {}
