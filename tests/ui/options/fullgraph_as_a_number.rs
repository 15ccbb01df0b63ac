use fuse_runtime::prelude::*;

#[compile(fullgraph = 1)]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x * 2.0
}

fn main() {}
