use fuse_runtime::prelude::*;

trait Double {
    fn double(&self) -> Tensor<f32, 1>;
}

impl Double for Tensor<f32, 1> {
    fn double(&self) -> Tensor<f32, 1> {
        self * 2.0
    }
}

#[compile(fullgraph)]
fn doubled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x.exp().double()
}

fn main() {}
