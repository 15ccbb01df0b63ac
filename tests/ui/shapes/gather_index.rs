use fuse_runtime::prelude::*;

#[compile]
fn picked(#[dims(4, 8)] x: &Tensor<f32, 2>, #[dims(5, 2)] index: &Tensor<i64, 2>) -> Tensor<f32, 2> {
    x.gather(1, index)
}

fn main() {}
