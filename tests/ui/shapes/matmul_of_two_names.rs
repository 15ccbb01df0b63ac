use fuse_runtime::prelude::*;

#[compile]
fn project(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(H, D)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.matmul(w)
}

fn main() {}
