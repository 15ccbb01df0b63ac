use fuse_runtime::prelude::*;

#[compile]
fn masked(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x & y
}

fn main() {}
