use fuse_runtime::prelude::*;

#[compile]
fn project(x: &Tensor<f32, 2>, w: &Tensor<f16, 2>) -> Tensor<f32, 2> {
    x.matmul(w)
}

fn main() {}
