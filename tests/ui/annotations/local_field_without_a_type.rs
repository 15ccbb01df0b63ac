use fuse_runtime::prelude::*;

struct Model {
    w: Tensor<f32, 2>,
}

#[compile(fullgraph)]
impl Model {
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        let w = &self.w;
        x.matmul(w)
    }
}

fn main() {}
