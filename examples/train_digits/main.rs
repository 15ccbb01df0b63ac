//! Reading handwritten digits: training from the first weight to a test accuracy above 97%.
//!
//! ```text
//! cargo run --release --example train_digits
//! cargo run --release --example train_digits -- --model transformer
//! ```

mod data;
mod model;
mod plot;

use clap::{Parser, ValueEnum};
use data::Digits;
use fuse_runtime::optim::{AdamW, Schedule, numel};
use fuse_runtime::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
use model::{Mlp, Network, Transformer};
use plot::Curve;
use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Trains a network on 8 by 8 pictures of digits, and tests it on those it has not seen.
#[derive(Parser)]
struct Args {
    #[arg(long, value_enum, default_value_t = Model::Mlp)]
    model: Model,
    /// How often every picture is shown
    #[arg(long, default_value_t = 60)]
    epochs: usize,
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// The highest learning rate
    #[arg(long, default_value_t = 3e-3)]
    lr: f64,
    #[arg(long, default_value_t = 64)]
    width: usize,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// `cpu` or `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<Device>,
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/digits/digits.csv.gz"))]
    data: PathBuf,
    /// Where the picture of the loss goes
    #[arg(long, default_value = "target/train_digits.svg")]
    plot: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Model {
    Mlp,
    Transformer,
}

fn main() -> Result<(), Box<dyn StdError>> {
    let args = Args::parse();
    if args.batch == 0 || args.width == 0 || args.width % 4 != 0 {
        return Err("--batch has to be at least 1, and --width a multiple of 4".into());
    }
    let device = args.device.unwrap_or_else(Device::best);
    device.manual_seed(args.seed);
    Device::cpu().manual_seed(args.seed);
    let (train, test) = data::load(&args.data, device)?;
    match args.model {
        Model::Mlp => run(&args, Mlp::new(args.width, device), &train, &test),
        Model::Transformer => run(&args, Transformer::new(args.width, device), &train, &test),
    }
}

fn run<N: Network>(args: &Args, mut model: N, train: &Digits, test: &Digits) -> Result<(), Box<dyn StdError>> {
    let (pictures, start) = (train.pictures(), Instant::now());
    let batches = pictures.div_ceil(args.batch);
    println!("{} parameters, {} digits to train on, {} to test with", numel(&model), pictures, test.labels.numel());
    let steps = (args.epochs * batches) as u64;
    let schedule = Schedule::cosine(args.lr, steps).warmup(steps / 20);
    let mut opt = AdamW::new(args.lr).weight_decay(0.05);
    let bar = ProgressBar::new(steps);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} {msg}")?);

    let (mut losses, mut test_losses) = (Vec::new(), Vec::new());
    for _ in 0..args.epochs {
        // Added up on the device: reading every loss would wait for every step.
        let mut sum = Tensor::<f32, 0>::zeros([], test.images.device());
        for Digits { images, labels } in train.batches(args.batch) {
            let (loss, gradients) = model.loss_and_gradients(&images, &labels);
            opt.set_lr(schedule.at(bar.position()));
            opt.step(&mut model, &gradients);
            sum += &loss;
            bar.inc(1);
        }
        let epoch_loss = f64::from(sum.item()) / batches as f64;
        let (test_loss, accuracy) = tested(&model, test);
        losses.push(epoch_loss);
        test_losses.push(test_loss);
        bar.set_message(format!("loss {epoch_loss:.4}, of the test {test_loss:.4}, accuracy {:.2}%", 100.0 * accuracy));
    }
    bar.finish();

    let (_, accuracy) = tested(&model, test);
    println!("test accuracy {:.2}% after {:.1} s", 100.0 * accuracy, start.elapsed().as_secs_f64());
    draw(&args.plot, &losses, &test_losses)
}

/// Draws how the loss fell.
fn draw(plot: &Path, losses: &[f64], test_losses: &[f64]) -> Result<(), Box<dyn StdError>> {
    let curves = [
        Curve { name: "training", colour: "#1f77b4", values: losses },
        Curve { name: "test", colour: "#d62728", values: test_losses },
    ];
    if let Some(folder) = plot.parent() {
        std::fs::create_dir_all(folder)?;
    }
    plot::save(plot, "Mean cross-entropy of the digits", &curves)
        .map_err(|error| format!("cannot write {}: {error}", plot.display()))?;
    println!("the loss is drawn in {}", plot.display());
    Ok(())
}

/// The mean cross-entropy on all digits, and how many of them are read rightly.
fn tested(model: &impl Network, digits: &Digits) -> (f64, f64) {
    let scores = model.scores(&digits.images);
    let right = scores.argmax(1).eq(&digits.labels).cast::<f32>().mean_all();
    (f64::from(scores.cross_entropy(&digits.labels).item()), f64::from(right.item()))
}
