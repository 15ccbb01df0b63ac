use fuse_runtime::prelude::*;

#[compile]
fn loss(#[dims(B, C)] logits: &Tensor<f32, 2>, #[dims(C)] targets: &Tensor<i64, 1>) -> Tensor<f32, 0> {
    logits.cross_entropy(targets)
}

fn main() {}
