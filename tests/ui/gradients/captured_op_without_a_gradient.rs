use fuse_runtime::prelude::*;

#[compile]
fn hits(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>, b: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let (_, (grad, _)) = value_and_grad((w, b), |(weight, bias)| {
        let above = (x * weight).ge(0.5);
        (above.cast::<f32>() * bias).sum_all()
    });
    grad
}

fn main() {}
