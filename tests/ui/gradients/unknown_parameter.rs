use fuse_runtime::prelude::*;

#[compile(grad(w, c))]
fn loss(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>, b: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x.matmul(w) + b).mean_all()
}

fn main() {}
