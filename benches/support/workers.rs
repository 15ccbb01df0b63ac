//! Processes that measure, each in an environment of its own, and are asked row by row: what is compared is measured one right after
//! the other, and every row is there as soon as it is measured.

mod part;

pub use part::part;

use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// This program once more, with its arguments, to do a part without something.
pub fn again(part: &str, without: &str) -> Command {
    let mut command = part::again(part);
    command.env("FUSE_WITHOUT", without);
    command
}

/// A process that answers.
pub struct Worker {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<Value>,
}

impl Worker {
    /// Starts a process that answers every line with one of JSON; what else it writes is passed over.
    pub fn start(mut command: Command) -> Worker {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{:?}: {error}", command.get_program()));
        let (questions, said) = (child.stdin.take().expect("it is piped"), child.stdout.take().expect("it is piped"));
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(said).lines().map_while(Result::ok);
            let mut told = lines.filter_map(|line| serde_json::from_str(&line).ok()).map(|answer| tell.send(answer));
            told.all(|told| told.is_ok())
        });
        Worker { child, questions, answers }
    }

    /// The answer, or an object that says what went wrong: a process that takes too long is not waited for, and gives none any more.
    pub fn ask(&mut self, question: &Value, most: Duration) -> Value {
        if writeln!(self.questions, "{question}").is_err() {
            return json!({ "error": "the process has ended" });
        }
        self.answers.recv_timeout(most).unwrap_or_else(|error| {
            let _ = self.child.kill();
            json!({ "error": error.to_string() })
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers what this process is asked, until nobody asks any more.
pub fn answer(answer: impl Fn(Value) -> Value) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        println!("{}", answer(serde_json::from_str(&line).expect("questions are JSON")));
    }
}

/// Runs processes side by side to their end.
pub fn side_by_side(commands: impl Iterator<Item = Command>) {
    let started: Vec<Child> = commands.filter_map(|mut command| command.stdout(Stdio::null()).spawn().ok()).collect();
    for mut child in started {
        let _ = child.wait();
    }
}

/// The mean of ratios.
pub fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// The device of a name, or the best one. The recorder runs nothing, and shows on machines without a GPU that a benchmark is whole.
pub fn device(name: Option<&str>) -> Device {
    match name {
        None => Device::best(),
        Some("recorder") => recorder::device(),
        Some(name) => name.parse().unwrap_or_else(|error| panic!("{error}")),
    }
}

/// Repeats of a measurement.
const REPEATS: usize = 3;
/// Calls before it: the first is run step by step, the second is taken down.
const BEFORE: usize = 3;

/// Microseconds of a call, which is told its number, back to back: the median of repeats of so many seconds.
pub fn time(device: Device, seconds: f64, call: impl Fn(usize)) -> Result<f64, Error> {
    let run = |calls: usize| -> Result<f64, Error> {
        device.synchronize()?;
        let start = Instant::now();
        (0..calls).for_each(&call);
        device.synchronize()?;
        Ok(start.elapsed().as_secs_f64() / calls as f64)
    };
    run(BEFORE)?;
    let calls = ((seconds / run(2)?) as usize).clamp(3, 1000);
    let mut repeats = (0..REPEATS).map(|_| run(calls)).collect::<Result<Vec<_>, _>>()?;
    repeats.sort_by(f64::total_cmp);
    Ok(repeats[REPEATS / 2] * 1e6)
}
