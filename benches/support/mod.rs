//! What the benchmarks of whole processes share.

pub mod folder;
pub mod part;
pub mod process;

use crate::block::{Block, Linear, Norm};
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;

/// What all of them are told.
#[derive(clap::Args)]
pub struct Common {
    /// `cuda:N`, or `recorder` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    pub device: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// The device of a name, or the best one. The recorder compiles as a GPU would, so that a machine without one shows what
/// is compiled and how long that takes.
pub fn device(name: Option<&str>) -> Device {
    match name {
        None => Device::best(),
        Some("recorder") => {
            recorder::compile_programs();
            recorder::device()
        }
        Some(name) => name.parse().unwrap_or_else(|error| panic!("{error}")),
    }
}

/// Values as weights have them, which come from the host: making them takes no kernel.
pub fn values<T: Float, const R: usize>(shape: [usize; R], device: Device) -> Tensor<T, R> {
    const PERIOD: usize = 1999;
    let scale = (shape[R - 1] as f64).powf(-0.5);
    let value = |k: usize| T::from_f64(((k * 7919 % PERIOD) as f64 / 999.0 - 1.0) * scale);
    let values: Vec<T> = (0..PERIOD).map(value).collect();
    Tensor::from_vec(values.into_iter().cycle().take(shape.iter().product()).collect(), shape, device)
}

/// A transformer block whose weights come from the host.
pub fn block_of<T: Float>(width: usize, heads: usize, hidden: usize, device: Device) -> Block<T> {
    let linear =
        |inputs, outputs| Linear { weight: values([outputs, inputs], device), bias: values([outputs], device) };
    let norm = || Norm { weight: values([width], device), bias: values([width], device) };
    Block {
        heads,
        norm1: norm(),
        qkv: linear(width, 3 * width),
        out: linear(width, width),
        norm2: norm(),
        up: linear(width, hidden),
        down: linear(hidden, width),
    }
}
