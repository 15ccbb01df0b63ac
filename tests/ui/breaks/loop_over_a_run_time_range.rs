use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn halved(x: &Tensor<f32, 1>, steps: usize) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for _ in 0..steps {
        y = y * 0.5;
    }
    y
}

fn main() {}
