use fuse_runtime::prelude::*;

#[compile(grad(x, w))]
fn loss(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> Tensor<f32, 0> {
    let h = x.exp().matmul(w);
    let hits = h.ge(0.5).cast::<f32>();
    hits.mean_all()
}

fn main() {}
