use fuse_runtime::prelude::*;

#[compile]
struct Model {
    w: Tensor<f32, 2>,
}

fn main() {}
