use fuse_runtime::prelude::*;

#[compile]
fn scaled(x: &Tensor<f32, 1>, #[dims(N)] scale: f32) -> Tensor<f32, 1> {
    x * scale
}

fn main() {}
