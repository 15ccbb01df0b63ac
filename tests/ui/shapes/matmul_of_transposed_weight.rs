use fuse_runtime::prelude::*;

#[compile]
fn project(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(D, H)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.matmul(&w.t())
}

fn main() {}
