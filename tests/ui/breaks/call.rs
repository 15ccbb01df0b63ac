use fuse_runtime::prelude::*;

fn helper(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x.relu()
}

#[compile(fullgraph)]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y: Tensor<f32, 1> = helper(&x.exp());
    y * 2.0
}

fn main() {}
