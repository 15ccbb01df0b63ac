//! Constructors. Their last attribute is the element type of the result.

use super::ParamKind::{Bound, DType as Kind, Device, Dim as Size, Dims, Scalar as Weak};
use super::build::Ops;
use super::rules::{Fault, Rules, Types};
use super::{Accepts, Attr, Call, Class, Gradient, OpEffect, OpInfo, Param, Val, param};
use crate::types::{DType, Dim, Ty};

const SHAPED: &[Param] = &[param("shape", Dims), param("device", Device)];

const SOURCE: OpInfo =
    OpInfo { call: Call::Function, params: SHAPED, infer: shaped, gradient: Gradient::Zero, ..OpInfo::BASE };

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "zeros",
        doc: "A tensor of zeros",
        decompose: Some(|b, _, attrs| {
            let mut o = Ops(b);
            let zero = o.zero(attrs[1].dtype());
            vec![o.expand(zero, attrs[0].dims().to_vec())]
        }),
        ..SOURCE
    },
    OpInfo {
        name: "ones",
        doc: "A tensor of ones",
        decompose: Some(|b, _, attrs| {
            let mut o = Ops(b);
            let one = o.one(attrs[1].dtype());
            vec![o.expand(one, attrs[0].dims().to_vec())]
        }),
        ..SOURCE
    },
    OpInfo {
        name: "full",
        doc: "A tensor of one value",
        params: &[param("shape", Dims), param("value", Weak), param("device", Device)],
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let value = o.cast(args[0], attrs[1].dtype());
            vec![o.expand(value, attrs[0].dims().to_vec())]
        }),
        ..SOURCE
    },
    OpInfo {
        name: "arange",
        doc: "The numbers from `start` on, one apart, below `end`",
        params: &[param("start", Bound), param("end", Bound), param("device", Device)],
        infer: arange_type,
        decompose: Some(|b, _, attrs| {
            let len = count(&attrs[0], &attrs[1]);
            vec![arange(&mut Ops(b), &attrs[0], len, attrs[2].dtype())]
        }),
        ..SOURCE
    },
    OpInfo {
        name: "eye",
        doc: "A square matrix with ones on its diagonal and zeros elsewhere",
        params: &[param("n", Size), param("device", Device)],
        infer: |_, _, attrs| Ok(vec![Ty::new(attrs[1].dtype(), [attrs[0].dim(), attrs[0].dim()])]),
        decompose: Some(|b, _, attrs| {
            let mut o = Ops(b);
            let row = o.positions(attrs[0].dim(), 0, 2);
            let column = o.positions(attrs[0].dim(), 1, 2);
            let diagonal = o.apply("eq", &[row, column]);
            vec![o.cast(diagonal, attrs[1].dtype())]
        }),
        ..SOURCE
    },
    OpInfo {
        name: "rand",
        doc: "Uniform random numbers in [0, 1)",
        infer: random_type,
        decompose: Some(|b, _, attrs| vec![uniform(&mut Ops(b), &attrs[0], attrs[1].dtype())]),
        effect: OpEffect::Rng,
        ..SOURCE
    },
    OpInfo {
        name: "randn",
        doc: "Standard normal random numbers",
        infer: random_type,
        decompose: Some(|b, _, attrs| {
            let mut o = Ops(b);
            let draw = o.with("normal", &[], vec![attrs[0].clone()]);
            vec![o.cast(draw, attrs[1].dtype())]
        }),
        effect: OpEffect::Rng,
        ..SOURCE
    },
    OpInfo {
        name: "cast",
        doc: "Every element converted as by Rust's `as`: truncated, saturated, NaN to 0. What is beyond f8e4m3 becomes its NaN",
        class: Class::Elementwise,
        params: &[param("dtype", Kind)],
        infer: |_, args, attrs| Ok(vec![args[0].with_dtype(attrs[0].dtype())]),
        gradient: Gradient::Built(|_, c, _| c.g),
        ..OpInfo::BASE
    },
];

fn shaped(_: &mut Rules, _: &[&Ty], attrs: &[Attr]) -> Types {
    Ok(vec![Ty::new(attrs[1].dtype(), attrs[0].dims())])
}

fn random_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    match Accepts::Float.contains(attrs[1].dtype()) {
        true => shaped(rules, args, attrs),
        false => Err(Fault::new(format!("`{}` makes floats, not {}", rules.op, attrs[1].dtype()))
            .help("`cast` converts floats")
            .by_types()),
    }
}

fn arange_type(rules: &mut Rules, _: &[&Ty], attrs: &[Attr]) -> Types {
    let dtype = attrs[2].dtype();
    if !Accepts::Number.contains(dtype) {
        return Err(Fault::new(format!("`arange` makes numbers, not {dtype}")).help("`ne(0)` gives bool").by_types());
    }
    let ordered = match float_bounds(&attrs[0], &attrs[1]) {
        Some((start, end)) => start <= end,
        None => {
            let text = || "`arange`: the start {left} lies above the end {right}".to_owned();
            rules.at_most(&attrs[0].dim(), &attrs[1].dim(), text)
        }
    };
    match ordered {
        true => Ok(vec![Ty::new(dtype, [count(&attrs[0], &attrs[1])])]),
        false => Err(Fault::new("`arange`: the start lies above the end").help("`flip([0])` counts down")),
    }
}

/// How many numbers one apart lie in `start..end`.
fn count(start: &Attr, end: &Attr) -> Dim {
    match float_bounds(start, end) {
        Some((start, end)) => Dim::Const((end - start).ceil() as i64),
        None => Dim::sub(end.dim(), start.dim()),
    }
}

/// Both bounds of a range if one of them is a float.
fn float_bounds(start: &Attr, end: &Attr) -> Option<(f64, f64)> {
    let float = |bound: &Attr| match bound {
        Attr::Float(x) => *x,
        bound => bound.dim().as_const().expect("a float bound goes with one known at compile time") as f64,
    };
    matches!((start, end), (Attr::Float(_), _) | (_, Attr::Float(_))).then(|| (float(start), float(end)))
}

fn arange(o: &mut Ops, start: &Attr, len: Dim, dtype: DType) -> Val {
    let positions = o.positions(len, 0, 1);
    let compute = dtype.compute();
    let positions = o.cast(positions, compute);
    let start = match start {
        Attr::Float(x) => o.float(*x, compute),
        bound => o.size(bound.dim(), compute),
    };
    let numbers = o.add(positions, start);
    o.cast(numbers, dtype)
}

/// A draw has 24 bits. Rounding to a shorter type takes place on a circle, where 1 is 0: without that a half could be 1.
fn uniform(o: &mut Ops, dims: &Attr, dtype: DType) -> Val {
    let draw = o.with("uniform", &[], vec![dims.clone()]);
    let rounded = o.cast(draw, dtype);
    if matches!(dtype, DType::F32 | DType::F64) {
        return rounded;
    }
    let (zero, one) = (o.zero(dtype.compute()), o.one(dtype.compute()));
    let whole = o.apply("eq", &[rounded, one]);
    let folded = o.choose(whole, zero, rounded);
    o.cast(folded, dtype)
}
