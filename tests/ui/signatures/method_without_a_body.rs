use fuse_runtime::prelude::*;

trait Layer {
    #[compile]
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2>;
}

fn main() {}
