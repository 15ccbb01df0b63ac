use fuse_runtime::prelude::*;

#[compile]
fn scattered(
    #[dims(V, D)] table: &Tensor<f32, 2>,
    #[dims(N)] index: &Tensor<i64, 1>,
    #[dims(N, H)] rows: &Tensor<f32, 2>,
) -> Tensor<f32, 2> {
    table.index_add(0, index, rows)
}

fn main() {}
