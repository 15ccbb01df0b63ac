use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn patched(x: &Tensor<f32, 1>, parts: &mut [Tensor<f32, 1>]) -> Tensor<f32, 1> {
    parts[0].copy_(x);
    x * 2.0
}

fn main() {}
