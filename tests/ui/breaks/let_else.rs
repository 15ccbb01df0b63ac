use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn scaled(x: &Tensor<f32, 1>, scale: Option<f32>) -> Tensor<f32, 1> {
    let y = x.exp();
    let Some(scale) = scale else { return y };
    y * scale
}

fn main() {}
