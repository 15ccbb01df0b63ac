//! What a warm call costs the host: nanoseconds per call of functions whose tensors are too small to matter.
//!
//! ```text
//! cargo bench --bench dispatch
//! ```
//!
//! It measures on the device that `FUSE_DEVICE` names, else the best one, and on the recorder: a device that goes through
//! everything a GPU does but the driver, on any machine. Before the driver's own time, a call should cost a microsecond and
//! 0.2 for each tensor argument.

use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
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

/// Three products by the library, each with a kernel behind it.
#[compile]
fn layers(
    #[dims(N, N)] x: &Tensor<f32, 2>,
    #[dims(N, N)] a: &Tensor<f32, 2>,
    #[dims(N, N)] b: &Tensor<f32, 2>,
    #[dims(N, N)] c: &Tensor<f32, 2>,
) -> Tensor<f32, 2> {
    x.matmul(a).tanh().matmul(b).tanh().matmul(c).tanh()
}

fn main() {
    println!("nanoseconds per warm call, tensors of 8 elements");
    println!("{:<12} {:<16} {:>10} {:>10}", "device", "function", "compiled", "eager");
    for (name, device) in [("recorder".to_owned(), recorder::device()), (Device::best().to_string(), Device::best())] {
        let [a, b, c, d] = [1.0, 2.0, 3.0, 4.0].map(|value| Tensor::full([8], value, device));
        let [p, q, r, s] = [1.0, 2.0, 3.0, 4.0].map(|value| Tensor::full([8, 8], value, device));
        let report = |function, compiled, eager| println!("{name:<12} {function:<16} {compiled:>10.0} {eager:>10.0}");
        let time = |call: &dyn Fn()| nanoseconds(device, call);
        report("1 argument", time(&|| drop(one(&a))), time(&|| drop(one::eager(&a))));
        report("2 arguments", time(&|| drop(two(&a, &b))), time(&|| drop(two::eager(&a, &b))));
        report("4 arguments", time(&|| drop(four(&a, &b, &c, &d))), time(&|| drop(four::eager(&a, &b, &c, &d))));
        report("3 products", time(&|| drop(layers(&p, &q, &r, &s))), time(&|| drop(layers::eager(&p, &q, &r, &s))));
    }
}

/// The smallest mean of several runs: what disturbs a run only ever makes it longer.
fn nanoseconds(device: Device, call: &dyn Fn()) -> f64 {
    const CALLS: usize = 10_000;
    let run = || {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call)();
        }
        if device != recorder::device() {
            device.synchronize().expect("the calls are valid");
        }
        let taken = start.elapsed().as_nanos() as f64 / CALLS as f64;
        recorder::launches();
        taken
    };
    run();
    (0..7).map(|_| run()).fold(f64::INFINITY, f64::min)
}
