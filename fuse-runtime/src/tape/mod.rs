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
mod cotangents;
mod draws;
mod graphs;
mod outcome;
mod params;
mod record;
mod segments;
mod tuples;

pub use cotangents::{Weighted, count};
pub(crate) use draws::run as run_draws;
pub use outcome::Outcome;
pub use params::{Params, replaced};
pub(crate) use record::{Var, What, is_recording, is_traced, record, traced};
pub(crate) use segments::follow;

use crate::eager;
use crate::error::{Error, OrRaise, Result};
use crate::raw::RawTensor;
use fuse_compiler::op::Attr;
use record::{Recording, Tape};
use std::sync::Arc;

/// The value of a function and its gradients for some tensors: one tensor, a tuple of them, an array, a model of
/// [`parameters!`](crate::parameters).
///
/// The function is called once, with a variable for each tensor. What it computes from them is followed through every op of
/// this crate; a function under [`compile`](crate::compile) that it calls is walked back by its own
/// backward graphs if it has `grad(..)` for all that it is given of variables, and runs op by op otherwise. Values read by
/// [`item`](crate::Tensor::item) are constants, and [`detach`](crate::Tensor::detach) makes constants. A tensor that the
/// value does not depend on has a gradient of zeros. Behind the value the function may give anything else: a tuple comes
/// back as a tuple.
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
    let tape = Tape::new();
    let outcome = on_tape(&tape, &params, function);
    outcome.with(|value| {
        let gradients = one(value).and_then(|seed| walk_back(&tape, vec![(value.clone(), seed)]));
        in_place(params, gradients.or_raise())
    })
}

/// The value of a function and the gradients of its product with a cotangent of its structure, of which `name` tells a failure.
#[doc(hidden)]
#[track_caller]
pub fn vjp<P: Params, C, O: Weighted<C>>(
    params: P,
    name: &str,
    cotangent: &C,
    function: impl FnOnce(P::Vars) -> O,
) -> (O, P::Grads) {
    try_vjp(params, name, cotangent, |vars| Ok::<O, Error>(function(vars))).or_raise()
}

/// The same for a function that may fail.
#[doc(hidden)]
pub fn try_vjp<P: Params, C, O: Weighted<C>, E: From<Error>>(
    params: P,
    name: &str,
    cotangent: &C,
    function: impl FnOnce(P::Vars) -> std::result::Result<O, E>,
) -> std::result::Result<(O, P::Grads), E> {
    let tape = Tape::new();
    let value = on_tape(&tape, &params, function)?;
    let mut seeds = vec![];
    <O as Weighted<C>>::seeds(&value, cotangent, name, &mut seeds)?;
    let gradients = walk_back(&tape, seeds)?;
    Ok((<O as Weighted<C>>::settled(value), in_place(params, gradients)))
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
        in_place(params, products.or_raise())
    })
}

/// The cotangent of a value that is differentiated itself.
fn one(value: &RawTensor) -> Result<RawTensor> {
    let attrs = [Attr::Dims(vec![]), Attr::DType(value.dtype())];
    Ok(eager::run(value.device(), "ones", &[], &attrs)?.remove(0))
}

/// Calls a function with variables of a tape, which records meanwhile.
fn on_tape<P: Params, O>(tape: &Arc<Tape>, params: &P, function: impl FnOnce(P::Vars) -> O) -> O {
    let vars = params.vars(&mut |tensor| tape.variable(tensor));
    let _recording = Recording::start();
    function(vars)
}

/// Gradients in the place of the parameters.
fn in_place<P: Params>(params: P, gradients: Vec<RawTensor>) -> P::Grads {
    let mut gradients = gradients.into_iter();
    params.grads(&mut || gradients.next().expect("there is a gradient for each variable"))
}

/// The gradients of a tape's variables, for values with these cotangents.
fn walk_back(tape: &Tape, seeds: Vec<(RawTensor, RawTensor)>) -> Result<Vec<RawTensor>> {
    let (entries, variables) = tape.close();
    let on_tape = |(value, seed): (RawTensor, RawTensor)| Some((value.var()?.on(tape)?, seed));
    backward::run(entries, seeds.into_iter().filter_map(on_tape).collect(), variables)
}

/// The gradients of ops on tensors without types, for tests that make them at run time: `function` gives values and their
/// cotangents.
#[doc(hidden)]
pub fn vjp_untyped(
    params: &[RawTensor],
    function: impl FnOnce(Vec<RawTensor>) -> Result<Vec<(RawTensor, RawTensor)>>,
) -> Result<Vec<RawTensor>> {
    let tape = Tape::new();
    let vars = params.iter().map(|tensor| tape.variable(tensor)).collect();
    let seeds = function(vars)?;
    walk_back(&tape, seeds)
}
