//! The eager tape: what ran on variables, to be walked back.
//!
//! [`value_and_grad`] hands its function variables in the place of its parameters. An eager op on a variable is written down
//! with its operands, and its results are variables too. From the function's value the tape is walked back: an op's
//! cotangents are one plan, of the graph of the op and the gradient its row has, so eager and compiled gradients come from
//! one column.
//!
//! Calls may be nested. A tensor may be a value of several tapes, and what runs on it is written on each: to the tape of an
//! outer call the walk back of an inner one is work like any other, whose graphs have gradients of their own.

mod backward;
mod draws;
mod graphs;
mod params;
mod record;
mod segments;

pub(crate) use draws::run as run_draws;
pub use params::{Differentiable, Outcome, Params, replaced};
pub(crate) use record::{Var, What, is_recording, is_traced, record, traced};
pub(crate) use segments::follow;

use crate::eager;
use crate::error::{OrRaise, Result};
use crate::raw::RawTensor;
use fuse_compiler::op::Attr;
use record::{Recording, Tape, settled};

/// The value of a function and its gradients for some tensors: one tensor, a tuple of them, an array, a model of
/// [`parameters!`](crate::parameters).
///
/// The function is called once, with a variable for each tensor. What it computes from them is followed through every op of
/// this crate; a function under [`compile`](crate::compile) that it calls is walked back by its own
/// backward graphs if it has `grad(..)` for all that it is given of variables, and runs op by op otherwise. Values read by
/// [`item`](crate::Tensor::item) are constants, and [`detach`](crate::Tensor::detach) makes constants. A tensor that the
/// value does not depend on has a gradient of zeros. With the value the function may give anything else: a pair of both
/// comes back as a pair.
///
/// ```
/// use fuse_runtime::prelude::*;
/// let (x, w, b) = (Tensor::from([[1.0f32, 2.0]]), Tensor::from([[3.0f32], [4.0]]), Tensor::from([0.5f32]));
/// let (loss, (w_grad, b_grad)) = value_and_grad((&w, &b), |(w, b)| {
///     let error = x.matmul(&w) + b;
///     (&error * &error).sum_all()
/// });
/// assert_eq!(loss.item(), 132.25);
/// assert_eq!(w_grad.to_vec(), [23.0, 46.0]);
/// assert_eq!(b_grad.to_vec(), [23.0]);
/// ```
///
/// Gradients may be differentiated again, in a call around the one that gives them:
///
/// ```
/// use fuse_runtime::prelude::*;
/// let x = Tensor::from([2.0f64]);
/// let slope = |x: &Tensor<f64, 1>| value_and_grad(x, |x| (&x * &x * &x).sum_all()).1;
/// let (slope_sum, curvature) = value_and_grad(&x, |x| slope(&x).sum_all());
/// assert_eq!((slope_sum.item(), curvature.to_vec()), (12.0, vec![12.0]));
/// ```
///
/// The gradients of a model are a model, which an [optimiser](crate::optim) takes as it is:
///
/// ```
/// use fuse_runtime::optim::Sgd;
/// use fuse_runtime::prelude::*;
///
/// #[derive(Clone)]
/// struct Linear {
///     weight: Tensor<f32, 2>,
///     bias: Tensor<f32, 1>,
/// }
/// fuse_runtime::parameters!(Linear { weight, bias });
///
/// let (x, d) = (Tensor::from([[1.0f32, 2.0]]), Device::cpu());
/// let mut model = Linear { weight: Tensor::ones([1, 2], d), bias: Tensor::zeros([1], d) };
/// let (loss, gradients) = value_and_grad(&model, |model| x.linear(&model.weight, &model.bias).sum_all());
/// assert_eq!((loss.item(), gradients.weight.to_vec()), (3.0, vec![1.0, 2.0]));
/// Sgd::new(0.5).step(&mut model, &gradients);
/// assert_eq!(model.weight.to_vec(), [0.5, 0.0]);
/// ```
///
/// # Panics
/// With an [`Error`](crate::Error) where an op fails.
#[track_caller]
pub fn value_and_grad<P: Params, O: Outcome>(params: P, function: impl FnOnce(P::Vars) -> O) -> O::With<P::Grads> {
    pull(params, function, one)
}

/// The value of a function and the gradients of its product with a cotangent.
#[doc(hidden)]
#[track_caller]
pub fn vjp<P: Params, O: Differentiable>(
    params: P,
    cotangent: &RawTensor,
    function: impl FnOnce(P::Vars) -> O,
) -> O::With<P::Grads> {
    pull(params, function, |_| Ok(cotangent.clone()))
}

/// The value of a function and the products of its second derivatives with vectors, one for each parameter.
#[doc(hidden)]
#[track_caller]
pub fn hvp<P: Params, O: Outcome>(
    params: P,
    vectors: &[&RawTensor],
    function: impl FnOnce(P::Vars) -> O,
) -> O::With<P::Grads> {
    // The gradients are a value of the outer tape, whose cotangents are the vectors.
    let (outer, inner) = (Tape::new(), Tape::new());
    let vars = params.vars(&mut |tensor| inner.variable(&outer.variable(tensor)));
    let recording = Recording::start();
    let outcome = function(vars);
    drop(recording);
    outcome.with(|value| {
        let seeds = |gradients: &[RawTensor]| {
            gradients.iter().cloned().zip(vectors.iter().map(|&v| v.clone())).collect::<Vec<_>>()
        };
        let products = one(value)
            .and_then(|seed| walk_back(&inner, vec![(value.clone(), seed)]))
            .and_then(|gradients| walk_back(&outer, seeds(&gradients)));
        let mut products = products.or_raise().into_iter();
        params.grads(&mut || products.next().expect("there is a product for each variable"))
    })
}

/// The cotangent of a value that is differentiated itself.
fn one(value: &RawTensor) -> Result<RawTensor> {
    let attrs = [Attr::Dims(vec![]), Attr::DType(value.dtype())];
    Ok(eager::run(value.device(), "ones", &[], &attrs)?.remove(0))
}

#[track_caller]
fn pull<P: Params, O: Differentiable>(
    params: P,
    function: impl FnOnce(P::Vars) -> O,
    seed: impl FnOnce(&RawTensor) -> Result<RawTensor>,
) -> O::With<P::Grads> {
    let tape = Tape::new();
    let vars = params.vars(&mut |tensor| tape.variable(tensor));
    let recording = Recording::start();
    let outcome = function(vars);
    drop(recording);
    outcome.with(|value| {
        let gradients = seed(value).and_then(|seed| walk_back(&tape, vec![(value.clone(), seed)]));
        let mut gradients = gradients.or_raise().into_iter();
        params.grads(&mut || gradients.next().expect("there is a gradient for each variable"))
    })
}

/// The gradients of a tape's variables, for values with these cotangents.
fn walk_back(tape: &Tape, seeds: Vec<(RawTensor, RawTensor)>) -> Result<Vec<RawTensor>> {
    let (entries, variables) = tape.close();
    let on_tape = |(value, seed): (RawTensor, RawTensor)| Some((value.var()?.on(tape)?, seed));
    backward::run(entries, seeds.into_iter().filter_map(on_tape).collect(), variables)
}

/// The gradients of ops on tensors without types, for tests that make them at run time: `function` gives a value and its
/// cotangent.
#[doc(hidden)]
pub fn vjp_untyped(
    params: &[RawTensor],
    function: impl FnOnce(Vec<RawTensor>) -> Result<(RawTensor, RawTensor)>,
) -> Result<Vec<RawTensor>> {
    let tape = Tape::new();
    let vars = params.iter().map(|tensor| tape.variable(tensor)).collect();
    let (value, cotangent) = function(vars)?;
    walk_back(&tape, vec![(value, cotangent)])
}
