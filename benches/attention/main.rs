//! Attention over a grid of shapes, forward and in training, beside PyTorch's kernels for it.
//!
//! ```text
//! cargo bench --bench attention -- --device cuda:0 --python python3
//! ```
//!
//! Every row is measured here and, right after, by `benches/peers/torch_attention.py` with each back end of PyTorch's
//! `scaled_dot_product_attention` that takes it. `forward` is a call without gradients; `training` is the value and the gradients
//! of queries, keys and values for a cotangent; `backward` is the difference of both, with the same back end. Kernels are compiled
//! side by side before. The last lines are geometric means of how much faster fuse is than the best back end.

mod inputs;
mod rows;
#[path = "../support/workers.rs"]
mod workers;

use clap::Parser;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use half::{bf16, f16};
use inputs::Inputs;
use rows::{ROWS, Row, name, word};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use workers::{Worker, geometric_mean};

/// Times attention.
#[derive(Parser)]
struct Args {
    /// `cuda:N`, or `recorder` [default: FUSE_DEVICE, else the first GPU]
    #[arg(long)]
    device: Option<String>,
    /// What runs the script of the peer
    #[arg(long, default_value = "python3")]
    python: String,
    /// The script of the peer [default: the one beside this file]
    #[arg(long)]
    peer: Option<String>,
    /// Only rows whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// A row that takes longer is given up.
const MOST: Duration = Duration::from_secs(30);
/// Processes that compile.
const COMPILERS: usize = 12;

fn main() {
    let args = Args::parse();
    match workers::part().as_deref() {
        None => report(&args),
        Some("measure") => {
            let device = workers::device(args.device.as_deref());
            workers::answer(|number| answer(ROWS[number.as_u64().expect("a number") as usize], device));
        }
        Some(part) => compile(&args, part.parse().expect("a number")),
    }
}

/// The rows that are asked for, with their numbers.
fn rows(args: &Args) -> Vec<(usize, Row)> {
    let wanted = |row: &Row| args.only.as_ref().is_none_or(|part| name(*row).contains(part.as_str()));
    ROWS.into_iter().enumerate().filter(|(_, row)| wanted(row)).collect()
}

/// Asks a process of ours and the peer about every row, and tells what they say.
fn report(args: &Args) {
    let start = Instant::now();
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/torch_attention.py");
    let script = args.peer.as_ref().map_or_else(beside, |peer| peer.into());
    let mut peer_command = Command::new(&args.python);
    peer_command.arg(script);
    let mut peer = Worker::start(peer_command);
    workers::side_by_side((0..COMPILERS).map(|number| workers::again(&number.to_string(), "")));
    eprintln!("compiling took {:.0} s", start.elapsed().as_secs_f64());
    let mut ours = Worker::start(workers::again("measure", ""));
    if !args.json {
        println!(
            "{:34} {:>9} {:>9} {:>6}  {:>9} {:>9} {:>6} {:>6}",
            "us", "forward", "torch", "ratio", "training", "torch", "ratio", "back"
        );
    }
    let mut measured = Vec::new();
    for (number, row) in rows(args) {
        let mine = ours.ask(&json!(number), MOST);
        let (dtype, extents, mask) = row;
        let theirs = peer.ask(&json!({ "dtype": dtype, "extents": extents, "mask": word(mask) }), MOST);
        let line = Line::of(&mine, &theirs);
        print(args, row, &line, &theirs);
        [&mine, &theirs].into_iter().filter(|said| said["error"].is_string()).for_each(|said| eprintln!("{said}"));
        measured.push((dtype, line));
    }
    for dtype in ["bf16", "f16", "f32", ""] {
        summary(args, dtype, &measured);
    }
    eprintln!("{:.0} s", start.elapsed().as_secs_f64());
}

/// Microseconds of a row here and by the peer's best back end.
struct Line {
    forward: [f64; 2],
    training: [f64; 2],
    backward: [f64; 2],
}

impl Line {
    fn of(mine: &Value, theirs: &Value) -> Line {
        let least = |times: Vec<f64>| times.into_iter().fold(f64::NAN, f64::min);
        let all = |key: &str| -> Vec<(String, f64)> {
            let times = theirs[key].as_object().into_iter().flatten();
            times.filter_map(|(backend, us)| Some((backend.clone(), us.as_f64()?))).collect()
        };
        let of = |key: &str| {
            [mine[key].as_f64().unwrap_or(f64::NAN), least(all(key).into_iter().map(|(_, us)| us).collect())]
        };
        let (forward, training) = (of("forward"), of("training"));
        let back =
            all("training").into_iter().filter_map(|(backend, us)| Some(us - theirs["forward"][&backend].as_f64()?));
        Line { forward, training, backward: [training[0] - forward[0], least(back.collect())] }
    }

    fn ratios(&self) -> [f64; 3] {
        [self.forward, self.training, self.backward].map(|[mine, theirs]| theirs / mine)
    }
}

fn print(args: &Args, row: Row, line: &Line, theirs: &Value) {
    let Line { forward, training, backward } = line;
    if args.json {
        let of = |[mine, peer]: [f64; 2]| json!({ "fuse": mine, "torch": peer });
        let (forward, training, backward) = (of(*forward), of(*training), of(*backward));
        let line = json!({ "forward": forward, "training": training, "backward": backward, "torch": theirs });
        return println!("{}", json!({ "row": name(row), "us": line }));
    }
    let [ahead, trained, back] = line.ratios();
    println!(
        "{:34} {:9.1} {:9.1} {ahead:6.2}  {:9.1} {:9.1} {trained:6.2} {back:6.2}",
        name(row),
        forward[0],
        forward[1],
        training[0],
        training[1]
    );
}

/// How much faster than the peer's best we are on the rows of a type, or of all: 1 is as fast.
fn summary(args: &Args, dtype: &str, measured: &[(&str, Line)]) {
    let ratios: Vec<[f64; 3]> =
        measured.iter().filter(|(of, _)| dtype.is_empty() || *of == dtype).map(|(_, line)| line.ratios()).collect();
    let means = [0, 1, 2].map(|k| {
        let known: Vec<f64> = ratios.iter().map(|ratios| ratios[k]).filter(|ratio| *ratio > 0.0).collect();
        (geometric_mean(&known), known.len())
    });
    let dtype = if dtype.is_empty() { "all" } else { dtype };
    if args.json {
        let of = |k: usize| json!({ "ratio": means[k].0, "rows": means[k].1 });
        println!("{}", json!({ "dtype": dtype, "forward": of(0), "training": of(1), "backward": of(2) }));
    } else {
        let [forward, training, backward] = means.map(|(mean, rows)| format!("{mean:.3} over {rows} rows"));
        println!("{dtype}, torch / fuse: forward {forward}, training {training}, backward {backward}");
    }
}

/// Compiles the kernels of every so many-th row.
fn compile(args: &Args, part: usize) {
    recorder::compile_programs();
    for (_, row) in rows(args).into_iter().skip(part).step_by(COMPILERS) {
        let device = recorder::device();
        // What fails here fails again where it is measured.
        let _ = catch(|| match row.0 {
            "bf16" => Inputs::<bf16>::new(row, device).call_both(),
            "f16" => Inputs::<f16>::new(row, device).call_both(),
            _ => Inputs::<f32>::new(row, device).call_both(),
        });
    }
}

fn answer(row: Row, device: Device) -> Value {
    let measured = catch(|| match row.0 {
        "bf16" => Inputs::<bf16>::new(row, device).measure(device),
        "f16" => Inputs::<f16>::new(row, device).measure(device),
        _ => Inputs::<f32>::new(row, device).measure(device),
    });
    measured.flatten().unwrap_or_else(|error| json!({ "error": error.to_string() }))
}
