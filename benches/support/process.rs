//! Measurements that need a process of their own: this program again, with an environment of its own.

use super::part::again;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// What a process has said.
pub struct Outcome {
    /// Seconds from its start to the line of its result.
    pub seconds: f64,
    /// Its result.
    pub result: Value,
    /// The kernels it compiled, by name, one for every variant.
    pub compiled: Vec<String>,
}

/// Runs this program with its arguments to do a part, over a cache folder.
pub fn run(part: &str, cache: &Path) -> Outcome {
    let start = Instant::now();
    let mut child = again(part)
        .env("FUSE_LOG", "compile")
        .env("FUSE_CACHE_DIR", cache)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs again");
    let stderr = child.stderr.take().expect("it is piped");
    let told = std::thread::spawn(move || {
        let mut told = String::new();
        let _ = BufReader::new(stderr).read_to_string(&mut told);
        told
    });
    let mut line = String::new();
    let _ = BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line);
    let seconds = start.elapsed().as_secs_f64();
    let status = child.wait().expect("it ends");
    let told = told.join().expect("its words are text");
    let result = serde_json::from_str(&line).unwrap_or_else(|_| panic!("`{part}` has no result ({status})\n{told}"));
    let compiled = told.lines().filter_map(|line| line.strip_prefix("fuse compile: ")?.split(' ').next());
    Outcome { seconds, result, compiled: compiled.map(str::to_owned).collect() }
}
