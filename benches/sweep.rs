//! Row D1: the transformer block of row T2 at a hundred sequence lengths between 64 and 1024, one call each.
//!
//! ```text
//! cargo bench --bench sweep -- --device cuda:0 --json
//! ```
//!
//! The process is warm: it has called the block at another length. Its cache of kernels is empty before. `again_s` is the
//! fastest of several sweeps of another process, when everything is compiled; with `FUSE_DYNAMIC=false` each length then has
//! kernels of its own, which tells what it costs that lengths share them. `--device recorder` compiles what a GPU would and
//! runs nothing.

// Its weights are made without kernels here.
#[allow(dead_code)]
#[path = "../examples/support/block.rs"]
mod block;
mod support;

use clap::Parser;
use fuse_runtime::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use support::folder::Folder;
use support::{Common, block_of, part, process, values};

/// Times calls at many lengths.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    common: Common,
}

const CALLS: usize = 100;

/// Sweeps of the other process.
const AGAIN: usize = 5;

fn main() -> Result<(), Error> {
    let args = Args::parse();
    match part::part().as_deref() {
        Some("sweep") => return sweep(&args, 0),
        Some(_) => return sweep(&args, AGAIN),
        None => {}
    }
    let folder = Folder::new("sweep");
    let outcome = process::run("sweep", &folder.0);
    let mut variants: BTreeMap<&str, usize> = BTreeMap::new();
    outcome.compiled.iter().for_each(|name| *variants.entry(name).or_default() += 1);
    let mut line = outcome.result.clone();
    line["start_to_end_s"] = outcome.seconds.into();
    line["again_s"] = process::run("sweeps", &folder.0).result["again_s"].clone();
    line["kernels_compiled"] = outcome.compiled.len().into();
    line["most_variants_of_a_kernel"] = variants.values().max().copied().unwrap_or(0).into();
    print(&args, &line);
    Ok(())
}

/// Different lengths in no order, of every divisibility.
fn lengths() -> impl Iterator<Item = usize> {
    (0..CALLS).map(|k| 64 + k * 389 % 961)
}

/// The calls of a warm process, and so many sweeps after them.
fn sweep(args: &Args, again: usize) -> Result<(), Error> {
    let device = support::device(args.common.device.as_deref());
    let block = block_of::<bf16>(768, 12, 3072, device);
    let call = |seq: usize| -> Result<f64, Error> {
        let x = values::<bf16, 3>([8, seq, 768], device);
        device.synchronize()?;
        let start = Instant::now();
        drop(block.forward(&x));
        device.synchronize()?;
        Ok(start.elapsed().as_secs_f64())
    };
    let first_call_s = call(512)?;
    let mut calls = lengths().map(call).collect::<Result<Vec<f64>, Error>>()?;
    calls.sort_by(f64::total_cmp);
    let total_s: f64 = calls.iter().sum();
    let sweeps = (0..again).map(|_| lengths().map(call).sum()).collect::<Result<Vec<f64>, Error>>()?;
    println!(
        "{}",
        json!({
            "workload": "D1_sweep_block_bf16_8x64..1024x768", "mode": "default", "calls": CALLS, "first_call_s": first_call_s,
            "total_s": total_s, "slowest_call_ms": calls[CALLS - 1] * 1e3, "median_call_ms": calls[CALLS / 2] * 1e3,
            "again_s": sweeps.into_iter().min_by(f64::total_cmp),
        })
    );
    Ok(())
}

fn print(args: &Args, line: &Value) {
    if args.common.json {
        return println!("{line}");
    }
    let number = |key: &str| line[key].as_f64().unwrap_or(f64::NAN);
    println!(
        "{} calls in {:.3} s, again in {:.3} s, the slowest {:.1} ms, the median {:.3} ms; {} kernels compiled, at most {} of one",
        line["calls"],
        number("total_s"),
        number("again_s"),
        number("slowest_call_ms"),
        number("median_call_ms"),
        line["kernels_compiled"],
        line["most_variants_of_a_kernel"],
    );
}
