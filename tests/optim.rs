//! Optimisers: PyTorch's sequences, master copies, clipping, loss scaling, and what happens to storage.

mod common;

use common::device;
use fuse_runtime::optim::{Adam, AdamW, GradScaler, Lion, Sgd, clip_grad_norm, grad_norm};
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;

type Pair<T> = (Tensor<T, 2>, Tensor<T, 1>);

/// The numbers of `tests/optim/reference.py`.
fn value(k: usize, step: usize) -> f64 {
    (1.7 * k as f64 + 0.9 * step as f64).sin()
}

fn pair<T: Float>(step: usize, scale: f64) -> Pair<T> {
    let values = |first: usize, n: usize| -> Vec<T> {
        (first..first + n).map(|k| T::from_f64(value(k, step) * scale)).collect()
    };
    let d = device();
    (Tensor::from_vec(values(0, 6), [2, 3], d), Tensor::from_vec(values(10, 5), [5], d))
}

fn numbers<T: Float>((a, b): &Pair<T>) -> Vec<f64> {
    [a.cast::<f64>().to_vec(), b.cast::<f64>().to_vec()].concat()
}

/// Six steps as PyTorch makes them, from the file beside the script.
fn reference(case: &str) -> Vec<Vec<f64>> {
    let text = include_str!("optim/reference.json");
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    serde_json::from_value(json["cases"][case].clone()).unwrap()
}

/// Compares the parameters after each of six steps.
fn follows<T: Float>(
    case: &str,
    tolerance: f64,
    mut step: impl FnMut((&mut Tensor<T, 2>, &mut Tensor<T, 1>), &Pair<T>),
) {
    let mut params = pair::<T>(100, 1.0);
    for (k, wanted) in reference(case).iter().enumerate() {
        let grads = pair(k, (k + 1) as f64);
        step((&mut params.0, &mut params.1), &grads);
        for (found, wanted) in numbers(&params).iter().zip(wanted) {
            assert!((found - wanted).abs() <= tolerance, "{case}, step {k}: {found} for {wanted}");
        }
    }
}

/// Every optimiser in a type, at what its roundings amount to in six steps.
fn all_follow<T: Float>(tolerance: f64) {
    let mut opt = Sgd::new(0.1).weight_decay(0.2);
    follows::<T>("sgd", tolerance, |params, grads| opt.step(params, grads));
    let mut opt = Sgd::new(0.1).momentum(0.9);
    follows::<T>("momentum", tolerance, |params, grads| opt.step(params, grads));
    let mut opt = Sgd::new(0.1).momentum(0.9).dampening(0.3).weight_decay(0.1);
    follows::<T>("dampened", tolerance, |params, grads| opt.step(params, grads));
    let mut opt = Sgd::new(0.1).momentum(0.9).weight_decay(0.1).nesterov();
    follows::<T>("nesterov", tolerance, |params, grads| opt.step(params, grads));
    let mut opt = Adam::new(0.1);
    follows::<T>("adam", tolerance, |params, grads| opt.step(params, grads));
    let mut opt = Adam::new(0.01).betas(0.8, 0.95).eps(1e-3).weight_decay(0.3);
    follows::<T>("adam_decayed", tolerance, |params, grads| opt.step(params, grads));
    let mut opt = AdamW::new(0.1);
    follows::<T>("adamw", tolerance, |params, grads| opt.step(params, grads));
    let mut opt = AdamW::new(0.01).betas(0.8, 0.95).eps(1e-3).weight_decay(0.3);
    follows::<T>("adamw_decayed", tolerance, |params, grads| opt.step(params, grads));
    let mut opt = Sgd::new(0.1).clip_grad_norm(0.7);
    follows::<T>("clipped", tolerance, |params, grads| opt.step(params, grads));
}

#[test]
fn steps_are_those_of_pytorch() {
    all_follow::<f64>(1e-13);
    // Values up to 5, six steps of half an ulp and a few more for the quotient.
    all_follow::<f32>(1e-5);
}

/// A parameter of halves is its f32 master copy, rounded: what f32 would be after the same gradients.
fn halves_follow_their_master<P: Float>() {
    let mut half = pair::<P>(100, 1.0);
    let mut single = (half.0.cast::<f32>(), half.1.cast::<f32>());
    let (mut half_opt, mut single_opt) = (AdamW::new(1e-4), AdamW::new(1e-4));
    for step in 0..40 {
        let grads = pair::<P>(step, 1e-3);
        let wide = (grads.0.cast::<f32>(), grads.1.cast::<f32>());
        half_opt.step((&mut half.0, &mut half.1), &grads);
        single_opt.step((&mut single.0, &mut single.1), &wide);
        let rounded = (single.0.cast::<P>(), single.1.cast::<P>());
        assert_eq!(numbers(&half), numbers(&rounded), "step {step}");
    }
}

#[test]
fn halves_have_master_copies_in_f32() {
    halves_follow_their_master::<bf16>();
    halves_follow_their_master::<f16>();
}

/// 0 for 0.
fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

#[test]
fn lion_steps_along_the_sign() {
    let mut params = pair::<f64>(100, 1.0);
    let mut opt = Lion::new(0.1).betas(0.9, 0.5).weight_decay(0.2);
    let (mut wanted, mut mean) = (numbers(&params), vec![0.0f64; 11]);
    for step in 0..6 {
        let grads = pair::<f64>(step, 1.0);
        opt.step((&mut params.0, &mut params.1), &grads);
        for ((w, m), g) in wanted.iter_mut().zip(&mut mean).zip(numbers(&grads)) {
            *w = *w * (1.0 - 0.1 * 0.2) - 0.1 * sign(0.9 * *m + (1.0 - 0.9) * g);
            *m = 0.5 * *m + 0.5 * g;
        }
        for (found, wanted) in numbers(&params).iter().zip(&wanted) {
            assert!((found - wanted).abs() < 1e-13, "step {step}: {found} for {wanted}");
        }
    }
}

#[test]
fn a_parameter_is_written_where_it_lies_unless_something_else_holds_it() {
    let d = device();
    let (mut alone, mut shared) = (Tensor::<f32, 2>::ones([2, 3], d), Tensor::<f32, 2>::ones([2, 3], d));
    let (kept, address) = (shared.clone(), alone.raw().address());
    let mut opt = Sgd::new(1.0).momentum(0.9);
    let grads = (Tensor::<f32, 2>::ones([2, 3], d), Tensor::<f32, 2>::ones([3, 2], d).t());
    opt.step((&mut alone, &mut shared), &grads);
    assert_eq!((alone.raw().address(), alone.to_vec()), (address, vec![0.0; 6]));
    assert_eq!((kept.to_vec(), shared.to_vec()), (vec![1.0; 6], vec![0.0; 6]));
    // From now on nothing else holds either.
    let addresses = (alone.raw().address(), shared.raw().address());
    drop(kept);
    opt.step((&mut alone, &mut shared), &grads);
    assert_eq!((alone.raw().address(), shared.raw().address()), addresses);
}

#[test]
fn a_transposed_parameter_is_updated_by_position() {
    let d = device();
    let mut w = Tensor::<f64, 2>::from_vec(vec![0.0; 6], [3, 2], d).t();
    let g = Tensor::<f64, 2>::from_vec((0..6).map(f64::from).collect(), [2, 3], d);
    Sgd::new(1.0).step(&mut w, &g);
    assert_eq!(w.to_vec(), (0..6).map(|k| -f64::from(k)).collect::<Vec<_>>());
}

#[test]
fn gradients_that_do_not_fit_are_named_and_change_nothing() {
    let (mut w, mut b) = pair::<f32>(0, 1.0);
    let before = (w.to_vec(), b.to_vec());
    let wrong = (w.clone(), Tensor::<f32, 1>::ones([4], device()));
    let mut opt = Sgd::new(1.0);
    let error = opt.try_step((&mut w, &mut b), &wrong).unwrap_err();
    let wanted = format!("parameter `1` is f32[5] on {0} and its gradient f32[4] on {0}", device());
    assert!(error.to_string().contains(&wanted), "{error}");
    let error = opt.try_step((&mut w, &mut b), &wrong.0).unwrap_err();
    assert!(error.to_string().contains("1 gradients do not fit 2 parameters"), "{error}");
    assert_eq!((w.to_vec(), b.to_vec()), before);
    opt.step((&mut w, &mut b), &before_as_grads(&before));
    let error = opt.try_step(&mut w, &Tensor::<f32, 2>::ones([2, 3], device())).unwrap_err();
    assert!(error.to_string().contains("1 parameters, where the last step had 2"), "{error}");
}

fn before_as_grads((w, b): &(Vec<f32>, Vec<f32>)) -> Pair<f32> {
    (Tensor::from_vec(w.clone(), [2, 3], device()), Tensor::from_vec(b.clone(), [5], device()))
}

#[test]
fn clipping_scales_all_gradients_alike() {
    let mut grads = pair::<f32>(3, 2.0);
    let norm: f64 = numbers(&grads).iter().map(|g| g * g).sum::<f64>().sqrt();
    let before = numbers(&grads);
    let found = clip_grad_norm(&mut grads, 0.5).item();
    assert!((found - norm).abs() < 1e-6 * norm, "{found} for {norm}");
    for (clipped, g) in numbers(&grads).iter().zip(&before) {
        assert!((clipped - g * 0.5 / norm).abs() < 1e-6, "{clipped} of {g}");
    }
    // What is below the norm stays as it is.
    let small = numbers(&grads);
    clip_grad_norm(&mut grads, 10.0);
    assert_eq!(numbers(&grads), small);
    assert!((grad_norm(&grads).item() - 0.5).abs() < 1e-6);
}

#[test]
fn a_step_with_infinite_gradients_is_skipped_and_the_scale_halved() {
    let d = device();
    let (mut w, mut scaler) = (Tensor::<f16, 1>::ones([3], d), GradScaler::new(d).growth(2.0, 2, 0.5));
    let mut opt = Adam::new(0.1);
    let of = |values: [f32; 3]| Tensor::from_vec(values.map(f16::from_f32).to_vec(), [3], d);
    scaler.step(&mut opt, &mut w, &of([1.0, f32::INFINITY, 2.0]));
    assert_eq!(w.to_vec(), [f16::ONE; 3]);
    assert_eq!((opt.steps(), scaler.scale().item()), (0, 32768.0));
    scaler.step(&mut opt, &mut w, &of([1.0, f32::NAN, 2.0]));
    assert_eq!((opt.steps(), scaler.scale().item()), (0, 16384.0));
    scaler.step(&mut opt, &mut w, &of([16384.0, -16384.0, 1.0]));
    assert_eq!((opt.steps(), scaler.scale().item()), (1, 16384.0));
    // The first step of Adam is as long as the learning rate.
    let found: Vec<f32> = w.to_vec().iter().map(|x| x.to_f32()).collect();
    for (found, wanted) in found.iter().zip([0.9, 1.1, 0.9]) {
        assert!((found - wanted).abs() < 1e-3, "{found} for {wanted}");
    }
    scaler.step(&mut opt, &mut w, &of([1.0, 1.0, 1.0]));
    assert_eq!((opt.steps(), scaler.scale().item()), (2, 32768.0));
}

/// On a device that notes what is launched.
#[test]
fn a_step_is_one_launch_for_all_parameters_of_a_type() {
    let d = recorder::device();
    let tensors = |n: usize| -> Vec<Tensor<f32, 1>> { (1..=n).map(|k| Tensor::zeros([100 * k], d)).collect() };
    let halves = |n: usize| -> Vec<Tensor<bf16, 2>> { (1..=n).map(|k| Tensor::zeros([k, 7], d)).collect() };
    let (mut params, grads) = ((tensors(40), halves(3)), (tensors(40), halves(3)));
    let mut opt = AdamW::new(1e-3);
    opt.step(&mut params, &grads);
    recorder::launches();
    opt.step(&mut params, &grads);
    let updates: Vec<_> = recorder::launches().into_iter().filter(|launch| launch.threads == 256).collect();
    let updates: Vec<_> = updates.iter().filter(|launch| launch.args.len() > 500).collect();
    assert_eq!(updates.len(), 2, "{updates:?}");
    // 40 members have a table for 128.
    let first_end = u32::from_ne_bytes(updates[0].args[..4].try_into().unwrap());
    let last_end = u32::from_ne_bytes(updates[0].args[4 * 127..4 * 128].try_into().unwrap());
    // A block of f32 takes 2 accesses of 4 for each of its 256 threads.
    let blocks: u32 = (1..=40).map(|k| (100 * k as u32).div_ceil(2048)).sum();
    assert_eq!((first_end, last_end), (1, blocks));
}

struct Layer<T: Float> {
    weight: Tensor<T, 2>,
    bias: Option<Tensor<T, 1>>,
}

fuse_runtime::parameters!(Layer<T> { weight, bias });

#[test]
fn a_model_is_updated_as_a_whole() {
    let d = device();
    let layer =
        |bias: bool| Layer { weight: Tensor::<f32, 2>::ones([2, 2], d), bias: bias.then(|| Tensor::ones([2], d)) };
    let (mut model, grads) = (vec![layer(true), layer(false)], vec![layer(true), layer(false)]);
    assert_eq!(fuse_runtime::optim::names(&model), ["0.weight", "0.bias", "1.weight"]);
    Sgd::new(0.25).step(&mut model, &grads);
    assert_eq!(model[1].weight.to_vec(), [0.75; 4]);
    assert_eq!(model[0].bias.as_ref().unwrap().to_vec(), [0.75; 2]);
}

#[test]
fn settings_that_contradict_each_other_fail_before_the_step_counts() {
    let mut w = Tensor::<f32, 1>::ones([3], device());
    let grad = w.clone();
    let mut opt = Sgd::new(0.1).nesterov();
    let error = opt.try_step(&mut w, &grad).expect_err("there is no momentum");
    assert!(error.to_string().contains("nesterov needs momentum"), "{error}");
    assert_eq!((opt.steps(), w.to_vec()), (0, vec![1.0; 3]));
}
