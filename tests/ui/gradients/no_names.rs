use fuse_runtime::prelude::*;

#[compile(grad(x, x, 3, x.y))]
fn energy(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x * x).sum_all()
}

fn main() {}
