use fuse_runtime::prelude::*;

#[compile]
fn project(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(H, D)] w: &Tensor<f32, 2>,
    #[dims(B, H)] residual: &Tensor<f32, 2>,
) -> Tensor<f32, 2> {
    let y = x.matmul(w);
    let total = residual.sum(2);
    let z = residual + x;
    z + y + total
}

fn main() {}
