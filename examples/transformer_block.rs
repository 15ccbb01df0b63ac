//! A transformer block, eager against compiled: time, accuracy, and what the compiler made of it.
//!
//! ```text
//! cargo run --release --example transformer_block -- --dtype bf16 --device cuda:0
//! ```

#[macro_use]
#[path = "support/block.rs"]
mod block;

use block::{Block, Linear, Norm};
use clap::{Parser, ValueEnum};
use fuse_runtime::cuda::Context;
use fuse_runtime::prelude::*;
use std::time::Instant;

forward!(forward_reduce_overhead, "reduce-overhead");
forward!(forward_max_autotune, "max-autotune");

/// Times a pre-norm transformer block in evaluation, eager and compiled.
#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 8)]
    batch: usize,
    #[arg(long, default_value_t = 512)]
    seq: usize,
    #[arg(long, default_value_t = 768)]
    d_model: usize,
    #[arg(long, default_value_t = 12)]
    heads: usize,
    #[arg(long, value_enum, default_value_t = Dtype::F32)]
    dtype: Dtype,
    /// `cpu` or `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<Device>,
    /// Timed calls
    #[arg(long, default_value_t = 20)]
    iters: usize,
    /// Modes to compile in
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Mode::Default, Mode::ReduceOverhead, Mode::MaxAutotune])]
    mode: Vec<Mode>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dtype {
    F32,
    Bf16,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Default,
    ReduceOverhead,
    MaxAutotune,
}

fn main() -> Result<(), Error> {
    let args = Args::parse();
    if args.heads == 0 || args.d_model % args.heads != 0 {
        let text = format!("--d-model {} is no multiple of --heads {}", args.d_model, args.heads);
        return Err(Error::new(ErrorKind::Shape, text));
    }
    match args.dtype {
        Dtype::F32 => compare::<f32>(&args),
        Dtype::Bf16 => compare::<bf16>(&args),
    }
}

fn compare<T: Float>(args: &Args) -> Result<(), Error> {
    let device = args.device.unwrap_or_else(Device::best);
    let block = Block::<T>::random(args.d_model, args.heads, 4 * args.d_model, device);
    let x = Tensor::<T, 3>::randn([args.batch, args.seq, args.d_model], device);
    print_header::<T>(args, device);

    let exact = block.cast::<f64>(Device::cpu()).forward_eager(&x.to_device(Device::cpu()).cast());
    let eager = Timed::of(args.iters, device, || block.forward_eager(&x))?;
    let eager_error = difference(&eager.result, &exact);
    println!("{:<16} {:>10.3} {:>10} {:>14} {:>12.2e} {:>12.3}", "eager", eager.ms, "", "", eager_error, eager.first_s);
    for mode in &args.mode {
        let compiled = Timed::of(args.iters, device, || block.forward_in(*mode, &x))?;
        let to_eager = difference(&compiled.result, &eager.result.to_device(Device::cpu()).cast());
        let to_exact = difference(&compiled.result, &exact);
        let speed_up = format!("{:.2}x", eager.ms / compiled.ms);
        let (ms, first_s) = (compiled.ms, compiled.first_s);
        println!("{:<16} {ms:>10.3} {speed_up:>10} {to_eager:>14.2e} {to_exact:>12.2e} {first_s:>12.3}", mode.word());
    }
    println!("\n{}", Block::<T>::forward_explain());
    Ok(())
}

fn print_header<T: Float>(args: &Args, device: Device) {
    let Args { batch, seq, d_model, heads, iters, .. } = args;
    let name = device.cuda_ordinal().and_then(|ordinal| Context::get(ordinal).ok());
    let name = name.map_or(String::new(), |context| format!(" ({})", context.facts().name));
    println!("device {device}{name}");
    println!("input {batch} x {seq} x {d_model} of {}, {heads} heads, {iters} calls\n", T::DTYPE);
    println!(
        "{:<16} {:>10} {:>10} {:>14} {:>12} {:>12}",
        "mode", "ms", "speed-up", "diff to eager", "diff to f64", "first call s"
    );
}

/// A result and how long it took.
struct Timed<T: Float> {
    result: Tensor<T, 3>,
    /// Milliseconds per warm call.
    ms: f64,
    /// Seconds of the first call.
    first_s: f64,
}

impl<T: Float> Timed<T> {
    fn of(iters: usize, device: Device, forward: impl Fn() -> Tensor<T, 3>) -> Result<Self, Error> {
        let start = Instant::now();
        let result = forward();
        device.synchronize()?;
        let first_s = start.elapsed().as_secs_f64();
        // The second call still meets memory and caches as the first one left them.
        forward();
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..iters {
            forward();
        }
        device.synchronize()?;
        Ok(Timed { result, ms: start.elapsed().as_secs_f64() * 1e3 / iters.max(1) as f64, first_s })
    }
}

/// The largest difference between two tensors, one of them in f64 on the processor.
fn difference<T: Float>(x: &Tensor<T, 3>, exact: &Tensor<f64, 3>) -> f64 {
    (x.to_device(Device::cpu()).cast::<f64>() - exact).abs().max_all().item()
}

impl<T: Float> Block<T> {
    fn forward_in(&self, mode: Mode, x: &Tensor<T, 3>) -> Tensor<T, 3> {
        match mode {
            Mode::Default => self.forward(x),
            Mode::ReduceOverhead => self.forward_reduce_overhead(x),
            Mode::MaxAutotune => self.forward_max_autotune(x),
        }
    }

    /// The same block in another element type on another device.
    fn cast<U: Float>(&self, device: Device) -> Block<U> {
        Block {
            heads: self.heads,
            norm1: self.norm1.cast(device),
            qkv: self.qkv.cast(device),
            out: self.out.cast(device),
            norm2: self.norm2.cast(device),
            up: self.up.cast(device),
            down: self.down.cast(device),
        }
    }
}

impl<T: Float> Linear<T> {
    fn cast<U: Float>(&self, device: Device) -> Linear<U> {
        Linear { weight: self.weight.to_device(device).cast(), bias: self.bias.to_device(device).cast() }
    }
}

impl<T: Float> Norm<T> {
    fn cast<U: Float>(&self, device: Device) -> Norm<U> {
        Norm { weight: self.weight.to_device(device).cast(), bias: self.bias.to_device(device).cast() }
    }
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::ReduceOverhead => "reduce-overhead",
            Mode::MaxAutotune => "max-autotune",
        }
    }
}
