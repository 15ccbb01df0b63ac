use fuse_runtime::prelude::*;

#[compile(grad(x, scale, _mask))]
fn loss(x: &Tensor<f32, 1>, scale: f32, _mask: Option<&Tensor<f32, 1>>) -> Tensor<f32, 0> {
    (x * scale).sum_all()
}

fn main() {}
