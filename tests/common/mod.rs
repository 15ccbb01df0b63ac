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

/// The device under test: `FUSE_DEVICE`, or the processor. `FUSE_DEVICE=recorder` takes launches and runs nothing, so that no
/// result is right, but what would be compiled can be counted.
pub fn device() -> Device {
    match std::env::var("FUSE_DEVICE") {
        Ok(name) if name == "recorder" => recorder::device(),
        Ok(name) => name.parse().expect("FUSE_DEVICE names a device of this machine"),
        Err(_) => Device::cpu(),
    }
}

/// How many seeds a suite goes through: `FUSE_SEEDS`, or what is quick enough for every run.
pub fn seeds(usual: u64) -> u64 {
    std::env::var("FUSE_SEEDS").map_or(usual, |text| text.parse().expect("FUSE_SEEDS is a number"))
}
