use fuse_runtime::prelude::*;

#[compile(grad(x))]
fn loss(x: &mut Tensor<f32, 1>) -> Tensor<f32, 0> {
    *x *= 2.0;
    x.sum_all()
}

fn main() {}
