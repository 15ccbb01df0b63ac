use fuse_runtime::prelude::*;

#[compile]
fn pick(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x.where_cond(x, y)
}

fn main() {}
