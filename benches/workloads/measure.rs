//! How a workload is timed.

use fuse_runtime::prelude::*;
use std::time::{Duration, Instant};

/// What one workload took in one mode.
pub struct Timing {
    /// Milliseconds per call, back to back.
    pub ms: f64,
    /// Milliseconds of a single call that is waited for.
    pub latency_ms: f64,
    /// Seconds of the first call, which may load or compile kernels.
    pub first_call_s: f64,
    /// The most device memory in use during the calls beyond that of their inputs, in megabytes; nothing on a processor.
    pub peak_mb: Option<f64>,
}

/// Length of one repeat.
const REPEAT: Duration = Duration::from_millis(250);
const REPEATS: usize = 5;
/// Length of the estimate that decides how many calls a repeat has.
const PROBE: Duration = Duration::from_millis(25);
const SINGLE_CALLS: usize = 50;
/// Where single calls are slow, fewer of them tell as much.
const SINGLE_CALLS_LIMIT: Duration = Duration::from_secs(5);

/// Times `call`, which is told its number to choose its inputs by.
pub fn measure(device: Device, sets: usize, call: &dyn Fn(usize)) -> Result<Timing, Error> {
    device.synchronize()?;
    device.reset_peak_memory_stats()?;
    let inputs = device.memory_allocated()?;
    let first_call_s = run(device, 1, call)?.as_secs_f64();
    run(device, sets, call)?;
    // A single call tells how many to take for a good estimate: few where calls are slow.
    let single = run(device, 1, call)?.as_secs_f64();
    let probe = ((PROBE.as_secs_f64() / single.max(1e-9)) as usize).clamp(1, 1000);
    let one = run(device, probe, call)?.as_secs_f64() / probe as f64;
    let calls = ((REPEAT.as_secs_f64() / one.max(1e-9)) as usize).clamp(1, 1_000_000);
    let mut repeats = Vec::new();
    for _ in 0..REPEATS {
        repeats.push(run(device, calls, call)?.as_secs_f64() * 1e3 / calls as f64);
    }
    let latency_ms = median(single_calls(device, call)?);
    let peak = device.max_memory_allocated()?.saturating_sub(inputs);
    let peak_mb = (!device.is_cpu()).then_some(peak as f64 / 1e6);
    Ok(Timing { ms: median(repeats), latency_ms, first_call_s, peak_mb })
}

/// The time from an idle device to the end of the last of `calls` calls.
fn run(device: Device, calls: usize, call: &dyn Fn(usize)) -> Result<Duration, Error> {
    let start = Instant::now();
    for number in 0..calls {
        call(number);
    }
    device.synchronize()?;
    Ok(start.elapsed())
}

fn single_calls(device: Device, call: &dyn Fn(usize)) -> Result<Vec<f64>, Error> {
    let begin = Instant::now();
    let mut latencies = Vec::new();
    while latencies.len() < SINGLE_CALLS && begin.elapsed() < SINGLE_CALLS_LIMIT {
        let number = latencies.len();
        let start = Instant::now();
        call(number);
        device.synchronize()?;
        latencies.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(latencies)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
