//! A language model of characters: a GPT trained on any text, saved, resumed, and asked to go on with one.
//!
//! ```text
//! cargo run --release --example train_lm -- README.md --layers 2 --heads 2 --width 64 --context 64 --batch 8 --steps 300
//! cargo run --release --example train_lm -- --resume target/train_lm.safetensors --prompt "Tensor" --sample 500
//! ```

mod model;
mod text;

use clap::{Parser, ValueEnum};
use fuse_runtime::optim::{AdamW, Schedule, numel};
use fuse_runtime::prelude::*;
use fuse_runtime::safetensors::{self, Tensors};
use fuse_runtime::{Checkpoint, Generator};
use indicatif::{ProgressBar, ProgressStyle};
use model::{Gpt, Shape};
use std::error::Error as StdError;
use std::path::PathBuf;
use std::time::Instant;
use text::{Corpus, Vocabulary};

/// Trains a character-level GPT on a text, and writes more of it.
#[derive(Parser)]
struct Args {
    /// The text to train on; without it a model that was saved only writes
    text: Option<PathBuf>,
    #[arg(long, default_value_t = 6)]
    layers: usize,
    #[arg(long, default_value_t = 6)]
    heads: usize,
    #[arg(long, default_value_t = 384)]
    width: usize,
    /// How many characters the model sees at once
    #[arg(long, default_value_t = 256)]
    context: usize,
    /// Windows of the text a step
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Steps in all, those before resuming included
    #[arg(long, default_value_t = 2000)]
    steps: u64,
    /// The highest learning rate
    #[arg(long, default_value_t = 1e-3)]
    lr: f64,
    #[arg(long, default_value_t = 0.1)]
    dropout: f64,
    /// The type of weights and activations; with bf16 the optimiser keeps f32 copies [default: bf16 on a GPU, else f32]
    #[arg(long, value_enum)]
    dtype: Option<Dtype>,
    /// Where the run is saved
    #[arg(long, default_value = "target/train_lm.safetensors")]
    checkpoint: PathBuf,
    /// Steps from one save and validation to the next
    #[arg(long, default_value_t = 250)]
    every: u64,
    /// A saved run to go on with
    #[arg(long)]
    resume: Option<PathBuf>,
    /// How the text begins that the model writes
    #[arg(long, default_value = "\n")]
    prompt: String,
    /// How many characters it writes
    #[arg(long, default_value_t = 300)]
    sample: usize,
    /// How bold it is: near 0 it takes the likeliest character
    #[arg(long, default_value_t = 0.8)]
    temperature: f32,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// `cpu` or `cuda:N` [default: FUSE_DEVICE, else the first GPU, else the processor]
    #[arg(long)]
    device: Option<Device>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dtype {
    F32,
    Bf16,
}

fn main() -> Result<(), Box<dyn StdError>> {
    let args = Args::parse();
    let device = args.device.unwrap_or_else(Device::best);
    match args.dtype.unwrap_or(if device.is_cpu() { Dtype::F32 } else { Dtype::Bf16 }) {
        Dtype::F32 => run::<f32>(&args, device),
        Dtype::Bf16 => run::<bf16>(&args, device),
    }
}

fn run<T: Float>(args: &Args, device: Device) -> Result<(), Box<dyn StdError>> {
    let saved = args.resume.as_ref().map(|path| safetensors::load(path, device)).transpose()?;
    let mut run = match (&saved, &args.text) {
        (Some(saved), _) => Run::<T>::resume(saved, device)?,
        (None, Some(path)) => Run::new(args, Vocabulary::of(&text::read(path, args.context)?), device)?,
        (None, None) => return Err("name a text to train on, or a saved run with --resume".into()),
    };
    if let Some(path) = &args.text {
        let numbers = run.vocabulary.encode(&text::read(path, run.shape.context)?)?;
        run.train(args, &Corpus::split(&numbers, device))?;
    }
    println!("{}{}", args.prompt, run.write(args, device)?);
    Ok(())
}

/// Everything that training changes.
struct Run<T: Float> {
    shape: Shape,
    vocabulary: Vocabulary,
    model: Gpt<T>,
    opt: AdamW,
    /// Of windows and of dropout.
    generators: [Generator; 2],
    step: u64,
}

/// A run that is resumed has to go on with the settings it began with.
fn optimizer(lr: f64) -> AdamW {
    AdamW::new(lr).betas(0.9, 0.99).weight_decay(0.1).clip_grad_norm(1.0)
}

impl<T: Float> Run<T> {
    fn new(args: &Args, vocabulary: Vocabulary, device: Device) -> Result<Self, String> {
        let Args { layers, heads, width, context, .. } = *args;
        if heads == 0 || context == 0 || args.batch == 0 || width % heads != 0 {
            return Err(format!("--width {width} is no multiple of --heads {heads}, or --context or --batch is 0"));
        }
        let shape = Shape { layers, heads, width, context, vocabulary: vocabulary.len() };
        let model = Generator::new(args.seed).scope(|| Gpt::new(&shape, device));
        let opt = optimizer(args.lr);
        let generators = [1, 2].map(|stream| Generator::new(args.seed.wrapping_add(stream)));
        Ok(Run { shape, vocabulary, model, opt, generators, step: 0 })
    }

    fn resume(saved: &Tensors, device: Device) -> Result<Self, Box<dyn StdError>> {
        let vocabulary = Vocabulary::from_tensor(&saved.get("vocabulary")?)?;
        let number = |name| saved.number(name).map(|number| number as usize);
        let (layers, heads, width) = (number("layers")?, number("heads")?, number("width")?);
        let shape = Shape { layers, heads, width, context: number("context")?, vocabulary: vocabulary.len() };
        let (mut model, mut opt) = (Gpt::new(&shape, device), optimizer(0.0));
        saved.read_parameters("model", &mut model)?;
        saved.read_optimizer("optimizer", &mut opt, &model)?;
        let generators = [saved.generator("windows")?, saved.generator("masks")?];
        let step = saved.number("step")? as u64;
        Ok(Run { shape, vocabulary, model, opt, generators, step })
    }

    fn save(&self, args: &Args) -> Result<(), Box<dyn StdError>> {
        if let Some(folder) = args.checkpoint.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let number = |value: usize| value as i64;
        Checkpoint::new()
            .parameters("model", &self.model)
            .optimizer("optimizer", &self.opt)
            .generator("windows", &self.generators[0])
            .generator("masks", &self.generators[1])
            .parameters("vocabulary", &self.vocabulary.to_tensor())
            .number("layers", number(self.shape.layers))
            .number("heads", number(self.shape.heads))
            .number("width", number(self.shape.width))
            .number("context", number(self.shape.context))
            .number("step", self.step as i64)
            .save(&args.checkpoint)?;
        Ok(())
    }

    fn train(&mut self, args: &Args, (train, validate): &(Corpus, Corpus)) -> Result<(), Box<dyn StdError>> {
        println!("{} parameters, {} characters, from step {}", numel(&self.model), self.vocabulary.len(), self.step);
        let schedule = Schedule::cosine(args.lr, args.steps).min_lr(args.lr / 10.0).warmup(args.steps / 20);
        let bar = ProgressBar::new(args.steps).with_position(self.step);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}")?);
        let (mut start, mut first) = (Instant::now(), self.step);
        let (mut validation, mut speed) = (f32::NAN, 0.0);
        while self.step < args.steps {
            let (inputs, targets) = train.batch(args.batch, self.shape.context, &mut self.generators[0]);
            let (loss, gradients) =
                self.model.loss_and_gradients(&inputs, &targets, args.dropout, &mut self.generators[1]);
            self.opt.set_lr(schedule.at(self.step));
            self.opt.step(&mut self.model, &gradients);
            self.step += 1;
            bar.set_position(self.step);
            // Reading the loss waits for the device, so it is read now and then.
            if self.step.is_multiple_of(10) || self.step == args.steps {
                let loss = loss.item();
                let characters = (self.step - first) as f64 * (args.batch * self.shape.context) as f64;
                speed = characters / start.elapsed().as_secs_f64();
                bar.set_message(format!("loss {loss:.3}, validation {validation:.3}, {speed:.0} tokens/s"));
                (start, first) = (Instant::now(), self.step);
            }
            if self.step.is_multiple_of(args.every) || self.step == args.steps {
                validation = self.validation(args, validate);
                self.save(args)?;
                (start, first) = (Instant::now(), self.step);
            }
        }
        bar.finish();
        let saved = args.checkpoint.display();
        println!("validation loss {validation:.3}, {speed:.0} tokens/s in the last steps, saved in {saved}");
        Ok(())
    }

    /// The mean loss of four batches, which are always the same.
    fn validation(&self, args: &Args, corpus: &Corpus) -> f32 {
        let mut windows = Generator::new(args.seed);
        let mut loss = || {
            let (inputs, targets) = corpus.batch(args.batch, self.shape.context, &mut windows);
            self.model.loss(&inputs, &targets).item()
        };
        (0..4).map(|_| loss()).sum::<f32>() / 4.0
    }

    /// What the model writes behind the prompt.
    fn write(&self, args: &Args, device: Device) -> Result<String, Box<dyn StdError>> {
        let context = self.shape.context;
        let mut numbers = self.vocabulary.encode(&args.prompt)?;
        let Some(last) = numbers.len().checked_sub(1) else { return Err("--prompt has to have a character".into()) };
        let mut dice = Generator::new(args.seed);
        for _ in 0..args.sample {
            // One extent for all: what is behind the last character has no influence on it.
            let seen = &numbers[numbers.len().saturating_sub(context)..];
            let window: Vec<i64> = seen.iter().copied().chain(std::iter::repeat(0)).take(context).collect();
            let scores = self.model.scores(&Tensor::from_vec(window, [1, context], device), seen.len() - 1);
            let shares = (scores / args.temperature.max(1e-3)).softmax(0).to_vec();
            let mut left = dice.scope(|| Tensor::<f32, 1>::rand([1], Device::cpu())).to_vec()[0];
            let chosen = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            numbers.push(chosen.unwrap_or(shares.len() - 1) as i64);
        }
        Ok(numbers[last + 1..].iter().map(|&number| self.vocabulary.decode(number)).collect())
    }
}
