use fuse_runtime::prelude::*;

#[compile]
trait Layer {
    fn forward(&self, #[dims(B, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2>;
}

fn main() {}
