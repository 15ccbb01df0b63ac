use fuse_runtime::prelude::*;

type Matrix = Tensor<f32, 2>;

#[compile(fullgraph)]
fn scaled(x: &Matrix) -> Matrix {
    x * 2.0
}

fn main() {}
