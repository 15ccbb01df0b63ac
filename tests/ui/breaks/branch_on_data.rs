use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn signed(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    if x.sum_all().item() > 0.0 {
        println!("positive");
        x.exp()
    } else {
        x * -1.0
    }
}

fn main() {}
