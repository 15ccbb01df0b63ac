use fuse_runtime::prelude::*;

#[compile]
fn turned(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.flip([1, -1])
}

fn main() {}
