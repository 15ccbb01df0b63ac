use fuse_runtime::prelude::*;

#[compile]
fn turned(x: &Tensor<f32, 3>) -> Tensor<f32, 3> {
    x.permute([0, 2, 2])
}

fn main() {}
