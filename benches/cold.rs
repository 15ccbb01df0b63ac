//! Rows C1 and C2: how long a process takes from its start to the first result of the transformer block of row T1, with
//! nothing in the cache of kernels and with all of them.
//!
//! ```text
//! cargo bench --bench cold -- --device cuda:0 --json
//! ```
//!
//! Each figure is that of a process of its own. `driver_s` of it is opening the device. `--device recorder` compiles what a
//! GPU would and runs nothing.

// Its weights are made without kernels here.
#[allow(dead_code)]
#[path = "../examples/support/block.rs"]
mod block;
mod support;

use clap::Parser;
use fuse_runtime::prelude::*;
use serde_json::json;
use std::time::Instant;
use support::folder::Folder;
use support::process::{self, Outcome};
use support::{Common, block_of, part, values};

/// Times first calls.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    common: Common,
    /// Processes for the median with a full cache
    #[arg(long, default_value_t = 5)]
    repeats: usize,
}

fn main() -> Result<(), Error> {
    let args = Args::parse();
    if part::part().is_some() {
        return first_call(&args);
    }
    let folder = Folder::new("cold");
    print(&args, "C1_cold_start_block_f32_8x512x768", &process::run("first call", &folder.0));
    let mut warm: Vec<Outcome> = (0..args.repeats.max(1)).map(|_| process::run("first call", &folder.0)).collect();
    warm.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    print(&args, "C2_warm_cache_block_f32_8x512x768", &warm[warm.len() / 2]);
    Ok(())
}

/// The first call of a process.
fn first_call(args: &Args) -> Result<(), Error> {
    let start = Instant::now();
    let device = support::device(args.common.device.as_deref());
    device.synchronize()?;
    let driver_s = start.elapsed().as_secs_f64();
    let block = block_of::<f32>(768, 12, 3072, device);
    let x = values::<f32, 3>([8, 512, 768], device);
    device.synchronize()?;
    let begin = Instant::now();
    let y = block.forward(&x);
    device.synchronize()?;
    let first_call_s = begin.elapsed().as_secs_f64();
    drop(y.narrow(0, 0, 1).narrow(1, 0, 1).to_vec());
    println!("{}", json!({ "driver_s": driver_s, "first_call_s": first_call_s }));
    Ok(())
}

fn print(args: &Args, workload: &str, outcome: &Outcome) {
    let mut line = outcome.result.clone();
    line["workload"] = workload.into();
    line["mode"] = "default".into();
    line["start_to_result_s"] = outcome.seconds.into();
    line["kernels_compiled"] = outcome.compiled.len().into();
    if args.common.json {
        return println!("{line}");
    }
    let seconds = |key: &str| line[key].as_f64().unwrap_or(f64::NAN);
    println!(
        "{workload:<40} {:.3} s, of it {:.3} s for the device and {:.3} s for the first call, {} kernels compiled",
        outcome.seconds,
        seconds("driver_s"),
        seconds("first_call_s"),
        outcome.compiled.len()
    );
}
