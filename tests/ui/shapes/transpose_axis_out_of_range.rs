use fuse_runtime::prelude::*;

#[compile]
fn turned(x: &Tensor<f32, 3>) -> Tensor<f32, 3> {
    x.transpose(1, 3)
}

fn main() {}
