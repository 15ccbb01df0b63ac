use fuse_runtime::prelude::*;

fn helper(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x.relu()
}

#[compile]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let z = helper(x);
    z.relu() * 2.0
}

fn main() {}
