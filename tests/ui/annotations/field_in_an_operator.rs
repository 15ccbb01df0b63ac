use fuse_runtime::prelude::*;

struct Model {
    bias: Tensor<f32, 1>,
}

#[compile]
impl Model {
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        x.exp() + &self.bias
    }
}

fn main() {}
