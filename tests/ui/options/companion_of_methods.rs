use fuse_runtime::prelude::*;

struct Model;

#[compile(companion = parts)]
impl Model {
    fn forward(&self, x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x * 2.0
    }
}

fn main() {}
