use fuse_runtime::prelude::*;

#[compile]
fn sum(x: &Tensor<f32, 2>, y: &Tensor<f64, 2>) -> Tensor<f32, 2> {
    x + y
}

fn main() {}
