use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn collected(x: &Tensor<f32, 1>) -> Tensor<f32, 2> {
    let mut rows = Vec::new();
    rows.push(x.exp());
    rows.push(x.relu());
    Tensor::stack(&rows, 0)
}

fn main() {}
