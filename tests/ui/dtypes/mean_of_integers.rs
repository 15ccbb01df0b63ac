use fuse_runtime::prelude::*;

#[compile]
fn average(counts: &Tensor<i64, 2>) -> Tensor<i64, 1> {
    counts.mean(0)
}

fn main() {}
