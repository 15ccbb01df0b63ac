use fuse_runtime::prelude::*;

use std::collections::HashMap;

#[compile]
fn shifted(x: &Tensor<f32, 1>, table: &HashMap<usize, Tensor<f32, 1>>) -> Tensor<f32, 1> {
    x.exp() + &table[&0]
}

fn main() {}
