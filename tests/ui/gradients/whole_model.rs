use fuse_runtime::prelude::*;

struct Model {
    w: Tensor<f32, 2>,
}

#[compile]
impl Model {
    #[compile(grad(self))]
    fn loss(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 0> {
        let w: &Tensor<f32, 2> = &self.w;
        x.matmul(w).mean_all()
    }
}

fn main() {}
