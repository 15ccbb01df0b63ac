use fuse_runtime::prelude::*;

struct Model {
    w: Tensor<f32, 2>,
}

#[compile]
impl Model {
    fn forward(&self, #[dims(B, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        let w: &Tensor<f32, 2> = &self.w;
        x.matmul(w).sum_keepdim(5)
    }
}

fn main() {}
