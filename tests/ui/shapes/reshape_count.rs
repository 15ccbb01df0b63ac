use fuse_runtime::prelude::*;

#[compile]
fn regroup(#[dims(4, 6)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.reshape([5, 5])
}

fn main() {}
