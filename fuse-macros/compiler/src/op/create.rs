//! Constructors. Their last attribute is the element type of the result.

use super::ParamKind::{Bound, DType as Kind, Device, Dim as Size, Dims, Scalar as Weak};
use super::build::Ops;
use super::rules::{Fault, Rules, Types};
use super::{Accepts, Attr, Call, Class, OpEffect, OpInfo, Param, Val, param};
use crate::types::{DType, Dim, Ty};

const SHAPED: &[Param] = &[param("shape", Dims), param("device", Device)];

const SOURCE: OpInfo = OpInfo { call: Call::Function, params: SHAPED, infer: shaped, ..OpInfo::BASE };

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
        infer: |_, _, attrs| {
            let (_, len) = range(&attrs[0], &attrs[1]);
            number_result(&attrs[2], [len])
        },
        decompose: Some(|b, _, attrs| {
            let (start, len) = range(&attrs[0], &attrs[1]);
            vec![arange(&mut Ops(b), start, len, attrs[2].dtype())]
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
        doc: "Every element converted as by Rust's `as`: truncated, saturated, NaN to 0",
        class: Class::Elementwise,
        params: &[param("dtype", Kind)],
        infer: |_, args, attrs| Ok(vec![args[0].with_dtype(attrs[0].dtype())]),
        ..OpInfo::BASE
    },
];

fn shaped(_: &mut Rules, _: &[&Ty], attrs: &[Attr]) -> Types {
    Ok(vec![Ty::new(attrs[1].dtype(), attrs[0].dims())])
}

fn random_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    match Accepts::Float.contains(attrs[1].dtype()) {
        true => shaped(rules, args, attrs),
        false => Err(Fault::new(format!("`{}` makes floats, not {}", rules.op, attrs[1].dtype()))),
    }
}

fn number_result(dtype: &Attr, dims: impl Into<Vec<Dim>>) -> Types {
    match Accepts::Number.contains(dtype.dtype()) {
        true => Ok(vec![Ty::new(dtype.dtype(), dims)]),
        false => Err(Fault::new(format!("`arange` makes numbers, not {}", dtype.dtype()))),
    }
}

/// The first number of a range and how many there are.
fn range(start: &Attr, end: &Attr) -> (Attr, Dim) {
    let float = |bound: &Attr| match bound {
        Attr::Float(x) => Some(*x),
        bound => bound.dim().as_const().map(|k| k as f64),
    };
    let len = match (start, end) {
        (Attr::Float(_), _) | (_, Attr::Float(_)) => match (float(start), float(end)) {
            (Some(start), Some(end)) => Dim::Const((end - start).ceil().max(0.0) as i64),
            _ => panic!("a float bound of `arange` goes with one known at compile time"),
        },
        _ => match Dim::sub(end.dim(), start.dim()) {
            Dim::Const(len) => Dim::Const(len.max(0)),
            len if start.dim() == Dim::Const(0) => len,
            len => Dim::max(len, Dim::Const(0)),
        },
    };
    (start.clone(), len)
}

fn arange(o: &mut Ops, start: Attr, len: Dim, dtype: DType) -> Val {
    let positions = o.positions(len, 0, 1);
    let compute = dtype.compute();
    let positions = o.cast(positions, compute);
    let start = match start {
        Attr::Float(x) => o.float(x, compute),
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
