use fuse_runtime::prelude::*;

#[compile]
fn total(x: &Tensor<f32, 2>) -> Tensor<f32, 0> {
    x.sum_all().cumsum(1)
}

fn main() {}
