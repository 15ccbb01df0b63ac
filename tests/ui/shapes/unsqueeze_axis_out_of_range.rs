use fuse_runtime::prelude::*;

#[compile]
fn column(x: &Tensor<f32, 1>) -> Tensor<f32, 2> {
    x.unsqueeze(2)
}

fn main() {}
