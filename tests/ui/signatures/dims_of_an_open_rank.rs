use fuse_runtime::prelude::*;

#[compile]
fn scaled<const R: usize>(#[dims(B, D)] x: &Tensor<f32, R>) -> Tensor<f32, R> {
    x * 2.0
}

fn main() {}
