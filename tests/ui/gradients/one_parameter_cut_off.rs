use fuse_runtime::prelude::*;

#[compile(grad(x, step))]
fn quantised(x: &Tensor<f32, 1>, step: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x.floor_divide(step.detach()) + step
}

fn main() {}
