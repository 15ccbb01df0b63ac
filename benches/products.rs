//! Products of matrices over a grid of shapes: the generated kernels against cuBLASLt.
//!
//! ```text
//! cargo bench --bench products -- --device cuda:0
//! ```
//!
//! Every shape is multiplied alone and as `relu(x @ w + b)`, in bf16 and f32, every other one with a weight of columns: by what the
//! runtime chooses, by the generated kernels (in a process without the library), and by the library (in one without kernels for
//! Hopper's tensor cores), with a kernel of its own for what the library cannot do, which of halves is all that follows. Inputs are
//! rotated. Kernels are compiled side by side before. The last lines are geometric means of speeds.

#[path = "support/workers.rs"]
mod workers;

use clap::Parser;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use half::bf16;
use serde_json::json;
use std::time::{Duration, Instant};
use workers::{Worker, geometric_mean};

/// Times products.
#[derive(Parser)]
struct Args {
    /// `cuda:N`, or `recorder` [default: FUSE_DEVICE, else the first GPU]
    #[arg(long)]
    device: Option<String>,
    /// Only shapes of at most so many multiplications, in millions
    #[arg(long, default_value_t = usize::MAX)]
    most: usize,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Rows, inner extent and columns.
type Shape = [usize; 3];

/// Powers of two, those of models, odd ones.
const SHAPES: [Shape; 64] = [
    [256, 256, 256],
    [512, 512, 512],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [8192, 8192, 8192],
    [8192, 4096, 4096],
    [4096, 8192, 4096],
    [4096, 4096, 8192],
    [8192, 1024, 8192],
    [1024, 8192, 1024],
    [16384, 512, 2048],
    [2048, 512, 2048],
    [512, 4096, 512],
    [256, 4096, 4096],
    [32768, 128, 1024],
    [4096, 64, 4096],
    [65536, 64, 64],
    [4096, 768, 768],
    [4096, 768, 2304],
    [4096, 768, 3072],
    [4096, 3072, 768],
    [2304, 4096, 768],
    [3072, 4096, 768],
    [768, 4096, 3072],
    [128, 768, 768],
    [128, 768, 3072],
    [512, 768, 2304],
    [512, 3072, 768],
    [8192, 1600, 1600],
    [8192, 1600, 4800],
    [8192, 1600, 6400],
    [8192, 6400, 1600],
    [2048, 1024, 4096],
    [2048, 4096, 1024],
    [2048, 4096, 4096],
    [2048, 4096, 11008],
    [2048, 11008, 4096],
    [512, 4096, 14336],
    [1024, 5120, 5120],
    [1024, 5120, 13824],
    [6304, 1024, 4096],
    [12608, 768, 3072],
    [1024, 768, 50264],
    [1000, 1000, 1000],
    [777, 777, 777],
    [1536, 1536, 1536],
    [2000, 2000, 2000],
    [2049, 2049, 2049],
    [5000, 5000, 5000],
    [4000, 1000, 3000],
    [3000, 5000, 1000],
    [4096, 1000, 4096],
    [6000, 600, 6000],
    [4097, 768, 3072],
    [4096, 770, 3070],
    [1237, 2053, 3011],
    [129, 4104, 8200],
    [100, 10000, 10000],
    [333, 4096, 1111],
    [3333, 555, 2222],
    [1920, 1080, 1280],
    [640, 1280, 2560],
    [1024, 768, 50257],
];

/// What multiplies, and what its process does without.
const WAYS: [(&str, &str); 3] = [("chosen", ""), ("template", "cublaslt"), ("library", "hopper")];

const TYPES: [&str; 2] = ["bf16", "f32"];
const KINDS: [&str; 2] = ["plain", "relu"];

/// Inputs to rotate over.
const SETS: usize = 3;
/// Seconds of one repeat.
const REPEAT: f64 = 6e-3;
/// How often every process has its turn: clocks and neighbours change, so the best of its times counts.
const TURNS: usize = 2;
/// A row that takes longer is given up.
const MOST: Duration = Duration::from_secs(20);

#[compile(dynamic = false)]
fn plain<T: Float>(#[dims(M, K)] x: &Tensor<T, 2>, #[dims(K, N)] w: &Tensor<T, 2>) -> Tensor<T, 2> {
    x.matmul(w)
}

#[compile(dynamic = false)]
fn linear_relu<T: Float>(
    #[dims(M, K)] x: &Tensor<T, 2>,
    #[dims(K, N)] w: &Tensor<T, 2>,
    #[dims(N)] b: &Tensor<T, 1>,
) -> Tensor<T, 2> {
    (x.matmul(w) + b).relu()
}

fn main() {
    let args = Args::parse();
    match workers::part().as_deref() {
        None => report(&args),
        Some("measure") => measure(&args),
        Some(part) => compile(&args, part),
    }
}

/// A shape in a type.
#[derive(Clone, Copy)]
struct Row {
    dtype: &'static str,
    shape: Shape,
    /// Whether the weight lies in columns.
    columns: bool,
}

impl Row {
    fn all(args: &Args) -> Vec<Row> {
        let of = |dtype| {
            let shapes = SHAPES.into_iter().enumerate();
            let rows = shapes.map(move |(n, shape)| Row { dtype, shape, columns: n % 2 == 1 });
            rows.filter(|row| row.multiplications() / 1e6 <= args.most as f64)
        };
        TYPES.into_iter().flat_map(of).collect()
    }

    fn multiplications(self) -> f64 {
        self.shape.into_iter().map(|extent| extent as f64).product()
    }

    fn name(self) -> String {
        let [m, k, n] = self.shape;
        format!("{m}x{k}x{n}{}", if self.columns { " columns" } else { "" })
    }
}

/// Asks a process for each way about every row, and tells what they say.
fn report(args: &Args) {
    let start = Instant::now();
    let part = |part: &str| workers::again(part, "cublaslt");
    let parts = TYPES.into_iter().flat_map(|dtype| [0, 1, 2, 3].map(|quarter| format!("{dtype} {quarter}")));
    workers::side_by_side(parts.map(|name| part(&name)));
    let compiled = start.elapsed();
    let mut processes = WAYS.map(|(_, without)| Worker::start(workers::again("measure", without)));
    let mut measured = Vec::new();
    let head = WAYS.map(|(way, _)| format!("{way:>9}")).join(" ");
    if !args.json {
        println!("{:5} {:24} {:6} {head}  us, then TFLOP/s as chosen and speed to the library", "", "", "");
    }
    for (number, row) in Row::all(args).into_iter().enumerate() {
        let turns = [0; TURNS].map(|_| processes.each_mut().map(|process| process.ask(&json!(number), MOST)));
        for (kind, name) in KINDS.into_iter().enumerate() {
            let us =
                [0, 1, 2].map(|way| turns.iter().filter_map(|turn| turn[way][kind].as_f64()).fold(f64::NAN, f64::min));
            print(args, row, name, us);
            measured.push((row.dtype, name, us));
        }
        turns.iter().flatten().filter(|answer| answer["error"].is_string()).for_each(|answer| eprintln!("{answer}"));
    }
    summary(args, &measured);
    eprintln!("{:.0} s, of which compiling {:.0} s", start.elapsed().as_secs_f64(), compiled.as_secs_f64());
}

fn print(args: &Args, row: Row, kind: &str, us: [f64; 3]) {
    let tflops = 2e-6 * row.multiplications() / us[0];
    if args.json {
        let [chosen, template, library] = us;
        let us = json!({ "chosen": chosen, "template": template, "library": library });
        println!("{}", json!({ "shape": row.name(), "dtype": row.dtype, "kind": kind, "us": us, "tflops": tflops }));
    } else {
        let columns = us.map(|us| format!("{us:9.1}")).join(" ");
        println!("{:5} {:24} {kind:6} {columns}  {tflops:5.0} {:5.2}", row.dtype, row.name(), us[2] / us[0]);
    }
}

/// How fast the kernels and the choice are, to the library and to the better of both: 1 is as fast.
fn summary(args: &Args, measured: &[(&str, &str, [f64; 3])]) {
    for kind in KINDS {
        for dtypes in [&TYPES[..1], &TYPES[1..], &TYPES[..]] {
            let rows = measured.iter().filter(|(dtype, of, _)| *of == kind && dtypes.contains(dtype));
            let whole: Vec<[f64; 3]> = rows.map(|row| row.2).filter(|us| us.iter().all(|us| us.is_finite())).collect();
            let mean = |ratio: fn(&[f64; 3]) -> f64| geometric_mean(&whole.iter().map(ratio).collect::<Vec<_>>());
            let template = mean(|[_, template, library]| library / template);
            let chosen = mean(|[chosen, _, library]| library / chosen);
            let best = mean(|[chosen, template, library]| library.min(*template) / chosen);
            let (dtypes, rows) = (dtypes.join("+"), whole.len());
            if args.json {
                let line = json!({ "template": template, "chosen": chosen, "best": best });
                println!("{}", json!({ "kind": kind, "dtype": dtypes, "rows": rows, "speed": line }));
            } else {
                println!(
                    "{dtypes} {kind}, {rows} rows: template {template:.3} of the library, chosen {chosen:.3}, \
                     chosen {best:.3} of the better one"
                );
            }
        }
    }
}

/// Answers with the microseconds of a row.
fn measure(args: &Args) {
    let device = workers::device(args.device.as_deref());
    let (rows, halves, floats) = (Row::all(args), Inputs::<bf16>::new(args, device), Inputs::<f32>::new(args, device));
    workers::answer(|number| {
        let row = rows[number.as_u64().expect("a number") as usize];
        let times = catch(|| if row.dtype == "f32" { floats.time(row) } else { halves.time(row) });
        times.flatten().map_or_else(|error| json!({ "error": error.to_string() }), |us| json!(us))
    });
}

/// Compiles the generated kernels of some rows: of a type, and of a quarter of what a text is specialised by.
fn compile(args: &Args, part: &str) {
    recorder::compile_programs();
    let of = |row: &Row, kind: usize| format!("{} {}", row.dtype, 2 * usize::from(row.columns) + kind);
    let (halves, floats) =
        (Inputs::<bf16>::new(args, recorder::device()), Inputs::<f32>::new(args, recorder::device()));
    for row in Row::all(args) {
        for kind in (0..KINDS.len()).filter(|kind| of(&row, *kind) == part) {
            // What fails here fails again where it is measured.
            let _ = catch(|| match row.dtype {
                "f32" => floats.sets(row)[0].call(kind),
                _ => halves.sets(row)[0].call(kind),
            });
        }
    }
}

/// Memory that all inputs of a type are taken from.
struct Inputs<T: Float> {
    pool: Tensor<T, 1>,
    device: Device,
}

/// The inputs of one call.
struct Set<T: Float> {
    x: Tensor<T, 2>,
    w: Tensor<T, 2>,
    b: Tensor<T, 1>,
}

impl<T: Float> Set<T> {
    fn call(&self, kind: usize) {
        match kind {
            0 => drop(plain(&self.x, &self.w)),
            _ => drop(linear_relu(&self.x, &self.w, &self.b)),
        }
    }
}

impl<T: Float> Inputs<T> {
    fn new(args: &Args, device: Device) -> Self {
        let most = Row::all(args).iter().map(|row| SETS * Self::elements(row.shape).iter().sum::<usize>()).max();
        Inputs { pool: Tensor::randn([most.unwrap_or(0)], device), device }
    }

    /// Elements of the operands, rounded up so that each begins where memory of its own would.
    fn elements([m, k, n]: Shape) -> [usize; 3] {
        [m * k, k * n, n].map(|count| count.next_multiple_of(256))
    }

    fn sets(&self, row: Row) -> Vec<Set<T>> {
        let [m, k, n] = row.shape;
        let mut used = 0;
        let mut take = |count: usize, room: usize| {
            used += room;
            self.pool.narrow(0, used - room, count)
        };
        let [of_x, of_w, of_b] = Self::elements(row.shape);
        let mut set = || {
            let (x, w, b) = (take(m * k, of_x).reshape([m, k]), take(k * n, of_w), take(n, of_b));
            let w = if row.columns { w.reshape([n, k]).t() } else { w.reshape([k, n]) };
            Set { x, w, b }
        };
        (0..SETS).map(|_| set()).collect()
    }

    /// Microseconds of either kind.
    fn time(&self, row: Row) -> Result<[f64; 2], Error> {
        let sets = self.sets(row);
        let time = |kind| workers::time(self.device, REPEAT, |number| sets[number % SETS].call(kind));
        Ok([time(0)?, time(1)?])
    }
}
