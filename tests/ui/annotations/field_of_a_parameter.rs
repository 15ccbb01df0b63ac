use fuse_runtime::prelude::*;

struct Weights {
    w: Tensor<f32, 2>,
}

#[compile]
fn project(x: &Tensor<f32, 2>, weights: &Weights) -> Tensor<f32, 2> {
    x.matmul(&weights.w)
}

fn main() {}
