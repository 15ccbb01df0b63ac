//! What the suites share: the device under test, work on all cores, sampled values in every layout, exact comparison, and
//! finite differences.

// Every test binary uses a part of this.
#![allow(dead_code, unused_imports)]

mod compare;
mod differences;
mod layouts;
mod parallel;
mod sample;
mod values;

pub use compare::{first_difference, same_bits, ulp};
pub use differences::check;
pub use layouts::{Lay, lay_out};
pub use parallel::{on_all_cores, report_programs};
pub use sample::{Rng, SPECIAL};
pub use values::{raw_of, value_of};

use fuse_runtime::Device;
use fuse_runtime::rt::recorder;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The device under test: `FUSE_DEVICE`, or the processor. `FUSE_DEVICE=recorder` takes launches and runs nothing, so that no
/// result is right, but what would be compiled can be counted.
pub fn device() -> Device {
    match std::env::var("FUSE_DEVICE") {
        Ok(name) if name == "recorder" => recorder::device(),
        Ok(name) => name.parse().expect("FUSE_DEVICE names a device of this machine"),
        Err(_) => Device::cpu(),
    }
}

/// The turn of a test that looks at what is one for the whole process: what the recorder notes, and the fault that a GPU tells the
/// first thread that reads.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The seeds a suite goes through: `FUSE_SEEDS` of them, or what is quick enough for every run, and of these, with
/// `FUSE_SHARD=3/16`, every sixteenth from the third on.
pub fn seeds(usual: u64) -> Vec<u64> {
    let number = |text: &str| text.parse::<u64>().expect("FUSE_SEEDS is a number, FUSE_SHARD two like 3/16");
    let count = std::env::var("FUSE_SEEDS").map_or(usual, |text| number(&text));
    let shard = std::env::var("FUSE_SHARD").unwrap_or_else(|_| "1/1".to_owned());
    let (first, step) = shard.split_once('/').map_or((1, 1), |(first, step)| (number(first), number(step)));
    (first - 1..count).step_by(step as usize).collect()
}
