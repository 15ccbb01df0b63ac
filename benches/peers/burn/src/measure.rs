//! How a row is timed: as `benches/workloads` times fuse.

use burn::tensor::Device;
use serde_json::json;
use std::time::{Duration, Instant};

/// Length of one repeat.
const REPEAT: Duration = Duration::from_millis(250);
const REPEATS: usize = 5;
/// Length of the estimate that decides how many calls a repeat has.
const PROBE: Duration = Duration::from_millis(25);
const SINGLE_CALLS: usize = 50;

/// What one row took, in the units of its line.
pub struct Timing {
    ms: f64,
    latency_ms: f64,
    first_call_s: f64,
}

/// Times `call` on sets of inputs in turn.
///
/// Operations wait in a queue to be fused. It is flushed while the result is still there: the result of a fused kernel
/// that nobody holds would not be written.
pub fn time<I, O>(device: &Device, sets: usize, make: impl Fn() -> I, call: impl Fn(&I) -> O) -> Timing {
    let inputs: Vec<I> = (0..sets).map(|_| make()).collect();
    let sync = || device.sync().expect("the device works");
    let run = |calls: usize| {
        let start = Instant::now();
        for number in 0..calls {
            let result = call(&inputs[number % sets]);
            device.flush().expect("the device takes work");
            drop(result);
        }
        sync();
        start.elapsed().as_secs_f64()
    };
    sync();
    let first_call_s = run(1);
    // Fusion and autotuning have settled when calls have come again some times.
    run(3 * sets);
    let fitting = |time: Duration, one: f64| ((time.as_secs_f64() / one.max(1e-9)) as usize).max(1);
    let probe = fitting(PROBE, run(1)).min(1000);
    let calls = fitting(REPEAT, run(probe) / probe as f64);
    let ms = median((0..REPEATS).map(|_| run(calls) * 1e3 / calls as f64).collect());
    let latency_ms = median((0..SINGLE_CALLS).map(|_| run(1) * 1e3).collect());
    Timing { ms, latency_ms, first_call_s }
}

pub fn report(name: &str, Timing { ms, latency_ms, first_call_s }: &Timing) {
    let line = json!({
        "workload": name, "mode": "default", "ms": ms, "latency_ms": latency_ms, "first_call_s": first_call_s,
    });
    println!("{line}");
}

pub fn report_error(name: &str, reason: &str) {
    println!("{}", json!({ "workload": name, "mode": "default", "error": reason }));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
