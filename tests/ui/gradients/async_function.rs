use fuse_runtime::prelude::*;

#[compile(grad(x))]
async fn loss(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    x.exp().sum_all()
}

fn main() {}
