use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn shifted(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = x.exp();
    let shift = |t: &Tensor<f32, 1>| t + &y;
    let z: Tensor<f32, 1> = shift(x);
    z.relu()
}

fn main() {}
