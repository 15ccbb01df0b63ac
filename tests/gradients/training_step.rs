//! A whole step of training as one compiled function.

use crate::common::device;
use fuse_runtime::prelude::*;

/// A perceptron's parameter or one of AdamW's moments of it.
type Matrix = Tensor<f32, 2>;
type Vector = Tensor<f32, 1>;

/// Forward, cross-entropy, backward, and AdamW on all parameters and their moments.
#[compile(fullgraph)]
#[allow(clippy::too_many_arguments)]
fn step(
    #[dims(N, I)] x: &Tensor<f32, 2>,
    #[dims(N)] targets: &Tensor<i64, 1>,
    #[dims(I, H)] w1: &mut Tensor<f32, 2>,
    #[dims(H)] b1: &mut Tensor<f32, 1>,
    #[dims(H, O)] w2: &mut Tensor<f32, 2>,
    #[dims(I, H)] w1_mean: &mut Tensor<f32, 2>,
    #[dims(H)] b1_mean: &mut Tensor<f32, 1>,
    #[dims(H, O)] w2_mean: &mut Tensor<f32, 2>,
    #[dims(I, H)] w1_square: &mut Tensor<f32, 2>,
    #[dims(H)] b1_square: &mut Tensor<f32, 1>,
    #[dims(H, O)] w2_square: &mut Tensor<f32, 2>,
    lr: f32,
    mean_bias: f32,
    square_bias: f32,
) -> Tensor<f32, 0> {
    let (loss, (w1_grad, b1_grad, w2_grad)) = value_and_grad((&*w1, &*b1, &*w2), |(w1, b1, w2)| {
        let hidden = (x.matmul(&w1) + b1).gelu();
        hidden.matmul(&w2).cross_entropy(targets)
    });
    *w1_mean = &*w1_mean * 0.9 + &w1_grad * 0.1;
    *b1_mean = &*b1_mean * 0.9 + &b1_grad * 0.1;
    *w2_mean = &*w2_mean * 0.9 + &w2_grad * 0.1;
    *w1_square = &*w1_square * 0.999 + &w1_grad * &w1_grad * 0.001;
    *b1_square = &*b1_square * 0.999 + &b1_grad * &b1_grad * 0.001;
    *w2_square = &*w2_square * 0.999 + &w2_grad * &w2_grad * 0.001;
    *w1 = &*w1 * 0.99 - &*w1_mean / mean_bias / ((&*w1_square / square_bias).sqrt() + 1e-8) * lr;
    *b1 = &*b1 - &*b1_mean / mean_bias / ((&*b1_square / square_bias).sqrt() + 1e-8) * lr;
    *w2 = &*w2 * 0.99 - &*w2_mean / mean_bias / ((&*w2_square / square_bias).sqrt() + 1e-8) * lr;
    loss
}

#[derive(Clone)]
struct State {
    parameters: (Matrix, Vector, Matrix),
    means: (Matrix, Vector, Matrix),
    squares: (Matrix, Vector, Matrix),
}

impl State {
    fn new(parameters: (Matrix, Vector, Matrix)) -> State {
        let (w1, b1, w2) = &parameters;
        let zeros = || (w1 * 0.0, b1 * 0.0, w2 * 0.0);
        State { means: zeros(), squares: zeros(), parameters }
    }

    fn all(&self) -> Vec<f32> {
        let parts = [&self.parameters, &self.means, &self.squares];
        parts.iter().flat_map(|(a, b, c)| [a.to_vec(), b.to_vec(), c.to_vec()]).flatten().collect()
    }
}

/// The function as compiled, or as written.
type Step = fn(
    &Matrix,
    &Tensor<i64, 1>,
    &mut Matrix,
    &mut Vector,
    &mut Matrix,
    &mut Matrix,
    &mut Vector,
    &mut Matrix,
    &mut Matrix,
    &mut Vector,
    &mut Matrix,
    f32,
    f32,
    f32,
) -> Tensor<f32, 0>;

impl State {
    fn turn(&mut self, step: Step, x: &Matrix, targets: &Tensor<i64, 1>, turn: i32) -> f32 {
        let State { parameters: (w1, b1, w2), means: (m1, mb, m2), squares: (s1, sb, s2) } = self;
        let bias = |beta: f32| 1.0 - beta.powi(turn + 1);
        step(x, targets, w1, b1, w2, m1, mb, m2, s1, sb, s2, 1e-2, bias(0.9), bias(0.999)).item()
    }
}

#[test]
fn a_step_is_one_graph_and_learns_as_the_tape_does() {
    let report = step::explain();
    assert_eq!((report.graphs().len(), report.breaks().len()), (1, 0), "{report}");
    let d = device();
    let x = Tensor::randn([16, 6], d);
    let targets = Tensor::from_vec((0..16).map(|k| k % 4).collect(), [16], d);
    let start = State::new((Tensor::randn([6, 8], d), Tensor::randn([8], d), Tensor::randn([8, 4], d)));
    let (mut compiled, mut eager) = (start.clone(), start);
    let mut losses = vec![];
    for turn in 0..20 {
        losses.push(compiled.turn(step, &x, &targets, turn));
        let loss = eager.turn(step::eager, &x, &targets, turn);
        assert!((losses[turn as usize] - loss).abs() < 1e-5, "step {turn}: {losses:?}, on the tape {loss}");
    }
    assert!(losses[19] < losses[0] * 0.8, "{losses:?}");
    let pairs = compiled.all().into_iter().zip(eager.all());
    pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a}, on the tape {b}"));
}

/// Five products, of which some leave a part of their epilogue to a launch of its own, the loss in between, and the updates.
#[test]
fn the_launches_of_a_step_are_few() {
    let report = step::explain();
    assert!(report.kernels().len() <= 11 && report.launches() <= 15, "{report}");
}
