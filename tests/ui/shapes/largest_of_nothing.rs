use fuse_runtime::prelude::*;

#[compile]
fn largest(#[dims(0)] x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    x.max_all()
}

fn main() {}
