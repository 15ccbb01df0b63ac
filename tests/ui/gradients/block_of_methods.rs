use fuse_runtime::prelude::*;

struct Model;

#[compile(grad(x))]
impl Model {
    fn loss(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 0> {
        x.mean_all()
    }
}

fn main() {}
