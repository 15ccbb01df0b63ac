use fuse_runtime::prelude::*;

#[compile(grad(order = 2, x))]
fn rows(x: &Tensor<f32, 2>) -> Result<(Tensor<f32, 1>, Tensor<f32, 2>), Error> {
    Ok((x.sum(-1), x.exp()))
}

struct Model;

#[compile]
impl Model {
    #[compile(grad(x))]
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 1> {
        x.sum(-1)
    }
}

fn gradients(x: &Tensor<f32, 2>) {
    rows::value_and_grad(x);
    Model.forward_value_and_grad(x);
}

fn second_derivatives(x: &Tensor<f32, 2>) {
    rows::hvp(x, x);
}

fn main() {}
