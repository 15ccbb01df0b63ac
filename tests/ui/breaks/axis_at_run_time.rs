use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn total(x: &Tensor<f32, 2>, axis: isize) -> Tensor<f32, 1> {
    x.exp().sum(axis)
}

fn main() {}
