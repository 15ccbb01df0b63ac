use fuse_runtime::prelude::*;

#[compile]
fn pick(
    #[dims(B, D)] keep: &Tensor<bool, 2>,
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(B, H)] y: &Tensor<f32, 2>,
) -> Tensor<f32, 2> {
    keep.where_cond(x, y)
}

fn main() {}
