//! Errors against f64 of products and attention, for every type, beside cuBLASLt's and PyTorch's on the same inputs.
//!
//! ```text
//! cargo bench --bench errors -- --device cuda:0 --python python3
//! ```
//!
//! Inputs are rounded to the type and then taken as exact. An error of a product is divided by `sum |a||b|` of its element, one of
//! attention by the sum of the values' sizes under its weights; a cell is their mean and the largest. Most of what it tells of halves
//! is the rounding of results, the same for everybody. Of infinities and NaN the places are compared.
//!
//! Products are made by what the runtime chooses, by the generated kernels (in a process without the library), by cuBLASLt (in one
//! without kernels for Hopper's tensor cores), and by `benches/peers/torch_errors.py`; attention by what the runtime chooses, by its
//! kernel for single warps, in steps, and by each of PyTorch's back ends that takes it.

#[path = "../support/folder.rs"]
mod folder;
mod inputs;
mod ours;
mod reference;
#[path = "../support/workers.rs"]
#[expect(dead_code, reason = "nothing is timed here")]
mod workers;

use clap::Parser;
use folder::Folder;
use inputs::{Scores, Values};
use reference::Reference;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use workers::Worker;

/// Compares results with f64.
#[derive(Parser)]
struct Args {
    /// `cpu` or `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<String>,
    /// What runs the script of the peer
    #[arg(long, default_value = "python3")]
    python: String,
    /// The script of the peer [default: the one in benches/peers]
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Only rows whose beginning contains this, as `f32` or `tiny` does
    #[arg(long, default_value = "")]
    only: String,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// How products are made, and of what: of floats at their own accuracy, and with TF32 where a function allows it.
const PATHS: [(&str, &str); 4] = [("f32", "f32"), ("tf32", "f32"), ("bf16", "bf16"), ("f16", "f16")];
const TYPES: [&str; 3] = ["f32", "bf16", "f16"];
/// Rows and columns of a product.
const SIDES: [usize; 2] = [512, 384];
const INNER: [usize; 2] = [256, 4096];
/// Batch, heads, rows and elements of a head.
const HEADS: [usize; 4] = [2, 4, 512, 64];

/// A process that computes with fuse: what it is called and does without.
type Way = (&'static str, &'static str);
const CHOSEN: Way = ("chosen", "");
const OF_PRODUCTS: [Way; 3] = [CHOSEN, ("generated", "cublaslt"), ("cuBLASLt", "hopper")];
const OF_ATTENTION: [Way; 3] = [CHOSEN, ("warps", "wgmma"), ("steps", "attention")];
const BACKENDS: [&str; 4] = ["flash", "efficient", "cudnn", "math"];

/// A row that takes longer is given up.
const MOST: Duration = Duration::from_secs(120);

fn main() {
    let args = Args::parse();
    if workers::part().is_some() {
        let device = workers::device(args.device.as_deref());
        return workers::answer(|question| ours::answer(&question, device));
    }
    let folder = Folder::new("errors");
    products(&args, &folder.0);
    println!();
    attention(&args, &folder.0);
}

/// Prints the table of products.
fn products(args: &Args, folder: &Path) {
    let mut table = Table::start(args, folder, "product", &OF_PRODUCTS, &["torch"]);
    let mut of_bound: Option<f64> = None;
    for ((path, dtype), values) in PATHS.into_iter().flat_map(|path| Values::ALL.map(|values| (path, values))) {
        for inner in INNER {
            let [rows, columns] = SIDES;
            let (name, extents) = (format!("{path}, {}, k {inner}", values.name()), [rows, inner, columns]);
            if name.contains(&args.only) {
                let [a, b] = inputs::operands(values, dtype, extents);
                let reference = Reference::product(&a, &b, extents);
                let question = json!({ "op": "product", "path": path, "extents": extents });
                let made = table.row(&name, question, &[a, b], &reference);
                let generated = made.iter().filter(|(name, _)| path == "f32" && name == "generated");
                let errors = generated.map(|(_, got)| reference.errors(got).most / bound(inner));
                of_bound = of_bound.into_iter().chain(errors).reduce(f64::max);
            }
        }
    }
    if let Some(share) = of_bound {
        println!(
            "\nThe largest error of a generated f32 product is {share:.2} of the bound on Hopper, (k / 16 + 8) 2^-24."
        );
    }
}

/// What an error of a product of floats on Hopper's tensor cores is at most.
fn bound(inner: usize) -> f64 {
    (inner as f64 / 16.0 + 8.0) * (-24f64).exp2()
}

/// Prints the table of attention.
fn attention(args: &Args, folder: &Path) {
    let mut table = Table::start(args, folder, "attention", &OF_ATTENTION, &BACKENDS);
    for (dtype, scores) in TYPES.into_iter().flat_map(|dtype| Scores::ALL.map(|scores| (dtype, scores))) {
        let name = format!("{dtype}, {}", scores.name());
        if name.contains(&args.only) {
            let operands = inputs::heads(scores, dtype, HEADS);
            let question = json!({ "op": "attention", "path": dtype, "extents": HEADS });
            table.row(&name, question, &operands, &Reference::attention(&operands, HEADS));
        }
    }
}

/// What a process has made, by the column of it.
type Made = Vec<(String, Vec<f32>)>;

/// A table that is printed row by row, with a column for each process of ours, and one for each part of what the peer makes.
struct Table<'a> {
    folder: &'a Path,
    columns: Vec<&'static str>,
    processes: Vec<(&'static str, Worker)>,
}

impl<'a> Table<'a> {
    fn start(args: &Args, folder: &'a Path, what: &str, ours: &[Way], theirs: &[&'static str]) -> Self {
        let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/torch_errors.py");
        let mut peer = Command::new(&args.python);
        peer.arg(args.peer.clone().unwrap_or_else(beside));
        let columns: Vec<_> = ours.iter().map(|way| way.0).chain(theirs.iter().copied()).collect();
        println!("| {what} | {} |", columns.join(" | "));
        println!("|---{}|", "|---".repeat(columns.len()));
        let ours = ours.iter().map(|(name, without)| (*name, Worker::start(workers::again("compute", without))));
        Table { folder, columns, processes: ours.chain([("torch", Worker::start(peer))]).collect() }
    }

    /// Asks all processes side by side, and prints how far what they make is from the reference.
    fn row(&mut self, name: &str, mut question: Value, operands: &[Vec<f32>], reference: &Reference) -> Made {
        let folder = self.folder;
        question["inputs"] = json!(inputs::write_all(folder, operands));
        let made: Made = std::thread::scope(|scope| {
            let question = &question;
            let started =
                self.processes.iter_mut().map(|(name, worker)| scope.spawn(|| ask(name, worker, question, folder)));
            let asked: Vec<_> = started.collect();
            asked.into_iter().flat_map(|asked| asked.join().expect("asking does not panic")).collect()
        });
        let cell = |column: &&str| {
            let found = made.iter().find(|(name, _)| name == column);
            found.map_or("-".to_owned(), |(_, got)| reference.errors(got).to_string())
        };
        println!("| {name} | {} |", self.columns.iter().map(cell).collect::<Vec<_>>().join(" | "));
        made
    }
}

/// What one process makes: one result under its name, or several that have names.
fn ask(name: &str, worker: &mut Worker, question: &Value, folder: &Path) -> Made {
    let mut question = question.clone();
    question["results"] = json!(folder.join(name));
    let answer = worker.ask(&question, MOST);
    if let Some(error) = answer["error"].as_str() {
        eprintln!("{name}: {error}");
    }
    let made = answer["made"].as_object().into_iter().flatten();
    let made = made.filter_map(|(part, file)| Some((part, inputs::read(Path::new(file.as_str()?)))));
    made.map(|(part, values)| (if part.is_empty() { name } else { part }.to_owned(), values)).collect()
}
