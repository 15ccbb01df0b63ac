use fuse_runtime::prelude::*;

#[compile]
fn sum<T: Float>(x: &Tensor<T, 2>, y: &Tensor<f32, 2>) -> Tensor<T, 2> {
    x + y
}

fn main() {}
