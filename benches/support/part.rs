//! This program again, to do a part of the work in a process of its own.

use std::process::Command;

/// Names what a process is to do; a process without it is the one that reports.
const PART: &str = "FUSE_BENCH_PART";

/// What this process is to do, unless it is the one that reports.
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// This program once more, with its arguments, to do a part.
pub fn again(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the program knows where it is"));
    command.args(std::env::args_os().skip(1)).env(PART, part);
    command
}
