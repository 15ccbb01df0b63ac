//! Rows that only the compiler writes: what graphs are fed with, and the primitives decompositions need.

use super::ParamKind::{Axis, DType as Kind, Dim as Size, Dims, Tensors};
use super::rules::{self, Types};
use super::slopes::SHARED;
use super::{Accepts, Attr, Call, Class, Gradient, OpEffect, OpInfo, Reduction, Scalar, Source, param};
use crate::types::{DType, Ty};

const INTERNAL: OpInfo = OpInfo { call: Call::Internal, gradient: Gradient::Zero, ..OpInfo::BASE };

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "input",
        doc: "The n-th tensor argument",
        class: Class::Source(Source::Input),
        infer: |_, _, _| panic!("the type of an input is given"),
        ..INTERNAL
    },
    OpInfo {
        name: "scalar",
        doc: "The n-th host scalar",
        class: Class::Source(Source::Scalar),
        infer: |_, _, _| panic!("the type of a scalar is given"),
        ..INTERNAL
    },
    OpInfo {
        name: "constant",
        doc: "A constant",
        class: Class::Source(Source::Constant),
        infer: |_, _, attrs| number_type(&attrs[1]),
        ..INTERNAL
    },
    OpInfo {
        name: "size",
        doc: "A size as a number",
        class: Class::Source(Source::Size),
        params: &[param("size", Size), param("dtype", Kind)],
        infer: |_, _, attrs| number_type(&attrs[1]),
        ..INTERNAL
    },
    OpInfo {
        name: "index",
        doc: "The row-major positions of a tensor of these extents",
        class: Class::Source(Source::Index),
        params: &[param("shape", Dims)],
        infer: |_, _, attrs| Ok(vec![Ty::new(DType::I64, attrs[0].dims())]),
        ..INTERNAL
    },
    OpInfo {
        name: "uniform",
        doc: "Uniform random f32 in [0, 1)",
        class: Class::Source(Source::Uniform),
        params: &[param("shape", Dims)],
        infer: |_, _, attrs| Ok(vec![Ty::new(DType::F32, attrs[0].dims())]),
        effect: OpEffect::Rng,
        ..INTERNAL
    },
    OpInfo {
        name: "normal",
        doc: "Standard normal random f32",
        class: Class::Source(Source::Normal),
        params: &[param("shape", Dims)],
        infer: |_, _, attrs| Ok(vec![Ty::new(DType::F32, attrs[0].dims())]),
        effect: OpEffect::Rng,
        ..INTERNAL
    },
    OpInfo {
        name: "contiguous",
        doc: "A copy, contiguous in memory",
        class: Class::Elementwise,
        infer: rules::same,
        scalar: Some(Scalar { cuda: "{0}", rust: "{0}", ..Scalar::BASE }),
        gradient: Gradient::Built(|_, c, _| c.g),
        ..INTERNAL
    },
    OpInfo {
        name: "variable",
        doc: "What gradients are taken for inside of a `value_and_grad`: the value of its operand",
        infer: rules::same,
        decompose: Some(|_, args, _| vec![args[0]]),
        gradient: Gradient::Built(|_, c, _| c.g),
        ..INTERNAL
    },
    OpInfo {
        name: "gradients",
        doc: "Holds the place of the gradients of its receiver for variables, until they are derived",
        params: &[param("variables", Tensors)],
        accepts: Accepts::Float,
        infer: |_, args, _| Ok(args[1..].iter().map(|&ty| ty.clone()).collect()),
        decompose: Some(|_, _, _| unreachable!("gradients are derived before anything is opened")),
        ..INTERNAL
    },
    OpInfo {
        name: "amax",
        doc: "The largest element along an axis, NaN before all and -inf where there are none",
        class: Class::Reduce(Reduction::Max),
        params: &[param("dim", Axis)],
        accepts: Accepts::Float,
        infer: |rules, args, attrs| {
            let mut ty = args[0].clone();
            ty.dims.remove(rules.axis(attrs[0].int(), args[0].rank())?);
            Ok(vec![ty])
        },
        gradient: SHARED,
        ..INTERNAL
    },
    OpInfo {
        name: "amax_all",
        doc: "The largest element, NaN before all and -inf where there are none",
        class: Class::Reduce(Reduction::Max),
        accepts: Accepts::Float,
        infer: |_, args, _| Ok(vec![Ty::new(args[0].dtype, [])]),
        gradient: SHARED,
        ..INTERNAL
    },
];

fn number_type(dtype: &Attr) -> Types {
    Ok(vec![Ty::new(dtype.dtype(), [])])
}
