use fuse_runtime::prelude::*;

struct Model;

impl Model {
    #[compile]
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        x * 2.0
    }
}

fn main() {}
