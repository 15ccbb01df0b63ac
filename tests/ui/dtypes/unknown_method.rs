use fuse_runtime::prelude::*;

#[compile]
fn positive(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.rectify()
}

fn main() {}
