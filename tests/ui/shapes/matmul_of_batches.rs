use fuse_runtime::prelude::*;

#[compile]
fn scores(#[dims(2, S, D)] q: &Tensor<f32, 3>, #[dims(3, D, S)] k: &Tensor<f32, 3>) -> Tensor<f32, 3> {
    q.matmul(k)
}

fn main() {}
