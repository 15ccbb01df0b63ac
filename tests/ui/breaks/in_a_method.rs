use fuse_runtime::prelude::*;

struct Model {
    w: Tensor<f32, 1>,
}

#[compile(fullgraph)]
impl Model {
    fn forward(&self, x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        let w: &Tensor<f32, 1> = &self.w;
        let y = x * w;
        println!("{y:?}");
        y + 1.0
    }

    fn quiet(&self, x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x + 1.0
    }
}

fn main() {}
