use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn halved(x: &Tensor<f32, 1>, steps: usize) -> Tensor<f32, 1> {
    let mut y = x.clone();
    let mut step = 0;
    loop {
        if step == steps {
            break;
        }
        step += 1;
        y = y * 0.5;
    }
    y
}

fn main() {}
