use fuse_runtime::prelude::*;

fn squares(w: Tensor<f32, 1>) -> Tensor<f32, 0> {
    (&w * &w).sum_all()
}

#[compile(fullgraph)]
fn of_a_function(w: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    value_and_grad(w, squares).1
}

#[compile(fullgraph)]
fn that_reads(w: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    value_and_grad(w, |w| {
        let size = w.norm_all().item();
        (&w * &w).sum_all() * size
    })
    .1
}

#[compile(fullgraph)]
fn that_branches(w: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let (_, grad) = value_and_grad(w, |w| {
        let total = w.sum_all();
        if total.item() > 0.0 { total.sqrt() } else { total }
    });
    grad
}

#[compile(fullgraph)]
fn that_returns_early(w: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let (_, grad) = value_and_grad(w, |w| {
        if n == 0 {
            return w.sum_all();
        }
        (&w * &w).sum_all()
    });
    grad
}

fn main() {}
