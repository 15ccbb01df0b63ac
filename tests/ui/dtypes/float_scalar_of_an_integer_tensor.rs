use fuse_runtime::prelude::*;

#[compile]
fn scaled(counts: &Tensor<i32, 1>) -> Tensor<i32, 1> {
    counts * 2.5
}

fn main() {}
