use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn scaled(x: f32) -> f32 {
    x * 2.0
}

fn main() {}
