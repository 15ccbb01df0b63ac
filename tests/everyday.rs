//! Everyday Rust around tensor ops, as a PyTorch user would write it: compiled gives what the original gives.

mod common;

use common::device;
use fuse_runtime::prelude::*;
use std::cell::RefCell;

/// Runs the compiled function and the original: values and what they logged must be the same.
macro_rules! same {
    ($function:ident($($arg:expr),*)) => {{
        let compiled = format!("{:?}", $function($($arg),*));
        let compiled_log = LOG.take();
        let eager = format!("{:?}", $function::eager($($arg),*));
        assert_eq!((compiled, compiled_log), (eager, LOG.take()), stringify!($function));
    }};
}

#[path = "everyday/branches.rs"]
mod branches;
#[path = "everyday/calls.rs"]
mod calls;
#[path = "everyday/containers.rs"]
mod containers;
#[path = "everyday/loops.rs"]
mod loops;
#[path = "everyday/models.rs"]
mod models;
#[path = "everyday/names.rs"]
mod names;
#[path = "everyday/reductions.rs"]
mod reductions;
#[path = "everyday/values.rs"]
mod values;
#[path = "everyday/written_types.rs"]
mod written_types;

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn log(text: impl Into<String>) -> f32 {
    LOG.with_borrow_mut(|log| log.push(text.into()));
    1.0
}

fn row(values: &[f32]) -> Tensor<f32, 1> {
    Tensor::from_slice(values, [values.len()], device())
}

fn matrix<const N: usize>(rows: usize, values: [f32; N]) -> Tensor<f32, 2> {
    Tensor::from_slice(&values, [rows, N / rows], device())
}

type Row = Tensor<f32, 1>;

/// Rows to run functions on.
fn rows() -> [Row; 2] {
    [row(&[1.0, -2.0, 0.5]), row(&[0.1, 0.2, 3.0])]
}
