use fuse_runtime::prelude::*;

#[compile]
fn picked(table: &Tensor<f32, 2>, ids: &Tensor<i32, 1>) -> Tensor<f32, 2> {
    table.embedding(ids)
}

fn main() {}
