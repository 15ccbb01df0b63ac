//! Products of fp8 with a scale for each operand, against those of bf16: `x @ w.t()`, as a linear layer has it.
//!
//! ```text
//! cargo bench --bench fp8 -- --device cuda:0
//! ```

use clap::Parser;
use fuse_runtime::prelude::*;
use std::time::Instant;

/// Times products of fp8.
#[derive(Parser)]
struct Args {
    /// `cpu` or `cuda:N` [default: the first GPU]
    #[arg(long)]
    device: Option<String>,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Rows, columns and inner extent.
const SHAPES: [[usize; 3]; 7] = [
    [8192, 8192, 8192],
    [4096, 4096, 4096],
    [4096, 4096, 16384],
    [8192, 8192, 1024],
    [2048, 11008, 4096],
    [4096, 3072, 768],
    [1024, 1024, 1024],
];
/// Seconds of one repeat, of which the fastest counts.
const REPEAT: f64 = 0.02;
const REPEATS: usize = 5;

#[compile]
fn scaled(
    #[dims(M, K)] x: &Tensor<f8e4m3, 2>,
    #[dims(N, K)] w: &Tensor<f8e4m3, 2>,
    s: &Tensor<f32, 0>,
    t: &Tensor<f32, 0>,
) -> Tensor<bf16, 2> {
    x.scaled_matmul::<bf16>(&w.t(), s, t)
}

#[compile]
fn halves(#[dims(M, K)] x: &Tensor<bf16, 2>, #[dims(N, K)] w: &Tensor<bf16, 2>) -> Tensor<bf16, 2> {
    x.matmul(&w.t())
}

fn main() {
    let args = Args::parse();
    let device: Device = match &args.device {
        Some(name) => name.parse().expect("`--device` names a device of this machine"),
        None => Device::best(),
    };
    println!("{:>24} {:>12} {:>12} {:>10} {:>10}", "m x n x k", "fp8 us", "bf16 us", "TFLOP/s", "TFLOP/s");
    for [m, n, k] in SHAPES {
        let (x, w) = (Tensor::<bf16, 2>::randn([m, k], device), Tensor::<bf16, 2>::randn([n, k], device));
        let (x8, w8, one) = (x.cast::<f8e4m3>(), w.cast::<f8e4m3>(), Tensor::ones([], device));
        let fp8 = seconds(device, || scaled(&x8, &w8, &one, &one));
        let bf16 = seconds(device, || halves(&x, &w));
        let speed = |seconds: f64| 2e-12 * (m * n * k) as f64 / seconds;
        println!(
            "{:>24} {:>12.1} {:>12.1} {:>10.0} {:>10.0}",
            format!("{m} x {n} x {k}"),
            fp8 * 1e6,
            bf16 * 1e6,
            speed(fp8),
            speed(bf16)
        );
    }
}

/// What one call takes.
fn seconds<T>(device: Device, call: impl Fn() -> T) -> f64 {
    let timed = |count: usize| {
        let start = Instant::now();
        for _ in 0..count {
            call();
        }
        device.synchronize().expect("products do not fail");
        start.elapsed().as_secs_f64()
    };
    timed(3);
    let count = (REPEAT / timed(1)).ceil() as usize;
    (0..REPEATS).map(|_| timed(count) / count as f64).fold(f64::INFINITY, f64::min)
}
