use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn summed(x: &Tensor<f32, 1>, others: &[Tensor<f32, 1>]) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for other in others {
        y = y + other;
    }
    y
}

fn main() {}
