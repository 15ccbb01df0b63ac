//! The fixed set of workloads by which speed is judged, one line for each workload and mode.
//!
//! ```text
//! cargo bench --bench workloads -- --only P,M --modes eager,default --device cuda:0 --json
//! ```
//!
//! Inputs are rotated so that no timed read is served from a cache. After a warm-up, five repeats of about 250 ms of calls
//! back to back give `ms`, their median; then fifty single calls, each waited for, give `latency_ms`. The ceilings of the
//! memory are measured in the same run. `benches/compare.py` puts the lines beside those of `benches/peers/torch_peer.py`.

#[path = "../../examples/support/block.rs"]
mod block;
mod functions;
mod measure;
#[path = "../support/mode.rs"]
mod mode;
mod rows;

use clap::Parser;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use measure::{Timing, measure};
use mode::Mode;
use rows::{Call, Row, Work};
use serde_json::{Value, json};
use std::cell::RefCell;

/// Times the workloads of a device.
#[derive(Parser)]
struct Args {
    /// Beginnings of the names of workloads; all if left out
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Ways to run them
    #[arg(long, value_enum, value_delimiter = ',', overrides_with = "modes", default_values_t = [Mode::Eager, Mode::Default])]
    modes: Vec<Mode>,
    /// `cpu` or `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<Device>,
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

fn main() -> Result<(), Error> {
    let args = Args::parse();
    let device = args.device.unwrap_or_else(Device::best);
    if args.part {
        args.modes.iter().for_each(|&mode| rows_in(mode, &args, device));
        return Ok(());
    }
    for (name, bytes, call) in ceilings(device) {
        let timing = measure(device, 1, &call)?;
        print(&args, json!({ "workload": name, "ms": round(timing.ms), "gbps": round(bytes / timing.ms / 1e6) }));
    }
    // The mode of all functions is set from outside, and a first call is one.
    args.modes.iter().for_each(|mode| mode.in_own_process());
    Ok(())
}

/// Times all rows in one mode.
fn rows_in(mode: Mode, args: &Args, device: Device) {
    let wanted = |row: &Row| args.only.is_empty() || args.only.iter().any(|start| row.name.starts_with(start.as_str()));
    rows::rows(device).iter().filter(|row| wanted(row)).for_each(|row| print(args, timed(row, mode, device)));
}

/// The line of one workload in one mode.
fn timed(row: &Row, mode: Mode, device: Device) -> Value {
    let mode_word = mode.word();
    let timing = catch(|| {
        let call = (row.prepare)(device, row.sets);
        measure(device, row.sets, &call)
    });
    match timing.flatten() {
        Ok(timing) => line(row, mode_word, &timing),
        Err(error) => json!({ "workload": row.name, "mode": mode_word, "error": error.to_string() }),
    }
}

fn line(row: &Row, mode: &str, timing: &Timing) -> Value {
    let mut line = json!({
        "workload": row.name,
        "mode": mode,
        "ms": round(timing.ms),
        "latency_ms": round(timing.latency_ms),
        "first_call_s": round(timing.first_call_s),
        "peak_mb": timing.peak_mb.map(round),
    });
    match row.work {
        Work::Bytes(bytes) => line["gbps"] = round(bytes as f64 / timing.ms / 1e6).into(),
        Work::Flops(flops) => line["tflops"] = round(flops as f64 / timing.ms / 1e9).into(),
        Work::Small => {}
    }
    line
}

/// What memory can do at best, by name, with the bytes moved.
fn ceilings(device: Device) -> Vec<(&'static str, f64, Call)> {
    let elements: usize = if device.is_cpu() { 1 << 26 } else { 1 << 28 };
    let bytes = 4.0 * elements as f64;
    let x = Tensor::<f32, 1>::ones([elements], device);
    let y = Tensor::<f32, 1>::ones([elements], device);
    let (source, read) = (x.clone(), x.clone());
    let target = RefCell::new(Tensor::<f32, 1>::zeros([elements], device));
    vec![
        ("copy_ceiling", 2.0 * bytes, Box::new(move |_| target.borrow_mut().copy_(&source))),
        ("read_ceiling", bytes, Box::new(move |_| drop(functions::read_only(&read)))),
        ("two_reads_one_write_ceiling", 3.0 * bytes, Box::new(move |_| drop(functions::add(&x, &y)))),
    ]
}

fn print(args: &Args, line: Value) {
    if args.json {
        return println!("{line}");
    }
    let text = |key: &str| line[key].as_str().unwrap_or("").to_owned();
    let number = |key: &str| line[key].as_f64().map_or(String::new(), |value| format!("{value:.4}"));
    let speed = match (&line["gbps"], &line["tflops"]) {
        (Value::Number(gbps), _) => format!("{gbps} GB/s"),
        (_, Value::Number(tflops)) => format!("{tflops} TFLOP/s"),
        _ => String::new(),
    };
    let (name, mode) = (text("workload"), text("mode"));
    println!(
        "{name:<50} {mode:<15} {:>12} ms {:>12} ms alone {speed:>18} {}",
        number("ms"),
        number("latency_ms"),
        text("error")
    );
}

/// To five digits after the point.
fn round(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}
