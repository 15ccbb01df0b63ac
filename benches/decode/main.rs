//! Writing text with a small model: tokens per second at batch 1.
//!
//! ```text
//! cargo bench --bench decode -- --device cuda:0 --json
//! ```
//!
//! Every token follows from all before it, whose keys and values lie in a cache of fixed size. `tokens_per_s` leaves the tokens on
//! the device; for `read_tokens_per_s` the host reads each one before it asks for the next, as a program that shows them
//! does. The model has 6 layers, 768 wide, and 32000 tokens, in bf16, so 134 MB of weights are read for every token.
//! `benches/peers/torch_decode.py` does the same with PyTorch.

#[path = "../support/mode.rs"]
mod mode;
mod model;

use clap::Parser;
use fuse_runtime::prelude::*;
use mode::Mode;
use model::{CONTEXT, Model, Text};
use serde_json::json;
use std::time::Instant;

/// Times the writing of text.
#[derive(Parser)]
struct Args {
    /// Ways to run it
    #[arg(long, value_enum, value_delimiter = ',', overrides_with = "modes", default_values_t = [Mode::Eager, Mode::Default, Mode::ReduceOverhead])]
    modes: Vec<Mode>,
    /// `cpu` or `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<Device>,
    /// How many tokens a text has
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=CONTEXT as i64))]
    tokens: u32,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// A process that was started for one mode
    #[arg(long, hide = true)]
    part: bool,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

const REPEATS: usize = 5;

fn main() -> Result<(), Error> {
    let args = Args::parse();
    if args.part {
        return in_mode(&args);
    }
    // The mode of all functions is set from outside.
    args.modes.iter().for_each(|mode| mode.in_own_process());
    Ok(())
}

fn in_mode(args: &Args) -> Result<(), Error> {
    let mode = args.modes[0].word();
    let device = args.device.unwrap_or_else(Device::best);
    device.manual_seed(0);
    let model = Model::random(device);
    let start = Instant::now();
    let first_tokens = write(&model, args.tokens.min(8), device, true)?.1;
    let first_call_s = start.elapsed().as_secs_f64();
    let per_second = |read: bool| -> Result<f64, Error> {
        let mut times = Vec::new();
        for _ in 0..REPEATS {
            times.push(write(&model, args.tokens, device, read)?.0);
        }
        times.sort_by(f64::total_cmp);
        Ok(f64::from(args.tokens) / times[REPEATS / 2])
    };
    let line = json!({
        "workload": "decode_bf16_6x768", "mode": mode, "tokens_per_s": per_second(false)?.round(),
        "read_tokens_per_s": per_second(true)?.round(), "first_tokens_s": first_call_s, "first_tokens": first_tokens,
    });
    match args.json {
        true => println!("{line}"),
        false => println!(
            "{:<16} {:>8} tokens a second, {:>8} where each is read",
            mode, line["tokens_per_s"], line["read_tokens_per_s"]
        ),
    }
    Ok(())
}

/// Writes a text and gives the seconds that took, and its tokens if they are read.
fn write(model: &Model, tokens: u32, device: Device, read: bool) -> Result<(f64, Vec<i64>), Error> {
    let mut text = Text::new(device);
    device.synchronize()?;
    let start = Instant::now();
    let mut written = Vec::new();
    for _ in 0..tokens {
        model.write(&mut text);
        if read {
            written.push(text.last());
        }
    }
    device.synchronize()?;
    Ok((start.elapsed().as_secs_f64(), written))
}
