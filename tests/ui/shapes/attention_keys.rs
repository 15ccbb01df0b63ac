use fuse_runtime::prelude::*;

#[compile]
fn attend(
    #[dims(B, S, D)] q: &Tensor<f32, 3>,
    #[dims(B, S, H)] k: &Tensor<f32, 3>,
    #[dims(B, S, D)] v: &Tensor<f32, 3>,
) -> Tensor<f32, 3> {
    q.scaled_dot_product_attention(k, v, None, true)
}

fn main() {}
