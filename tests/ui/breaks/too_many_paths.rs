use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn branched(x: &Tensor<f32, 1>, a: bool, b: bool, c: bool, d: bool, e: bool) -> Tensor<f32, 1> {
    let y = if a { x.exp() } else { x.relu() };
    let y = if b { y.exp() } else { y.relu() };
    let y = if c { y.exp() } else { y.relu() };
    let y = if d { y.exp() } else { y.relu() };
    if e { y.exp() } else { y.relu() }
}

fn main() {}
