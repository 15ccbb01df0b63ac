use fuse_runtime::prelude::*;

fn helper(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x.relu()
}

#[compile]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let a = helper(x);
    let b = helper(x);
    a.relu() + b.gelu()
}

fn main() {}
