//! Gradients across graph breaks: every graph is walked back over by its compiled backward graph.

use crate::common::{check, device, turn};
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;

/// Code that no graph holds.
fn look<const R: usize>(_: &Tensor<f64, R>) {}

#[compile(grad(w, b))]
fn two_layers(x: &Tensor<f64, 2>, w: &Tensor<f64, 2>, b: &Tensor<f64, 1>, training: bool) -> Tensor<f64, 0> {
    let h = (x.matmul(w) + b).gelu();
    look(&h);
    let h = h.dropout(0.3, training).matmul(w).softmax(-1);
    look(&h);
    (h * b).sum_all()
}

fn parameters() -> (Tensor<f64, 2>, Tensor<f64, 2>, Tensor<f64, 1>) {
    let d = device();
    (Tensor::randn([5, 4], d), Tensor::randn([4, 4], d), Tensor::randn([4], d))
}

fn close<const R: usize>(found: &Tensor<f64, R>, wanted: &Tensor<f64, R>) {
    let pairs = found.to_vec().into_iter().zip(wanted.to_vec());
    pairs.for_each(|(a, b)| assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a}, on the tape {b}"));
}

#[test]
fn graphs_on_both_sides_of_a_break_have_the_gradients_of_the_tape() {
    let (x, w, b) = parameters();
    for training in [false, true] {
        device().manual_seed(11);
        let (value, (w_grad, b_grad)) = two_layers::value_and_grad(&x, &w, &b, training);
        device().manual_seed(11);
        let (eager, (w_eager, b_eager)) = value_and_grad((&w, &b), |(w, b)| two_layers::eager(&x, &w, &b, training));
        close(&value, &eager);
        close(&w_grad, &w_eager);
        close(&b_grad, &b_eager);
    }
    let (_, (w_grad, b_grad)) = two_layers::value_and_grad(&x, &w, &b, false);
    check(&w_grad, &w, |w| two_layers(&x, w, &b, false).item());
    check(&b_grad, &b, |b| two_layers(&x, &w, b, false).item());
}

/// Where nothing is added up in another order, bits are the same.
#[compile(grad(x))]
fn chain(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    let y = (x.tanh() * 3.0).exp();
    if y.max_all().item() > 4.0 {
        return y.sum_all();
    }
    let z = y.sin() / 2.0;
    look_at(&z);
    z.silu().sum_all()
}

fn look_at(_: &Tensor<f32, 1>) {}

#[test]
fn bits_are_those_of_the_tape_on_every_path() {
    for scale in [0.1f32, 2.0] {
        let x = Tensor::<f32, 1>::randn([100], device()) * scale;
        let (value, grad) = chain::value_and_grad(&x);
        let (eager, eager_grad) = value_and_grad(&x, |x| chain::eager(&x));
        assert_eq!(value.item(), eager.item());
        assert_eq!(grad.to_vec(), eager_grad.to_vec());
    }
}

#[compile(grad(x, w))]
fn looped<T: Float>(x: &Tensor<T, 1>, w: &Tensor<T, 1>, turns: usize) -> Result<Tensor<T, 0>, Error> {
    let mut y = x * w;
    for turn in 0..turns {
        if turn == 7 {
            break;
        }
        let size = y.sum_all().item().to_f64();
        if size > 2.0 {
            y = y * T::from_f64(0.5);
            continue;
        }
        y = (y + w).sin() * T::from_f64(1.0 + size);
    }
    Ok((y * w).mean_all())
}

#[test]
fn loops_are_walked_back_as_they_were_taken() {
    let d = device();
    let (x, w) = (Tensor::from_slice(&[0.3, -0.2, 1.5], [3], d), Tensor::from_slice(&[0.5, 0.25, 2.0], [3], d));
    for turns in [0, 1, 4, 9] {
        let (value, (x_grad, w_grad)) = looped::value_and_grad(&x, &w, turns).unwrap();
        let eager = value_and_grad((&x, &w), |(x, w)| looped::eager(&x, &w, turns)).unwrap();
        close(&value, &eager.0);
        close(&x_grad, &eager.1.0);
        close(&w_grad, &eager.1.1);
    }
    let half = |t: &Tensor<f64, 1>| t.cast::<f32>();
    let (value, _) = looped::value_and_grad(&half(&x), &half(&w), 4).unwrap();
    assert!((value.item() - looped(&half(&x), &half(&w), 4).unwrap().item()).abs() < 1e-6);
    assert!(looped::value_and_grad(&x, &Tensor::ones([2], d), 1).is_err());
}

struct Scaled {
    scale: Tensor<f64, 1>,
}

#[compile]
impl Scaled {
    #[compile(grad(x))]
    fn forward(&self, x: &Tensor<f64, 1>, last: &mut Tensor<f64, 1>) -> Tensor<f64, 1> {
        let scale: &Tensor<f64, 1> = &self.scale;
        let y = x * scale;
        look(&y);
        let z = y.cos();
        last.copy_(&z);
        look(&z);
        z * x
    }
}

#[test]
fn methods_with_breaks_keep_their_effects() {
    let d = device();
    let model = Scaled { scale: Tensor::randn([6], d) };
    let (x, cotangent, mut last) = (Tensor::randn([6], d), Tensor::randn([6], d), Tensor::zeros([6], d));
    let (_, grad) = model.forward_vjp(&x, &mut last, &cotangent);
    assert_eq!(last.to_vec(), (&x * &model.scale).cos().to_vec());
    let f = |x: &_| (model.forward(x, &mut Tensor::zeros([6], d)) * &cotangent).sum_all().item();
    check(&grad, &x, f);
}

/// A branch that is not taken has no gradient: at 0 that of the root would make it no number.
#[compile(grad(x))]
fn rooted(x: &Tensor<f64, 1>) -> Tensor<f64, 0> {
    let total = x.sum_all();
    if total.item() > 0.0 { total.sqrt() } else { total * 2.0 }
}

#[test]
fn what_is_not_taken_has_no_gradient() {
    let x = Tensor::zeros([2], device());
    assert_eq!(rooted::value_and_grad(&x).1.to_vec(), [2.0, 2.0]);
    assert_eq!(rooted::value_and_grad(&(x + 2.0)).1.to_vec(), [0.25, 0.25]);
}

#[test]
fn gradients_across_breaks_are_differentiated_again() {
    let (x, w, b) = parameters();
    let direction = Tensor::randn([4], device());
    let along = |b: &Tensor<f64, 1>| (two_layers::value_and_grad(&x, &w, b, false).1.1 * &direction).sum_all();
    let (_, second) = value_and_grad(&b, |b| along(&b));
    check(&second, &b, |b| along(b).item());
}

/// To a call around it that differentiates what it takes for a constant, the function is its original.
#[test]
fn a_constant_of_the_function_may_be_a_variable_outside() {
    let (x, w, b) = parameters();
    let (_, grad) = value_and_grad(&x, |x| two_layers(&x, &w, &b, false));
    check(&grad, &x, |x| two_layers(x, &w, &b, false).item());
}

#[test]
fn what_walks_back_was_compiled_and_is_told() {
    let report = two_layers::explain();
    let names: Vec<&str> = report.gradients().iter().map(|graph| graph.name.as_str()).collect();
    assert!(names.iter().any(|name| name.ends_with("_forward")), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("_backward")), "{names:?}");
    let text = report.to_string();
    assert!(text.contains("keeps the argument `x`"), "{text}");
    let tells_bytes = |line: &str| line.starts_with("  keeps `") && line.ends_with("bytes");
    assert!(text.lines().any(tells_bytes) && text.contains("computes again"), "{text}");
    let _turn = turn();
    let d = recorder::device();
    let (x, w, b) = (Tensor::ones([5, 4], d), Tensor::ones([4, 4], d), Tensor::ones([4], d));
    recorder::launches();
    two_layers::value_and_grad(&x, &w, &b, true);
    let launched: Vec<String> = recorder::launches().into_iter().map(|launch| launch.kernel).collect();
    let compiled = |name: &&String| two_layers::CUDA.contains(&format!("KERNEL_{name}"));
    // Sums of cotangents, the seed, and what else runs between graphs, is eager.
    let eager = launched.iter().filter(|name| *name != "matmul" && !compiled(name)).count();
    assert!(launched.iter().filter(compiled).count() >= 5 && eager <= 4, "{launched:?}");
}
