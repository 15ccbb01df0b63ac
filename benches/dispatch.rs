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
#[rustfmt::skip]
fn ten(
    #[dims(N)] a0: &Tensor<f32, 1>,
    #[dims(N)] a1: &Tensor<f32, 1>,
    #[dims(N)] a2: &Tensor<f32, 1>,
    #[dims(N)] a3: &Tensor<f32, 1>,
    #[dims(N)] a4: &Tensor<f32, 1>,
    #[dims(N)] a5: &Tensor<f32, 1>,
    #[dims(N)] a6: &Tensor<f32, 1>,
    #[dims(N)] a7: &Tensor<f32, 1>,
    #[dims(N)] a8: &Tensor<f32, 1>,
    #[dims(N)] a9: &Tensor<f32, 1>,
) -> Tensor<f32, 1> {
    a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9
}

#[compile]
#[rustfmt::skip]
fn fifty(
    #[dims(N)] a0: &Tensor<f32, 1>,
    #[dims(N)] a1: &Tensor<f32, 1>,
    #[dims(N)] a2: &Tensor<f32, 1>,
    #[dims(N)] a3: &Tensor<f32, 1>,
    #[dims(N)] a4: &Tensor<f32, 1>,
    #[dims(N)] a5: &Tensor<f32, 1>,
    #[dims(N)] a6: &Tensor<f32, 1>,
    #[dims(N)] a7: &Tensor<f32, 1>,
    #[dims(N)] a8: &Tensor<f32, 1>,
    #[dims(N)] a9: &Tensor<f32, 1>,
    #[dims(N)] a10: &Tensor<f32, 1>,
    #[dims(N)] a11: &Tensor<f32, 1>,
    #[dims(N)] a12: &Tensor<f32, 1>,
    #[dims(N)] a13: &Tensor<f32, 1>,
    #[dims(N)] a14: &Tensor<f32, 1>,
    #[dims(N)] a15: &Tensor<f32, 1>,
    #[dims(N)] a16: &Tensor<f32, 1>,
    #[dims(N)] a17: &Tensor<f32, 1>,
    #[dims(N)] a18: &Tensor<f32, 1>,
    #[dims(N)] a19: &Tensor<f32, 1>,
    #[dims(N)] a20: &Tensor<f32, 1>,
    #[dims(N)] a21: &Tensor<f32, 1>,
    #[dims(N)] a22: &Tensor<f32, 1>,
    #[dims(N)] a23: &Tensor<f32, 1>,
    #[dims(N)] a24: &Tensor<f32, 1>,
    #[dims(N)] a25: &Tensor<f32, 1>,
    #[dims(N)] a26: &Tensor<f32, 1>,
    #[dims(N)] a27: &Tensor<f32, 1>,
    #[dims(N)] a28: &Tensor<f32, 1>,
    #[dims(N)] a29: &Tensor<f32, 1>,
    #[dims(N)] a30: &Tensor<f32, 1>,
    #[dims(N)] a31: &Tensor<f32, 1>,
    #[dims(N)] a32: &Tensor<f32, 1>,
    #[dims(N)] a33: &Tensor<f32, 1>,
    #[dims(N)] a34: &Tensor<f32, 1>,
    #[dims(N)] a35: &Tensor<f32, 1>,
    #[dims(N)] a36: &Tensor<f32, 1>,
    #[dims(N)] a37: &Tensor<f32, 1>,
    #[dims(N)] a38: &Tensor<f32, 1>,
    #[dims(N)] a39: &Tensor<f32, 1>,
    #[dims(N)] a40: &Tensor<f32, 1>,
    #[dims(N)] a41: &Tensor<f32, 1>,
    #[dims(N)] a42: &Tensor<f32, 1>,
    #[dims(N)] a43: &Tensor<f32, 1>,
    #[dims(N)] a44: &Tensor<f32, 1>,
    #[dims(N)] a45: &Tensor<f32, 1>,
    #[dims(N)] a46: &Tensor<f32, 1>,
    #[dims(N)] a47: &Tensor<f32, 1>,
    #[dims(N)] a48: &Tensor<f32, 1>,
    #[dims(N)] a49: &Tensor<f32, 1>,
) -> Tensor<f32, 1> {
    a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15 + a16 + a17 + a18 + a19 + a20 + a21 + a22 + a23 + a24 + a25 + a26 + a27 + a28 + a29 + a30 + a31 + a32 + a33 + a34 + a35 + a36 + a37 + a38 + a39 + a40 + a41 + a42 + a43 + a44 + a45 + a46 + a47 + a48 + a49
}

/// Two kernels, as they run along different axes.
#[compile]
fn two_kernels(#[dims(N, N)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.sum_keepdim(1) * x.sum_keepdim(0)
}

#[compile]
fn ten_launches(#[dims(N, N)] x: &Tensor<f32, 2>, #[dims(N, N)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let mut y = x.matmul(w).tanh();
    for _ in 0..4 {
        y = y.matmul(w).tanh();
    }
    y
}

#[compile]
fn fifty_launches(#[dims(N, N)] x: &Tensor<f32, 2>, #[dims(N, N)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let mut y = x.matmul(w).tanh();
    for _ in 0..24 {
        y = y.matmul(w).tanh();
    }
    y
}

#[compile(mode = "reduce-overhead")]
fn fifty_in_a_graph(#[dims(N, N)] x: &Tensor<f32, 2>, #[dims(N, N)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let mut y = x.matmul(w).tanh();
    for _ in 0..24 {
        y = y.matmul(w).tanh();
    }
    y
}

/// Something to read.
#[compile]
fn mean(#[dims(N, N)] x: &Tensor<f32, 2>) -> Tensor<f32, 0> {
    x.mean_all()
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
    println!("{:<12} {:<12} {:>8} {:>10} {:>10}", "device", "function", "launches", "compiled", "eager");
    for (name, device) in [("recorder".to_owned(), recorder::device()), (Device::best().to_string(), Device::best())] {
        let a: Vec<Tensor<f32, 1>> = (0..50).map(|value| Tensor::full([8], value as f32, device)).collect();
        let [p, q, r, s] = [1.0, 2.0, 3.0, 4.0].map(|value| Tensor::full([8, 8], value, device));
        let report = |function, compiled: &dyn Fn(), eager: &dyn Fn()| {
            let (compiled, eager) = (time(device, compiled), time(device, eager));
            println!(
                "{name:<12} {function:<12} {:>8.0} {:>10.0} {:>10.0}",
                compiled.launches, compiled.nanoseconds, eager.nanoseconds
            );
        };
        report("1 argument", &|| drop(one(&a[0])), &|| drop(one::eager(&a[0])));
        report("10 arguments", &|| drop(call_ten(&a)), &|| drop(call_ten_eager(&a)));
        report("50 arguments", &|| drop(call_fifty(&a)), &|| drop(call_fifty_eager(&a)));
        report("2 kernels", &|| drop(two_kernels(&p)), &|| drop(two_kernels::eager(&p)));
        report("10 launches", &|| drop(ten_launches(&p, &q)), &|| drop(ten_launches::eager(&p, &q)));
        report("50 launches", &|| drop(fifty_launches(&p, &q)), &|| drop(fifty_launches::eager(&p, &q)));
        report("50, a graph", &|| drop(fifty_in_a_graph(&p, &q)), &|| drop(fifty_in_a_graph::eager(&p, &q)));
        report("item", &|| consume(mean(&p).item()), &|| consume(mean::eager(&p).item()));
        report("3 products", &|| drop(layers(&p, &q, &r, &s)), &|| drop(layers::eager(&p, &q, &r, &s)));
    }
}

macro_rules! with_all {
    ($name:ident, $function:path, $($k:literal)*) => {
        fn $name(a: &[Tensor<f32, 1>]) -> Tensor<f32, 1> {
            $function($(&a[$k]),*)
        }
    };
}

with_all!(call_ten, ten, 0 1 2 3 4 5 6 7 8 9);
with_all!(call_ten_eager, ten::eager, 0 1 2 3 4 5 6 7 8 9);
with_all!(call_fifty, fifty, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24
    25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49);
with_all!(call_fifty_eager, fifty::eager, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24
    25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49);

/// Keeps a value from being left out.
fn consume(value: f32) {
    black_box(value);
}

struct Cost {
    nanoseconds: f64,
    /// A call; known on the recorder.
    launches: f64,
}

/// The smallest mean of several runs: what disturbs a run only ever makes it longer.
fn time(device: Device, call: &dyn Fn()) -> Cost {
    const CALLS: usize = 2_000;
    let run = || {
        recorder::launches();
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call)();
        }
        if device != recorder::device() {
            device.synchronize().expect("the calls are valid");
        }
        let nanoseconds = start.elapsed().as_nanos() as f64 / CALLS as f64;
        Cost { nanoseconds, launches: recorder::launches().len() as f64 / CALLS as f64 }
    };
    run();
    (0..15).map(|_| run()).min_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds)).expect("there are runs")
}
