use fuse_runtime::prelude::*;

#[compile]
fn total(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let y: Tensor<f32, 2> = x.sum(1);
    y.relu()
}

fn main() {}
