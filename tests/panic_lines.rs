//! Where a compiled function panics: at the line of the op, as its eager form does.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicU32, Ordering};

use fuse_runtime::prelude::*;

/// The line that the last panic was located at.
static LINE: AtomicU32 = AtomicU32::new(0);

#[compile]
fn lookup(x: &Tensor<f32, 1>, index: &Tensor<i64, 1>) -> Tensor<f32, 1> {
    let host = index.size(0) as f32;
    let y = x.exp();
    println!("{:?}", y.dims());

    y.index_select(0, index) * host
}
const OP_LINE: u32 = line!() - 2;

fn line_of(call: impl FnOnce() -> Tensor<f32, 1>) -> u32 {
    LINE.store(0, Ordering::Relaxed);
    let failed = catch_unwind(AssertUnwindSafe(|| drop(call().to_vec())));
    assert!(failed.is_err(), "the index is out of range");
    LINE.load(Ordering::Relaxed)
}

#[test]
fn a_failing_launch_panics_at_the_line_of_the_op() {
    let device = Device::cpu();
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2], device);
    let index = Tensor::from_slice(&[7i64], [1], device);
    set_hook(Box::new(|info| LINE.store(info.location().map_or(0, |at| at.line()), Ordering::Relaxed)));
    let eager = line_of(|| lookup::eager(&x, &index));
    let compiled = line_of(|| lookup(&x, &index));
    drop(take_hook());
    assert_eq!((eager, compiled), (OP_LINE, OP_LINE));
}
