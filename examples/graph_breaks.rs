//! Graph breaks: what breaks a graph, what the report says about it, and the same function without breaks.
//!
//! ```text
//! cargo run --release --example graph_breaks
//! ```

use fuse_runtime::prelude::*;

/// Prints a statistic, then lets it decide how to go on. Both statements need tensor data on the host, so the function runs
/// as several graphs with Rust between them.
#[compile]
fn gated(
    #[dims(N, D)] x: &Tensor<f32, 2>,
    #[dims(D, H)] w: &Tensor<f32, 2>,
    #[dims(H, H)] deeper: &Tensor<f32, 2>,
) -> Tensor<f32, 2> {
    let h: Tensor<f32, 2> = x.matmul(w).relu();
    let mean: Tensor<f32, 0> = h.mean_all();
    println!("mean activation {mean}");
    let h: Tensor<f32, 2> = if mean.item() > 0.2 { h.matmul(deeper) } else { h * 0.5 };
    h.gelu()
}

/// The same without breaks: the branch became a select on the device, and what was printed became a result. It computes
/// both arms, which is the price; `fullgraph` makes the compiler refuse a break that comes back.
#[compile(fullgraph)]
fn gated_in_one_graph(
    #[dims(N, D)] x: &Tensor<f32, 2>,
    #[dims(D, H)] w: &Tensor<f32, 2>,
    #[dims(H, H)] deeper: &Tensor<f32, 2>,
) -> (Tensor<f32, 2>, Tensor<f32, 0>) {
    let h = x.matmul(w).relu();
    let mean = h.mean_all();
    let chosen = mean.gt(0.2).where_cond(h.matmul(deeper), &h * 0.5);
    (chosen.gelu(), mean)
}

fn main() {
    let device = Device::best();
    let w = Tensor::<f32, 2>::randn([256, 256], device) * 0.0625;
    let deeper = Tensor::<f32, 2>::randn([256, 256], device) * 0.0625;
    println!("{}", gated::explain());
    println!("{}", gated_in_one_graph::explain());

    for scale in [1.0, 0.1] {
        let x = Tensor::<f32, 2>::randn([256, 256], device) * scale;
        println!("input of scale {scale} on {device}");
        let in_pieces = gated(&x, &w, &deeper);
        let (in_one, mean) = gated_in_one_graph(&x, &w, &deeper);
        println!("mean activation {mean}, as a result of the one graph");
        let difference = (in_pieces - in_one).abs().max_all().item();
        println!("largest difference between the two {difference:.1e}\n");
        assert!(difference <= 1e-5, "the rewritten function computes the same");
    }
}
