use fuse_runtime::prelude::*;

#[compile(deny(breaks))]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let largest = x.max_all().item();
    x / largest
}

fn main() {}
