use fuse_runtime::prelude::*;

struct Model;

#[compile]
impl Model {
    fn forward(#[dims(N)] &self, x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x * 2.0
    }
}

fn main() {}
