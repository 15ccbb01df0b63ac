//! Reductions along an axis (`sum`), with the axis kept (`sum_keepdim`) and of everything (`sum_all`), and running sums.
//!
//! Sums and products of integers and bools are i64, those of fp8 f32. Those of halves are accumulated in f32 and rounded once.

use super::ParamKind::{Axis, Dim as Size};
use super::build::{Along, Ops};
use super::rules::{self, Fault, Rules, Types};
use super::slopes::{DEVIATION, FIRST_LARGEST, FIRST_SMALLEST, LENGTH, OTHERS, SHARED, SPREAD, VARIANCE, WEIGHTS};
use super::{Accepts, Attr, Class, Gradient, Infer, OpInfo, Param, Reduction, Val, param};
use crate::types::{DType, Dim, Ty};

const ALONG: &[Param] = &[param("dim", Axis)];
const UNDEFINED: Gradient = Gradient::Undefined;
const CORRECTED: &[Param] = &[param("dim", Axis), param("correction", Size)];

/// The three rows of a primitive reduction.
macro_rules! primitive {
    ($name:literal, $reduction:ident, $infer:expr, $along:expr, $all:expr, $doc:literal) => {
        [
            OpInfo {
                name: $name,
                doc: concat!($doc, ", along one axis"),
                class: Class::Reduce(Reduction::$reduction),
                params: ALONG,
                lone: true,
                accepts: Accepts::Any,
                infer: $infer,
                gradient: $along,
                ..OpInfo::BASE
            },
            keepdim!($name, Any, $infer, $along, $doc),
            OpInfo {
                name: concat!($name, "_all"),
                doc: concat!($doc, ", of all elements"),
                class: Class::Reduce(Reduction::$reduction),
                accepts: Accepts::Any,
                infer: $infer,
                gradient: $all,
                ..OpInfo::BASE
            },
        ]
    };
}

/// The three rows of a reduction that is made of others.
macro_rules! composite {
    ($name:literal, $build:expr, $gradient:expr, $doc:literal) => {
        [
            OpInfo {
                name: $name,
                doc: concat!($doc, ", along one axis"),
                params: ALONG,
                lone: true,
                accepts: Accepts::Float,
                infer: reduced,
                decompose: Some(|b, args, attrs| once(b, args[0], attrs, $build)),
                gradient: $gradient,
                ..OpInfo::BASE
            },
            keepdim!($name, Float, reduced, $gradient, $doc),
            OpInfo {
                name: concat!($name, "_all"),
                doc: concat!($doc, ", of all elements"),
                accepts: Accepts::Float,
                infer: reduced,
                decompose: Some(|b, args, attrs| once(b, args[0], attrs, $build)),
                gradient: $gradient,
                ..OpInfo::BASE
            },
        ]
    };
}

/// The row of a reduction that keeps the axis with extent 1.
macro_rules! keepdim {
    ($name:literal, $accepts:ident, $infer:expr, $gradient:expr, $doc:literal) => {
        OpInfo {
            name: concat!($name, "_keepdim"),
            doc: concat!($doc, ", along one axis that stays with extent 1"),
            params: ALONG,
            lone: true,
            accepts: Accepts::$accepts,
            infer: |rules, args, attrs| kept($infer, rules, args, attrs),
            decompose: Some(|b, args, attrs| {
                let mut o = Ops(b);
                let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
                let reduced = o.with($name, args, attrs.to_vec());
                vec![o.unsqueeze(reduced, axis)]
            }),
            gradient: kept_gradient($gradient),
            ..OpInfo::BASE
        }
    };
}

const SUM: [OpInfo; 3] = primitive!("sum", Sum, summed, SPREAD, SPREAD, "The sum");
const PROD: [OpInfo; 3] = primitive!("prod", Prod, summed, OTHERS, OTHERS, "The product");
const MAX: [OpInfo; 3] = primitive!("max", Max, extreme, FIRST_LARGEST, SHARED, "The largest element, NaN before all");
const MIN: [OpInfo; 3] =
    primitive!("min", Min, extreme, FIRST_SMALLEST, SHARED, "The smallest element, NaN before all");
const ARGMAX: [OpInfo; 3] =
    primitive!("argmax", ArgMax, position, UNDEFINED, UNDEFINED, "The position of the first largest element");
const ARGMIN: [OpInfo; 3] =
    primitive!("argmin", ArgMin, position, UNDEFINED, UNDEFINED, "The position of the first smallest element");
const MEAN: [OpInfo; 3] = composite!("mean", mean, Gradient::Opened, "The mean");
const VAR: [OpInfo; 3] = composite!("var", sample_var, VARIANCE, "The variance with correction 1");
const STD: [OpInfo; 3] = composite!("std", sample_std, DEVIATION, "The standard deviation with correction 1");
const NORM: [OpInfo; 3] = composite!("norm", norm, LENGTH, "The Euclidean norm");
const LOGSUMEXP: [OpInfo; 3] =
    composite!("logsumexp", logsumexp, WEIGHTS, "The logarithm of the sum of exponentials, without overflow");

const VAR_CORRECTION: OpInfo = OpInfo {
    name: "var_correction",
    doc: "The variance along one axis, dividing by the number of elements less `correction`",
    params: CORRECTED,
    lone: true,
    accepts: Accepts::Float,
    infer: reduced,
    decompose: Some(|b, args, attrs| {
        let correction = attrs[1].dim();
        once(b, args[0], attrs, |o, x, along| var(o, x, along, correction))
    }),
    gradient: VARIANCE,
    ..OpInfo::BASE
};

const STD_CORRECTION: OpInfo = OpInfo {
    name: "std_correction",
    doc: "The standard deviation along one axis, dividing by the number of elements less `correction`",
    decompose: Some(|b, args, attrs| {
        let correction = attrs[1].dim();
        once(b, args[0], attrs, |o, x, along| {
            let var = var(o, x, along, correction);
            o.apply("sqrt", &[var])
        })
    }),
    gradient: DEVIATION,
    ..VAR_CORRECTION
};

const CUMSUM: OpInfo = OpInfo {
    name: "cumsum",
    doc: "The running sum along an axis",
    class: Class::Scan(Reduction::Sum),
    params: ALONG,
    lone: true,
    infer: |rules, args, attrs| {
        rules::same_along(rules, args, attrs)?;
        Ok(vec![args[0].with_dtype(sum_dtype(args[0].dtype))])
    },
    gradient: Gradient::Built(|o, c, _| {
        // Each element is in the sums from its own place on.
        let axis = vec![Attr::Ints(vec![c.attrs[0].int()])];
        let turned = o.with("flip", &[c.g], axis.clone());
        let sums = o.with("cumsum", &[turned], c.attrs.to_vec());
        o.with("flip", &[sums], axis)
    }),
    ..OpInfo::BASE
};

pub(super) const ROWS: &[OpInfo] = {
    let [sum, sum_keepdim, sum_all] = SUM;
    let [prod, prod_keepdim, prod_all] = PROD;
    let [mean, mean_keepdim, mean_all] = MEAN;
    let [max, max_keepdim, max_all] = MAX;
    let [min, min_keepdim, min_all] = MIN;
    let [argmax, argmax_keepdim, argmax_all] = ARGMAX;
    let [argmin, argmin_keepdim, argmin_all] = ARGMIN;
    let [var, var_keepdim, var_all] = VAR;
    let [std, std_keepdim, std_all] = STD;
    let [norm, norm_keepdim, norm_all] = NORM;
    let [logsumexp, logsumexp_keepdim, logsumexp_all] = LOGSUMEXP;
    &[
        sum,
        sum_keepdim,
        sum_all,
        prod,
        prod_keepdim,
        prod_all,
        mean,
        mean_keepdim,
        mean_all,
        max,
        max_keepdim,
        max_all,
        min,
        min_keepdim,
        min_all,
        argmax,
        argmax_keepdim,
        argmax_all,
        argmin,
        argmin_keepdim,
        argmin_all,
        var,
        var_keepdim,
        var_all,
        VAR_CORRECTION,
        std,
        std_keepdim,
        std_all,
        STD_CORRECTION,
        norm,
        norm_keepdim,
        norm_all,
        logsumexp,
        logsumexp_keepdim,
        logsumexp_all,
        CUMSUM,
    ]
};

/// The element type of a sum: i64 for integers and bool, f32 for fp8.
pub(super) fn sum_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F8E4M3 => DType::F32,
        float if float.is_float() => float,
        _ => DType::I64,
    }
}

/// The axis of a reduction, `None` for all of them.
fn reduced_axis(rules: &Rules, args: &[&Ty], attrs: &[Attr]) -> Result<Option<usize>, Fault> {
    attrs.first().map(|axis| rules.axis(axis.int(), args[0].rank())).transpose()
}

fn reduced(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let mut dims = args[0].dims.clone();
    match reduced_axis(rules, args, attrs)? {
        Some(axis) => drop(dims.remove(axis)),
        None => dims.clear(),
    }
    Ok(vec![Ty::new(args[0].dtype, dims)])
}

fn summed(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    Ok(reduced(rules, args, attrs)?.into_iter().map(|ty| ty.with_dtype(sum_dtype(args[0].dtype))).collect())
}

/// The extreme of no elements does not exist.
fn extreme(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let count = match reduced_axis(rules, args, attrs)? {
        Some(axis) => args[0].dims[axis].clone(),
        None => args[0].numel(),
    };
    let op = rules.op;
    if !rules.at_most(&Dim::Const(1), &count, || format!("`{op}` needs at least {{left}} element, there are {{right}}"))
    {
        return Err(Fault::new(format!("`{op}` of no elements does not exist: {{0}} has extent 0 there"))
            .help("reduce at least one element, or start from a value with `Tensor::full`")
            .at(0));
    }
    reduced(rules, args, attrs)
}

fn position(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    Ok(extreme(rules, args, attrs)?.into_iter().map(|ty| ty.with_dtype(DType::I64)).collect())
}

/// The gradient of a reduction whose axis stays: that of the reduction, if it has one.
const fn kept_gradient(of_reduction: Gradient) -> Gradient {
    match of_reduction {
        Gradient::Undefined => Gradient::Undefined,
        _ => Gradient::Opened,
    }
}

/// The types of a reduction whose axis stays.
fn kept(infer: Infer, rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let axis = rules.axis(attrs[0].int(), args[0].rank())?;
    let mut types = infer(rules, args, attrs)?;
    types[0].dims.insert(axis, Dim::Const(1));
    Ok(types)
}

/// Builds a float reduction in the compute type and rounds its result once.
fn once(b: &mut dyn super::Build, x: Val, attrs: &[Attr], build: impl FnOnce(&mut Ops, Val, Along) -> Val) -> Vec<Val> {
    let mut o = Ops(b);
    let dtype = o.dtype(x);
    let along = attrs.first().map_or(Along::All, |axis| Along::Axis(rules::axis_of(axis, o.rank(x))));
    let wide = o.widen(x);
    let result = build(&mut o, wide, along);
    vec![o.cast(result, dtype)]
}

/// The mean of values in their compute type.
pub(super) fn mean(o: &mut Ops, x: Val, along: Along) -> Val {
    let sum = o.reduce("sum", x, along);
    let count = o.size(o.count(x, along), o.dtype(x));
    o.div(sum, count)
}

/// The variance by the sum of squared deviations, in two passes: squares of large values would overflow or cancel.
pub(super) fn var(o: &mut Ops, x: Val, along: Along, correction: Dim) -> Val {
    let mean = mean(o, x, along);
    let mean = o.spread(mean, along);
    let deviation = o.sub(x, mean);
    let square = o.mul(deviation, deviation);
    let sum = o.reduce("sum", square, along);
    let freedom = Dim::max(Dim::sub(o.count(x, along), correction), Dim::Const(0));
    let freedom = o.size(freedom, o.dtype(x));
    o.div(sum, freedom)
}

fn sample_var(o: &mut Ops, x: Val, along: Along) -> Val {
    var(o, x, along, Dim::Const(1))
}

fn sample_std(o: &mut Ops, x: Val, along: Along) -> Val {
    let var = sample_var(o, x, along);
    o.apply("sqrt", &[var])
}

fn norm(o: &mut Ops, x: Val, along: Along) -> Val {
    let square = o.mul(x, x);
    let sum = o.reduce("sum", square, along);
    o.apply("sqrt", &[sum])
}

fn logsumexp(o: &mut Ops, x: Val, along: Along) -> Val {
    let largest = o.reduce("amax", x, along);
    // An infinite maximum would make inf - inf; shifting by 0 there leaves exp(-inf) = 0 and exp(inf) = inf, as it should be.
    let infinite = o.apply("isinf", &[largest]);
    let zero = o.zero(o.dtype(x));
    let shift = o.choose(infinite, zero, largest);
    let spread = o.spread(shift, along);
    let shifted = o.sub(x, spread);
    let exps = o.apply("exp", &[shifted]);
    let sum = o.reduce("sum", exps, along);
    let log = o.apply("ln", &[sum]);
    o.add(log, shift)
}
