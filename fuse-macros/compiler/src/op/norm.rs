//! Softmax and normalisation, computed in the compute type and rounded once.

use super::ParamKind::{Axis, Bool, ScalarOf, Tensor};
use super::build::{Along, Ops};
use super::rules::{self, Fault, Rules, Types};
use super::{Accepts, Attr, Gradient, OpEffect, OpInfo, Param, Pulled, Val, param};
use crate::types::{DType, Dim, Ty};

const ALONG: &[Param] = &[param("dim", Axis)];

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "softmax",
        doc: "The exponentials along an axis, divided by their sum",
        params: ALONG,
        lone: true,
        accepts: Accepts::Float,
        infer: rules::same_along,
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
            let parts = shifted_exps(&mut o, args[0], axis);
            let result = o.div(parts.exps, parts.sum);
            vec![o.cast(result, o.dtype(args[0]))]
        }),
        gradient: Gradient::Built(|o, c, _| {
            // y (g - sum(g y))
            let axis = rules::axis_of(&c.attrs[0], o.rank(c.g));
            softmax_slope(o, c.y, c.g, axis)
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "log_softmax",
        doc: "The logarithm of the softmax along an axis",
        params: ALONG,
        lone: true,
        accepts: Accepts::Float,
        infer: rules::same_along,
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
            let parts = shifted_exps(&mut o, args[0], axis);
            let log = o.apply("ln", &[parts.sum]);
            let result = o.sub(parts.shifted, log);
            vec![o.cast(result, o.dtype(args[0]))]
        }),
        gradient: Gradient::Built(|o, c, _| {
            // g - exp(y) sum(g)
            let along = Along::Axis(rules::axis_of(&c.attrs[0], o.rank(c.g)));
            let sum = o.reduce("sum", c.g, along);
            let sum = o.spread(sum, along);
            let weights = o.apply("exp", &[c.y]);
            let weighted = o.mul(weights, sum);
            o.sub(c.g, weighted)
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "layer_norm",
        doc: "The last axes, those of `weight`, brought to mean 0 and variance 1, times `weight`, plus `bias`",
        params: &[param("weight", Tensor), param("bias", Tensor), param("eps", ScalarOf(DType::F64))],
        accepts: Accepts::Float,
        infer: normalised,
        decompose: Some(|b, args, _| {
            let &[x, weight, bias, eps] = args else { unreachable!("layer_norm has four operands") };
            let mut o = Ops(b);
            let normal = layer_normal(&mut o, x, weight, eps);
            let weighted = times_flat(&mut o, normal.value, weight);
            let bias = flat(&mut o, bias);
            let result = o.add(weighted, bias);
            vec![restore(&mut o, result, x)]
        }),
        gradient: Gradient::Built(|o, c, k| normalisation(o, c, k, layer_normal)),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "rms_norm",
        doc: "The last axes, those of `weight`, divided by their root mean square, times `weight`",
        params: &[param("weight", Tensor), param("eps", ScalarOf(DType::F64))],
        accepts: Accepts::Float,
        infer: normalised,
        decompose: Some(|b, args, _| {
            let &[x, weight, eps] = args else { unreachable!("rms_norm has three operands") };
            let mut o = Ops(b);
            let normal = rms_normal(&mut o, x, weight, eps);
            let result = times_flat(&mut o, normal.value, weight);
            vec![restore(&mut o, result, x)]
        }),
        gradient: Gradient::Built(|o, c, k| normalisation(o, c, k, rms_normal)),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "dropout",
        doc: "In training, elements are zero with probability `p` and the others are divided by 1 - p",
        params: &[param("p", ScalarOf(DType::F64)), param("training", Bool)],
        accepts: Accepts::Float,
        infer: rules::same,
        decompose: Some(|b, args, attrs| match attrs[0].flag() {
            true => vec![dropout(&mut Ops(b), args[0], args[1])],
            false => vec![args[0]],
        }),
        effect: OpEffect::Rng,
        ..OpInfo::BASE
    },
];

/// The numerator and denominator of a softmax, in the compute type.
pub(super) struct Exps {
    /// The values less their largest.
    pub shifted: Val,
    /// The exponentials of those.
    pub exps: Val,
    /// Their sum, with the axis kept.
    pub sum: Val,
}

/// The exponentials along an axis, shifted so that the largest is 1.
pub(super) fn shifted_exps(o: &mut Ops, x: Val, axis: usize) -> Exps {
    let along = Along::Axis(axis);
    let wide = o.widen(x);
    let largest = o.reduce("amax", wide, along);
    let largest = o.spread(largest, along);
    let shifted = o.sub(wide, largest);
    let exps = o.apply("exp", &[shifted]);
    let sum = o.reduce("sum", exps, along);
    let sum = o.spread(sum, along);
    Exps { shifted, exps, sum }
}

/// `y (g - sum(g y))`, the gradient of a softmax `y`.
pub(super) fn softmax_slope(o: &mut Ops, y: Val, g: Val, axis: usize) -> Val {
    let along = Along::Axis(axis);
    let product = o.mul(g, y);
    let sum = o.reduce("sum", product, along);
    let sum = o.spread(sum, along);
    let centred = o.sub(g, sum);
    o.mul(y, centred)
}

/// Rows brought to unit size, in the compute type.
struct Normal {
    /// The rows.
    value: Val,
    /// What they were multiplied by.
    scale: Val,
    /// Whether their mean was taken off before.
    centred: bool,
}

fn layer_normal(o: &mut Ops, x: Val, weight: Val, eps: Val) -> Normal {
    let wide = flat_tail(o, x, o.rank(weight));
    let last = Along::Axis(o.rank(wide) - 1);
    let mean = super::reduce::mean(o, wide, last);
    let mean = o.spread(mean, last);
    let centred = o.sub(wide, mean);
    // The same statements as in `var`, on the deviations that are needed anyway.
    let square = o.mul(centred, centred);
    let var = super::reduce::mean(o, square, last);
    let scale = inverse_deviation(o, var, eps, last);
    Normal { value: o.mul(centred, scale), scale, centred: true }
}

fn rms_normal(o: &mut Ops, x: Val, weight: Val, eps: Val) -> Normal {
    let wide = flat_tail(o, x, o.rank(weight));
    let last = Along::Axis(o.rank(wide) - 1);
    let square = o.mul(wide, wide);
    let mean = super::reduce::mean(o, square, last);
    let scale = inverse_deviation(o, mean, eps, last);
    Normal { value: o.mul(wide, scale), scale, centred: false }
}

/// With rows n of unit size and h = g w: `scale (h - mean(h) - n mean(h n))`, the mean of h only where rows are centred.
/// The weight has `g n` and the bias `g`, summed over the rows.
fn normalisation(o: &mut Ops, c: &Pulled, k: usize, normal: fn(&mut Ops, Val, Val, Val) -> Normal) -> Val {
    let (x, weight, eps) = (c.args[0], c.args[1], *c.args.last().expect("eps comes last"));
    let normal = normal(o, x, weight, eps);
    let g = flat_tail(o, c.g, o.rank(weight));
    let slope = match k {
        0 => {
            let h = times_flat(o, g, weight);
            let last = Along::Axis(o.rank(h) - 1);
            let product = o.mul(h, normal.value);
            let along = super::reduce::mean(o, product, last);
            let along = o.spread(along, last);
            let along = o.mul(normal.value, along);
            let rest = if normal.centred { less_mean(o, h, last) } else { h };
            let rest = o.sub(rest, along);
            o.mul(normal.scale, rest)
        }
        1 => o.mul(g, normal.value),
        _ => g,
    };
    match k {
        0 => o.reshape(slope, o.dims(x)),
        _ => summed_rows(o, slope, weight),
    }
}

/// A value less its mean.
fn less_mean(o: &mut Ops, x: Val, along: Along) -> Val {
    let mean = super::reduce::mean(o, x, along);
    let mean = o.spread(mean, along);
    o.sub(x, mean)
}

/// The sum of all rows, with the extents of the weight.
fn summed_rows(o: &mut Ops, rows: Val, weight: Val) -> Val {
    let row = o.dims(rows).pop().expect("rows have an axis");
    let sum = o.sum_to(rows, vec![row]);
    o.reshape(sum, o.dims(weight))
}

/// `1 / sqrt(var + eps)`, spread along the axis.
fn inverse_deviation(o: &mut Ops, var: Val, eps: Val, along: Along) -> Val {
    let eps = o.cast(eps, o.dtype(var));
    let sum = o.add(var, eps);
    let scale = o.apply("rsqrt", &[sum]);
    o.spread(scale, along)
}

/// The value in its compute type, with its last `axes` axes as one.
fn flat_tail(o: &mut Ops, x: Val, axes: usize) -> Val {
    let dims = o.dims(x);
    let (outer, inner) = dims.split_at(dims.len() - axes);
    let inner = inner.iter().cloned().fold(Dim::Const(1), Dim::mul);
    let flat = o.reshape(x, [outer, &[inner]].concat());
    o.widen(flat)
}

/// A weight or bias in its compute type, as one axis.
fn flat(o: &mut Ops, weight: Val) -> Val {
    flat_tail(o, weight, o.rank(weight))
}

fn times_flat(o: &mut Ops, x: Val, weight: Val) -> Val {
    let weight = flat(o, weight);
    o.mul(x, weight)
}

/// Brings a result back to the element type and extents of the operand.
fn restore(o: &mut Ops, result: Val, like: Val) -> Val {
    let rounded = o.cast(result, o.dtype(like));
    o.reshape(rounded, o.dims(like))
}

fn dropout(o: &mut Ops, x: Val, p: Val) -> Val {
    let dtype = o.dtype(x);
    let wide = o.widen(x);
    let draw = o.with("uniform", &[], vec![Attr::Dims(o.dims(x))]);
    let threshold = o.cast(p, DType::F32);
    let keep = o.apply("ge", &[draw, threshold]);
    let keep = o.cast(keep, dtype.compute());
    // With p = 1 nothing is kept, and 1 / (1 - p) must not turn 0 * x into NaN.
    let (zero, one) = (o.zero(DType::F64), o.one(DType::F64));
    let rest = o.sub(one, p);
    let scale = o.div(one, rest);
    let all = o.apply("eq", &[p, one]);
    let scale = o.choose(all, zero, scale);
    let scale = o.cast(scale, dtype.compute());
    let factor = o.mul(keep, scale);
    let result = o.mul(wide, factor);
    o.cast(result, dtype)
}

/// `weight` (and `bias`) have the extents of the last axes of the receiver.
fn normalised(rules: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    let x = args[0];
    // The last operand is eps.
    for operand in 1..args.len() - 1 {
        let weight = args[operand];
        let outer = x.rank().checked_sub(weight.rank()).filter(|_| weight.rank() > 0);
        let fits = outer.is_some_and(|outer| same_extents(rules, &x.dims[outer..], &weight.dims, operand));
        if !fits {
            let (have, want) = (rules.show_all(&weight.dims), rules.show_all(&x.dims));
            let message = format!("`{}`: {{{operand}}} has extents {have}, {{0}} has {want}", rules.op);
            return Err(Fault::new(message)
                .help(format!("the extents of {{{operand}}} must be the last ones of {{0}}"))
                .at(operand));
        }
        rules::need_dtype(rules, args, operand, x.dtype)?;
    }
    rules::same(rules, args, &[])
}

fn same_extents(rules: &mut Rules, left: &[Dim], right: &[Dim], operand: usize) -> bool {
    let op = rules.op;
    left.iter().zip(right).all(|(a, b)| {
        rules.equal(a, b, || format!("`{op}`: operand {operand} has extent {{right}} where the receiver has {{left}}"))
    })
}
