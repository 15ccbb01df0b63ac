use fuse_runtime::prelude::*;

macro_rules! twice {
    ($x:expr) => {
        $x * 2.0
    };
}

#[compile(fullgraph)]
fn doubled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y: Tensor<f32, 1> = twice!(x);
    y.exp()
}

fn main() {}
