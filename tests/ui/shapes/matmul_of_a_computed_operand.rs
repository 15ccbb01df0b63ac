use fuse_runtime::prelude::*;

#[compile]
fn feed_forward(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(D, H)] w1: &Tensor<f32, 2>,
    #[dims(D, H)] w2: &Tensor<f32, 2>,
) -> Tensor<f32, 2> {
    let hidden = x.matmul(w1).relu();
    hidden.matmul(w2)
}

fn main() {}
