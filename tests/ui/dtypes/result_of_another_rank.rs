use fuse_runtime::prelude::*;

#[compile]
fn total(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let y = x.exp();
    y.sum(1)
}

fn main() {}
