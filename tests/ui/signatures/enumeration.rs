use fuse_runtime::prelude::*;

#[compile]
enum Activation {
    Relu,
    Gelu,
}

fn main() {}
