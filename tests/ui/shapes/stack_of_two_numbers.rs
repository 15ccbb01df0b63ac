use fuse_runtime::prelude::*;

#[compile]
fn joined(#[dims(3)] x: &Tensor<f32, 1>, #[dims(4)] y: &Tensor<f32, 1>) -> Tensor<f32, 2> {
    Tensor::stack([x, y], 0)
}

fn main() {}
