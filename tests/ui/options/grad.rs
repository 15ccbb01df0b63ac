use fuse_runtime::prelude::*;

#[compile(grad(w))]
fn loss(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> Tensor<f32, 0> {
    x.matmul(w).mean_all()
}

fn main() {}
