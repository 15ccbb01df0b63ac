use fuse_runtime::prelude::*;

#[compile]
fn weights(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.softmax()
}

fn main() {}
