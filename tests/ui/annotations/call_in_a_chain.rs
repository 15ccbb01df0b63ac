use fuse_runtime::prelude::*;

fn helper(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x * 2.0
}

#[compile(fullgraph)]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    helper(x).gelu()
}

fn main() {}
