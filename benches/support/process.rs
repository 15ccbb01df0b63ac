//! Measurements that need a process of their own: this program again, with an environment of its own.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Names what a process is to do; a process without it is the one that reports.
const PART: &str = "FUSE_BENCH_PART";

/// What this process is to do, unless it is the one that reports.
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

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
    let mut child = Command::new(std::env::current_exe().expect("the program knows where it is"))
        .args(std::env::args_os().skip(1))
        .envs([(PART, part), ("FUSE_LOG", "compile")])
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

/// A new, empty folder, removed at the end of its scope.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fuse-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the system has a writable folder for temporary files");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
