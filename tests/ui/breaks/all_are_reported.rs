use fuse_runtime::prelude::*;

#[compile(deny(breaks))]
fn scaled(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = x.exp();
    println!("{y}");
    let largest = y.max_all().item();
    let z = y / largest;
    dbg!(&z);
    z
}

fn main() {}
