use fuse_runtime::prelude::*;

#[compile]
fn total(x: &Tensor<f32, 2>) -> Tensor<f32, 1> {
    x.exp().sum(2)
}

fn main() {}
