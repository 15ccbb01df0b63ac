use fuse_runtime::prelude::*;

#[compile]
fn largest(x: &Tensor<f32, 2>) -> Tensor<f32, 1> {
    x.argmax(1)
}

fn main() {}
