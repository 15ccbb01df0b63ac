//! A run that is saved and goes on is the run that was not interrupted.

mod common;

use common::device;
use fuse_runtime::optim::{AdamW, GradScaler, Sgd};
use fuse_runtime::prelude::*;
use fuse_runtime::{Checkpoint, Generator, safetensors};
use std::path::PathBuf;

#[compile(grad(w1, b1, w2))]
fn loss<T: Float>(
    #[dims(N, I)] x: &Tensor<T, 2>,
    #[dims(N)] targets: &Tensor<i64, 1>,
    #[dims(I, H)] w1: &Tensor<T, 2>,
    #[dims(H)] b1: &Tensor<T, 1>,
    #[dims(H, O)] w2: &Tensor<T, 2>,
) -> Tensor<f32, 0> {
    let hidden = (x.matmul(w1) + b1).gelu().dropout(0.2, true);
    hidden.matmul(w2).cast::<f32>().cross_entropy(targets)
}

/// A model with all that training changes beside it.
struct Run<T: Float> {
    model: (Tensor<T, 2>, Tensor<T, 1>, Tensor<T, 2>),
    opt: AdamW,
    scaler: GradScaler,
}

impl<T: Float> Run<T> {
    fn new(seed: u64) -> Self {
        let d = device();
        let mut generator = Generator::new(seed);
        let model = generator.scope(|| (Tensor::randn([5, 7], d), Tensor::zeros([7], d), Tensor::randn([7, 4], d)));
        Run { model, opt: AdamW::new(1e-2), scaler: GradScaler::new(d).growth(2.0, 3, 0.5) }
    }

    /// Some steps, each on fresh data and with a fresh mask.
    fn train(&mut self, steps: usize) -> Vec<f32> {
        let d = device();
        let step = |_| {
            let (x, targets) = (Tensor::randn([8, 5], d), Tensor::arange(0i64, 8, d) % 4);
            let (w1, b1, w2) = &self.model;
            let (loss, grads) = loss::vjp(&x, &targets, w1, b1, w2, &self.scaler.scale());
            self.scaler.step(&mut self.opt, &mut self.model, &grads);
            loss.item()
        };
        (0..steps).map(step).collect()
    }

    fn bits(&self) -> Vec<u64> {
        let (w1, b1, w2) = &self.model;
        let all = [w1.cast::<f64>().to_vec(), b1.cast::<f64>().to_vec(), w2.cast::<f64>().to_vec()];
        all.concat().into_iter().map(f64::to_bits).collect()
    }
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fuse-checkpoint-{name}-{}", std::process::id()))
}

fn a_resumed_run_goes_on<T: Float>(name: &str) {
    let path = scratch(name);
    let mut generator = Generator::new(11);
    let (losses, wanted, steps) = generator.scope(|| {
        let mut run = Run::<T>::new(1);
        run.train(4);
        (run.train(5), run.bits(), run.opt.steps())
    });

    let mut first = Generator::new(11);
    let saved = first.scope(|| {
        let mut run = Run::<T>::new(1);
        run.train(4);
        run
    });
    Checkpoint::new()
        .parameters("model", &saved.model)
        .optimizer("optimizer", &saved.opt)
        .parameters("scaler", &saved.scaler)
        .generator("generator", &first)
        .number("step", 4)
        .save(&path)
        .unwrap();

    let file = safetensors::load(&path, Device::cpu()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut run = Run::<T>::new(2);
    file.read_parameters("model", &mut run.model).unwrap();
    file.read_optimizer("optimizer", &mut run.opt, &run.model).unwrap();
    file.read_parameters("scaler", &mut run.scaler).unwrap();
    let mut generator = file.generator("generator").unwrap();
    assert_eq!(file.number("step").unwrap(), 4);
    assert_eq!(generator.scope(|| run.train(5)), losses);
    assert_eq!(run.bits(), wanted);
    assert_eq!(run.opt.steps(), steps);
}

#[test]
fn a_resumed_run_goes_on_bit_for_bit() {
    a_resumed_run_goes_on::<f32>("f32");
}

#[test]
fn so_does_one_of_halves_with_master_copies() {
    a_resumed_run_goes_on::<bf16>("bf16");
    a_resumed_run_goes_on::<f16>("f16");
}

#[test]
fn an_optimiser_saved_before_its_first_step_has_made_none() {
    let (path, w) = (scratch("fresh"), Tensor::from([1.0f32]));
    Checkpoint::new().parameters("w", &w).optimizer("opt", &AdamW::new(0.1)).save(&path).unwrap();
    let file = safetensors::load(&path, Device::cpu()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (mut w, mut opt) = (Tensor::from([5.0f32]), AdamW::new(0.1));
    opt.step(&mut w, &Tensor::from([1.0f32]));
    file.read_optimizer("opt", &mut opt, &w).unwrap();
    assert_eq!(opt.steps(), 0);
}

#[test]
fn what_does_not_fit_is_named_with_its_file_and_changes_nothing() {
    let path = scratch("errors");
    let model = (Tensor::from([[1.0f32, 2.0]]), Tensor::from([3.0f32]));
    let mut opt = Sgd::new(0.1).momentum(0.9);
    let mut trained = model.clone();
    opt.step(&mut trained, &model);
    Checkpoint::new().parameters("model", &model).optimizer("opt", &opt).save(&path).unwrap();
    let file = safetensors::load(&path, Device::cpu()).unwrap();
    let place = path.display().to_string();

    let told = |outcome: Result<(), Error>| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains(&place), "{error}");
        error.to_string()
    };
    let mut wider = (Tensor::from([[0.0f32, 0.0]]), Tensor::from([0.0f32, 0.0]));
    let text = told(file.read_parameters("model", &mut wider));
    assert!(text.contains("`model.1` is f32[1] and not f32[2]"), "{text}");
    assert_eq!(wider.0.to_vec(), [0.0, 0.0]);
    let mut half = (Tensor::from([[bf16::ZERO, bf16::ZERO]]), Tensor::from([0.0f32]));
    let text = told(file.read_parameters("model", &mut half));
    assert!(text.contains("`model.0` is f32[1, 2] and not bf16[1, 2]"), "{text}");
    let mut fewer = (Tensor::from([[0.0f32, 0.0]]),);
    let text = told(file.read_parameters("model", &mut fewer));
    assert!(text.contains("`model.1` is no parameter"), "{text}");
    let text = told(file.read_optimizer("opt", &mut AdamW::new(0.1), &model));
    assert!(text.contains("there is no tensor `opt.exp_avg.0`"), "{text}");
    let text = told(file.read_optimizer("opt", &mut opt.clone(), &wider));
    assert!(text.contains("`opt.momentum_buffer.1` is f32[1] and not f32[2]"), "{text}");
    let text = told(Checkpoint::new().number("n", 1).number("n", 2).save(&path));
    assert!(text.contains("`n` is there twice"), "{text}");
    std::fs::remove_file(path).unwrap();
}
