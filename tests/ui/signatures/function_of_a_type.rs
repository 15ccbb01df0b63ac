use fuse_runtime::prelude::*;

struct Model(Tensor<f32, 1>);

impl Model {
    #[compile]
    fn scaled(x: &Tensor<f32, 1>) -> Self {
        Model(x * 2.0)
    }
}

fn main() {}
