use fuse_runtime::prelude::*;

#[compile]
fn scaled(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let y = x.exp();
    y = y * 2.0;
    y
}

fn main() {}
