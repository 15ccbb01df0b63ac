use fuse_runtime::prelude::*;

#[compile]
struct Model {
    #[dims(D, H)]
    w: Tensor<f32, 2>,
}

fn main() {}
