use fuse_runtime::prelude::*;

unsafe fn scale() -> f32 {
    2.0
}

#[compile(fullgraph)]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y: Tensor<f32, 1> = unsafe { x * scale() };
    y.exp()
}

fn main() {}
