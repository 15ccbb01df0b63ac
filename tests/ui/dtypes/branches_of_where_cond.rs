use fuse_runtime::prelude::*;

#[compile]
fn pick(keep: &Tensor<bool, 1>, x: &Tensor<f32, 1>, y: &Tensor<f64, 1>) -> Tensor<f32, 1> {
    keep.where_cond(x, y)
}

fn main() {}
