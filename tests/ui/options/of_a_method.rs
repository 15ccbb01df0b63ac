use fuse_runtime::prelude::*;

struct Model;

#[compile]
impl Model {
    #[compile(fullgraph)]
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        println!("{x}");
        x * 2.0
    }

    #[compile(mode = "fastest", companion = other)]
    fn backward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        println!("{x}");
        x * 3.0
    }
}

fn main() {}
