use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    #[cfg(debug_assertions)]
    println!("scaled");
    x * 2.0
}

fn main() {}
