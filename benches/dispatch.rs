//! What a warm call costs the host: nanoseconds per call of functions whose tensors are too small to matter.
//!
//! ```text
//! cargo bench --bench dispatch
//! ```

use fuse_runtime::prelude::*;
use std::hint::black_box;
use std::time::Instant;

#[compile]
fn one(#[dims(N)] a: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    a * 2.0 + 1.0
}

#[compile]
fn two(#[dims(N)] a: &Tensor<f32, 1>, #[dims(N)] b: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    a * 2.0 + b
}

#[compile]
fn four(
    #[dims(N)] a: &Tensor<f32, 1>,
    #[dims(N)] b: &Tensor<f32, 1>,
    #[dims(N)] c: &Tensor<f32, 1>,
    #[dims(N)] d: &Tensor<f32, 1>,
) -> Tensor<f32, 1> {
    a * b + c * d
}

fn main() {
    let device = Device::best();
    let [a, b, c, d] = [1.0, 2.0, 3.0, 4.0].map(|value| Tensor::full([8], value, device));
    println!("nanoseconds per warm call on {device}, tensors of 8 elements");
    println!("{:<20} {:>10} {:>10}", "tensor arguments", "compiled", "eager");
    report(1, device, || one(&a), || one::eager(&a));
    report(2, device, || two(&a, &b), || two::eager(&a, &b));
    report(4, device, || four(&a, &b, &c, &d), || four::eager(&a, &b, &c, &d));
}

fn report(arguments: usize, device: Device, compiled: impl Fn() -> Tensor<f32, 1>, eager: impl Fn() -> Tensor<f32, 1>) {
    println!("{arguments:<20} {:>10.0} {:>10.0}", nanoseconds(device, compiled), nanoseconds(device, eager));
}

/// The smallest mean of several runs: what disturbs a run only ever makes it longer.
fn nanoseconds(device: Device, call: impl Fn() -> Tensor<f32, 1>) -> f64 {
    const CALLS: usize = 20_000;
    let run = || {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call());
        }
        device.synchronize().expect("the calls are valid");
        start.elapsed().as_nanos() as f64 / CALLS as f64
    };
    run();
    (0..7).map(|_| run()).fold(f64::INFINITY, f64::min)
}
