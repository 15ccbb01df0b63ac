use fuse_runtime::prelude::*;

struct Model {
    w: Tensor<f32, 2>,
}

#[compile]
impl Model {
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        x.matmul(&self.w)
    }
}

fn main() {}
