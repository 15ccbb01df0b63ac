//! How functions are run, for all functions of a process.

use clap::ValueEnum;
use std::process::Command;

/// Op by op, or compiled and called in one of the modes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    Eager,
    Default,
    ReduceOverhead,
    MaxAutotune,
}

impl Mode {
    /// What the option is called.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Eager => "eager",
            Mode::Default => "default",
            Mode::ReduceOverhead => "reduce-overhead",
            Mode::MaxAutotune => "max-autotune",
        }
    }

    /// The variable that sets it from outside.
    pub fn variable(self) -> (&'static str, &'static str) {
        match self {
            Mode::Eager => ("FUSE_BACKEND", self.word()),
            compiled => ("FUSE_MODE", compiled.word()),
        }
    }

    /// Runs this program again, with its arguments and `--part`, in this mode alone.
    pub fn in_own_process(self) {
        let this = std::env::current_exe().expect("the path of a running program");
        let mut part = Command::new(this);
        part.args(std::env::args().skip(1)).args(["--part", "--modes", self.word()]).envs([self.variable()]);
        let status = part.status().expect("a program can start itself");
        if !status.success() {
            eprintln!("{}: {status}", self.word());
        }
    }
}
