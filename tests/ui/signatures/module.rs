use fuse_runtime::prelude::*;

#[compile]
mod net {
    use fuse_runtime::prelude::*;

    pub fn scaled(#[dims(B, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        x * 2.0
    }
}

fn main() {}
