use fuse_runtime::prelude::*;

#[compile(grad(table, index))]
fn loss(table: &Tensor<f32, 2>, index: &Tensor<i64, 1>) -> Tensor<f32, 0> {
    table.embedding(index).mean_all()
}

fn main() {}
