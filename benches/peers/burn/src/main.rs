//! Burn on the workloads of a GPU, told in the lines of `benches/workloads`.
//!
//! ```text
//! cargo run --release -- --only P,M1 --limit 60
//! ```
//!
//! Every row has a process of its own, which is ended after `--limit` seconds: tuning a product can take longer than one
//! would wait, and must not keep the rows behind it. Kernels go through NVRTC, whose headers are found by `CUDA_PATH`.

mod measure;
mod rows;

use burn::tensor::Device;
use rows::{ROWS, Row};
use std::env;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

fn main() {
    if let Some(name) = value_of("--row") {
        let row = ROWS.iter().find(|row| row.name == name).expect("a row of this name");
        return measure::report(row.name, &(row.time)(&Device::cuda(0)));
    }
    let only = value_of("--only").unwrap_or_default();
    let limit = value_of("--limit").map_or(150, |seconds| seconds.parse().expect("--limit is a number of seconds"));
    let wanted = |row: &&Row| only.split(',').any(|start| row.name.starts_with(start));
    ROWS.iter().filter(wanted).for_each(|row| in_own_process(row, Duration::from_secs(limit)));
}

/// What stands behind a flag.
fn value_of(flag: &str) -> Option<String> {
    env::args().skip_while(|arg| arg != flag).nth(1)
}

fn in_own_process(row: &Row, limit: Duration) {
    let this = env::current_exe().expect("the path of a running program");
    let mut child = Command::new(this).args(["--row", row.name]).spawn().expect("a program can start itself");
    if let Err(reason) = within(&mut child, limit) {
        measure::report_error(row.name, &reason);
    }
}

/// Waits for a process, and ends it when its time is over.
fn within(child: &mut Child, limit: Duration) -> Result<(), String> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        match child.try_wait().expect("a process can be waited for") {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    child.kill().and_then(|()| child.wait()).expect("a process can be ended");
    Err(format!("not within {} s", limit.as_secs()))
}
