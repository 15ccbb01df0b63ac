use fuse_runtime::prelude::*;

fn helper(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.relu()
}

#[compile]
fn project(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let w = helper(x);
    x.matmul(&w)
}

fn main() {}
