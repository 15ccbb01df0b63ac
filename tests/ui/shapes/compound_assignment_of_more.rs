use fuse_runtime::prelude::*;

#[compile]
fn shift(#[dims(1)] x: &mut Tensor<f32, 1>, #[dims(3)] y: &Tensor<f32, 1>) {
    *x += y;
}

fn main() {}
