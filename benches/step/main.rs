//! A whole step of training as one compiled function, and the same in pieces: launches, time and memory.
//!
//! ```text
//! cargo bench --bench step -- --device cuda:0
//! ```
//!
//! The model is the transformer block of T5 with AdamW on all of its parameters. `whole` is forward, backward and the update in one
//! function; `pieces` is the compiled gradient of the loss and `AdamW::step`; `tape` is the same op by op. Launches are those of a
//! warm call on a device that runs nothing and takes them as a GPU would. Memory is the most that is in use beside parameters, states
//! and inputs. The loss after a few steps tells that all of them learn the same.

mod functions;
#[path = "../support/mode.rs"]
#[expect(dead_code, reason = "parts are workers here")]
mod mode;
#[path = "../support/workers.rs"]
#[expect(dead_code, reason = "nothing is compiled before, and no row stands for others")]
mod workers;

use clap::Parser;
use functions::Model;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use mode::Mode;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::time::Duration;
use workers::Worker;

/// Times steps of training.
#[derive(Parser)]
struct Args {
    /// `cpu` or `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<String>,
    /// Sequences in a batch
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// Length of a sequence
    #[arg(long, default_value_t = 512)]
    seq: usize,
    /// Width of the model, in heads of 64 elements
    #[arg(long, default_value_t = 768)]
    width: usize,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// How a step is made, and the mode of compiled functions.
const WAYS: [(&str, Mode); 5] = [
    ("whole", Mode::Default),
    ("whole", Mode::ReduceOverhead),
    ("pieces", Mode::Default),
    ("pieces", Mode::ReduceOverhead),
    ("tape", Mode::Eager),
];

/// Seconds of one repeat.
const REPEAT: f64 = 0.1;
/// Steps until the loss is told; the first are made in other ways than later ones.
const STEPS: usize = 5;
/// A way that takes longer is given up.
const MOST: Duration = Duration::from_secs(300);

fn main() {
    let args = Args::parse();
    if let Some(way) = workers::part() {
        return workers::answer(|_| {
            let measured = catch(|| measure(&args, &way)).flatten();
            measured.unwrap_or_else(|error| json!({ "error": error.to_string() }))
        });
    }
    println!("| step | mode | launches | us | memory, MB | loss after {STEPS} |\n|---|---|---|---|---|---|");
    for (way, mode) in WAYS {
        let mut command = workers::again(way, "");
        command.envs([mode.variable()]);
        let mode = mode.word();
        let line = Worker::start(command).ask(&json!({}), MOST);
        match line["error"].as_str() {
            Some(error) => println!("| {way} | {mode} | {error} |"),
            None => {
                let number = |key: &str| line[key].as_f64().map_or("-".to_owned(), |value| format!("{value:.0}"));
                let (launches, us, memory) = (number("launches"), number("us"), number("mb"));
                println!("| {way} | {mode} | {launches} | {us} | {memory} | {} |", line["loss"]);
            }
        }
    }
}

/// The line of a way.
fn measure(args: &Args, way: &str) -> Result<Value, Error> {
    let device = workers::device(args.device.as_deref());
    let launches = launches(args, way);
    let step = Step::new(args, way, device);
    // The first step makes the states of the optimiser.
    drop(step.make());
    device.synchronize()?;
    device.reset_peak_memory_stats()?;
    let before = device.memory_allocated()?;
    let losses: Vec<_> = (1..STEPS).map(|_| step.make()).collect();
    let loss = losses.last().expect("there are several steps").item().to_f64();
    drop(losses);
    let us = workers::time(device, REPEAT, |_| drop(step.make()))?;
    let most = device.max_memory_allocated()?.saturating_sub(before);
    let mb = (!device.is_cpu()).then_some(most as f64 / 1e6);
    Ok(json!({ "launches": launches, "us": us, "mb": mb, "loss": loss }))
}

/// How many kernels a warm step launches, those inside of graphs, too.
fn launches(args: &Args, way: &str) -> usize {
    let step = Step::new(args, way, recorder::device());
    (0..STEPS).for_each(|_| drop(step.make()));
    recorder::launches();
    drop(step.make());
    let count = |launch: &recorder::Launch| match launch.kernel.as_str() {
        "graph" => launch.inside.iter().filter(|launch| !matches!(launch.kernel.as_str(), "on" | "wait")).count(),
        "on" | "wait" => 0,
        _ => 1,
    };
    recorder::launches().iter().map(count).sum()
}

/// A model with what it learns from, and how it makes a step.
struct Step<'a> {
    way: &'a str,
    heads: usize,
    model: RefCell<Model>,
    x: Tensor<bf16, 3>,
    cotangent: Tensor<bf16, 3>,
}

impl<'a> Step<'a> {
    fn new(args: &Args, way: &'a str, device: Device) -> Self {
        let data = || Tensor::randn([args.batch, args.seq, args.width], device);
        let model = RefCell::new(Model::random(args.width, 4 * args.width, device));
        Step { way, heads: args.width / 64, model, x: data(), cotangent: data() }
    }

    fn make(&self) -> Tensor<bf16, 0> {
        let (model, Step { heads, x, cotangent, .. }) = (&mut *self.model.borrow_mut(), self);
        match self.way {
            "whole" => model.whole(*heads, x, cotangent),
            _ => model.pieces(*heads, x, cotangent),
        }
    }
}
