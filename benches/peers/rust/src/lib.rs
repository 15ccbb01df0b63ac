//! How the peers are timed: as `benches/workloads` times fuse, and told in the same lines.

use std::time::{Duration, Instant};

/// Length of one repeat.
const REPEAT: Duration = Duration::from_millis(250);
const REPEATS: usize = 5;
const SINGLE_CALLS: usize = 50;
/// Where single calls are slow, fewer of them tell as much.
const SINGLE_CALLS_LIMIT: Duration = Duration::from_secs(5);

/// Times one workload on sets of inputs in turn and prints its line, if it is among those asked for with `--only`.
pub fn report<I, O>(name: &str, sets: usize, make: impl Fn() -> I, call: impl Fn(&I) -> O) {
    if !is_wanted(name) {
        return;
    }
    let inputs: Vec<I> = (0..sets).map(|_| make()).collect();
    let run = |calls: usize| {
        let start = Instant::now();
        (0..calls).for_each(|number| drop(call(&inputs[number % sets])));
        start.elapsed().as_secs_f64()
    };
    let first_call_s = run(1);
    run(sets);
    let calls = ((REPEAT.as_secs_f64() / run(sets).max(1e-9) * sets as f64) as usize).max(1);
    let ms = median((0..REPEATS).map(|_| run(calls) * 1e3 / calls as f64).collect());
    let begin = Instant::now();
    let mut latencies = Vec::new();
    while latencies.len() < SINGLE_CALLS && begin.elapsed() < SINGLE_CALLS_LIMIT {
        latencies.push(run(1) * 1e3);
    }
    let line = serde_json::json!({
        "workload": name, "mode": "default", "ms": ms, "latency_ms": median(latencies), "first_call_s": first_call_s,
    });
    println!("{line}");
}

/// Whether a name starts with one of those behind `--only`.
fn is_wanted(name: &str) -> bool {
    let mut args = std::env::args().skip_while(|arg| arg != "--only").skip(1);
    args.next().is_none_or(|only| only.split(',').any(|start| name.starts_with(start)))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
