use fuse_runtime::prelude::*;

#[compile]
fn shift(#[dims(B, 3)] x: &Tensor<f32, 2>, #[dims(B, 4)] y: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x + y
}

fn main() {}
