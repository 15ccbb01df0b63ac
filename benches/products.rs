//! Products of matrices over a grid of shapes: the generated kernels for tensor cores against the library.
//!
//! ```text
//! cargo bench --bench products -- --device cuda:0
//! ```
//!
//! Every shape is multiplied alone and as `relu(x @ w + b)`, in f32 and bf16, with a weight of rows and of columns, once as the
//! runtime chooses and once in a process that does without the kernels for Hopper's tensor cores (`FUSE_WITHOUT=hopper`). The last
//! lines are geometric means of how much faster the choice is.

use clap::Parser;
use fuse_runtime::prelude::*;
use half::bf16;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// Times products.
#[derive(Parser)]
struct Args {
    /// `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<String>,
    /// Only shapes of at most so many multiplications, in millions
    #[arg(long, default_value_t = u64::MAX)]
    most: u64,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Set in the processes that measure.
const PART: &str = "FUSE_BENCH_PART";

/// Rows, inner extent and columns: powers of two, those of models, odd ones.
const SHAPES: [[usize; 3]; 32] = [
    [512, 512, 512],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [8192, 4096, 4096],
    [4096, 8192, 4096],
    [4096, 4096, 8192],
    [8192, 1024, 8192],
    [1024, 8192, 1024],
    [16384, 512, 2048],
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
    [2048, 1024, 4096],
    [8192, 1600, 6400],
    [8192, 1600, 1600],
    [1024, 5120, 5120],
    [4096, 64, 4096],
    [65536, 64, 64],
    [1000, 1000, 1000],
    [4000, 1000, 3000],
    [4097, 768, 3072],
    [4096, 770, 3070],
    [1237, 2053, 3011],
    [129, 4104, 8200],
];

#[compile]
fn plain<T: Float>(#[dims(M, K)] x: &Tensor<T, 2>, #[dims(K, N)] w: &Tensor<T, 2>) -> Tensor<T, 2> {
    x.matmul(w)
}

#[compile]
fn linear_relu<T: Float>(
    #[dims(M, K)] x: &Tensor<T, 2>,
    #[dims(K, N)] w: &Tensor<T, 2>,
    #[dims(N)] b: &Tensor<T, 1>,
) -> Tensor<T, 2> {
    (x.matmul(w) + b).relu()
}

fn main() -> Result<(), Error> {
    let args = Args::parse();
    let device = args.device.as_deref().map_or_else(Device::best, |name| name.parse().expect("it names a device"));
    let shapes: Vec<[usize; 3]> = SHAPES.into_iter().filter(|shape| size(shape) <= args.most).collect();
    if std::env::var_os(PART).is_some() {
        let mut lines = measure::<f32>("f32", &shapes, device)?;
        lines.extend(measure::<bf16>("bf16", &shapes, device)?);
        println!("{}", json!(lines));
        return Ok(());
    }
    let (chosen, library) = (part(""), part("hopper"));
    let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    println!("{:34} {:>9} {:>9} {:>6}", "", "us", "library", "ratio");
    for (name, us) in &chosen {
        let ratio = library[name] / us;
        println!("{name:34} {us:9.1} {:9.1} {ratio:6.2}", library[name]);
        let kind = name.split(' ').next().unwrap_or_default();
        ratios.entry(kind).or_default().push(ratio);
    }
    for (kind, ratios) in ratios {
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        println!("{kind}: {mean:.2} over {} shapes", ratios.len());
    }
    Ok(())
}

/// Multiplications of a shape, in millions.
fn size([m, k, n]: &[usize; 3]) -> u64 {
    (m * k * n) as u64 / 1_000_000
}

/// Microseconds by name, measured in a process of its own that does without something.
fn part(without: &str) -> BTreeMap<String, f64> {
    let program = std::env::current_exe().expect("the program knows where it is");
    let mut process = Command::new(program);
    process.args(std::env::args_os().skip(1)).env(PART, "1").env("FUSE_WITHOUT", without);
    let said = process.output().expect("the program runs again");
    let lines: Vec<(String, f64)> = match serde_json::from_slice::<Value>(&said.stdout) {
        Ok(Value::Array(lines)) => lines.iter().filter_map(line).collect(),
        _ => panic!("a process has no result: {}", String::from_utf8_lossy(&said.stderr)),
    };
    lines.into_iter().collect()
}

fn line(line: &Value) -> Option<(String, f64)> {
    Some((line[0].as_str()?.to_owned(), line[1].as_f64()?))
}

fn measure<T: Float>(dtype: &str, shapes: &[[usize; 3]], device: Device) -> Result<Vec<Value>, Error> {
    let mut lines = Vec::new();
    for &[m, k, n] in shapes {
        let (x, b) = (Tensor::<T, 2>::randn([m, k], device), Tensor::<T, 1>::randn([n], device));
        let (rows, columns) = (Tensor::<T, 2>::randn([k, n], device), Tensor::<T, 2>::randn([n, k], device));
        for (weight, w) in [("", &rows), ("t", &columns.t())] {
            let shape = format!("{m}x{k}x{n}{weight}");
            let alone = time(device, || drop(plain(&x, w)))?;
            let fused = time(device, || drop(linear_relu(&x, w, &b)))?;
            lines.extend([json!([format!("{dtype} {shape}"), alone]), json!([format!("{dtype}+relu {shape}"), fused])]);
        }
    }
    Ok(lines)
}

/// Microseconds of a call, back to back: the median of five repeats.
fn time(device: Device, call: impl Fn()) -> Result<f64, Error> {
    let run = |calls: u32| -> Result<Duration, Error> {
        device.synchronize()?;
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        device.synchronize()?;
        Ok(start.elapsed() / calls)
    };
    run(3)?;
    let calls = (0.02 / run(3)?.as_secs_f64()).clamp(3.0, 1000.0) as u32;
    let mut repeats = (0..5).map(|_| run(calls)).collect::<Result<Vec<_>, _>>()?;
    repeats.sort();
    Ok(repeats[2].as_secs_f64() * 1e6)
}
