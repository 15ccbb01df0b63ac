use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn shown(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = x.exp();
    println!("y = {y}");
    y * 2.0
}

fn main() {}
