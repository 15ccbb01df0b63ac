//! Comparisons, logic and selection. Comparisons follow IEEE 754: every one with NaN is false but `ne`.

use super::ParamKind::{Branch, Operand, Scalar as Weak, TensorOf};
use super::build::Ops;
use super::rules::{self, Rules, Types};
use super::{Accepts, Attr, Class, Fact, Gradient, Num, OpInfo, Scalar, param};
use crate::types::{DType, Ty};
use std::cmp::Ordering;

/// One operand, a bool result.
const UNARY: OpInfo =
    OpInfo { class: Class::Elementwise, infer: rules::predicate, gradient: Gradient::Undefined, ..OpInfo::BASE };

/// Two operands of one element type, a bool result.
const BINARY: OpInfo = OpInfo { params: &[param("other", Operand)], ..UNARY };

const EXACT: Scalar = Scalar { facts: &[Fact::Exact], ..Scalar::BASE };

const SYMMETRIC: Scalar = Scalar { facts: &[Fact::Commutative, Fact::Exact], ..Scalar::BASE };

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "eq",
        doc: "Whether two elements are equal",
        scalar: Some(Scalar {
            cuda: "{0} == {1}",
            rust: "{0} == {1}",
            eval: |x| Num::B(order(x) == Some(Ordering::Equal)),
            ..SYMMETRIC
        }),
        ..BINARY
    },
    OpInfo {
        name: "ne",
        doc: "Whether two elements differ",
        scalar: Some(Scalar {
            cuda: "{0} != {1}",
            rust: "{0} != {1}",
            eval: |x| Num::B(order(x) != Some(Ordering::Equal)),
            ..SYMMETRIC
        }),
        ..BINARY
    },
    OpInfo {
        name: "lt",
        doc: "Whether the element is less than the other",
        scalar: Some(Scalar {
            cuda: "{0} < {1}",
            rust: "{0} < {1}",
            eval: |x| Num::B(order(x) == Some(Ordering::Less)),
            ..EXACT
        }),
        ..BINARY
    },
    OpInfo {
        name: "le",
        doc: "Whether the element is less than the other or equal to it",
        scalar: Some(Scalar {
            cuda: "{0} <= {1}",
            rust: "{0} <= {1}",
            eval: |x| Num::B(matches!(order(x), Some(Ordering::Less | Ordering::Equal))),
            ..EXACT
        }),
        ..BINARY
    },
    OpInfo {
        name: "gt",
        doc: "Whether the element is greater than the other",
        scalar: Some(Scalar {
            cuda: "{0} > {1}",
            rust: "{0} > {1}",
            eval: |x| Num::B(order(x) == Some(Ordering::Greater)),
            ..EXACT
        }),
        ..BINARY
    },
    OpInfo {
        name: "ge",
        doc: "Whether the element is greater than the other or equal to it",
        scalar: Some(Scalar {
            cuda: "{0} >= {1}",
            rust: "{0} >= {1}",
            eval: |x| Num::B(matches!(order(x), Some(Ordering::Greater | Ordering::Equal))),
            ..EXACT
        }),
        ..BINARY
    },
    OpInfo {
        name: "isnan",
        doc: "Whether the element is not a number",
        accepts: Accepts::Float,
        scalar: Some(Scalar {
            cuda: "{0} != {0}",
            rust: "m::isnan({0})",
            eval: |x| Num::B(x[0].f().is_nan()),
            ..EXACT
        }),
        ..UNARY
    },
    OpInfo {
        name: "isinf",
        doc: "Whether the element is infinite, of either sign",
        accepts: Accepts::Float,
        scalar: Some(Scalar {
            cuda: "fuse_isinf({0})",
            rust: "m::isinf({0})",
            eval: |x| Num::B(x[0].f().is_infinite()),
            ..EXACT
        }),
        ..UNARY
    },
    OpInfo {
        name: "logical_and",
        doc: "Whether neither element is zero",
        scalar: Some(Scalar {
            cuda: "({0} != 0) & ({1} != 0)",
            rust: "m::logical_and({0}, {1})",
            eval: |x| Num::B(x[0].truthy() && x[1].truthy()),
            ..SYMMETRIC
        }),
        ..BINARY
    },
    OpInfo {
        name: "logical_or",
        doc: "Whether one of the elements is not zero",
        scalar: Some(Scalar {
            cuda: "({0} != 0) | ({1} != 0)",
            rust: "m::logical_or({0}, {1})",
            eval: |x| Num::B(x[0].truthy() || x[1].truthy()),
            ..SYMMETRIC
        }),
        ..BINARY
    },
    OpInfo {
        name: "logical_not",
        doc: "Whether the element is zero",
        scalar: Some(Scalar {
            cuda: "{0} == 0",
            rust: "m::logical_not({0})",
            eval: |x| Num::B(!x[0].truthy()),
            ..EXACT
        }),
        ..UNARY
    },
    OpInfo {
        name: "where_cond",
        doc: "The element of `a` where the condition holds, of `b` elsewhere",
        class: Class::Elementwise,
        params: &[param("a", Branch), param("b", Branch)],
        accepts: Accepts::Bool,
        infer: where_type,
        scalar: Some(Scalar {
            cuda: "({0} ? {1} : {2})",
            rust: "if {0} { {1} } else { {2} }",
            eval: |x| if x[0].truthy() { x[1] } else { x[2] },
            ..EXACT
        }),
        gradient: Gradient::Built(|o, c, k| if k == 1 { o.only(c.args[0], c.g) } else { o.except(c.args[0], c.g) }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "masked_fill",
        doc: "The tensor with `value` where the mask holds",
        params: &[param("mask", TensorOf(DType::Bool)), param("value", Weak)],
        infer: masked_fill_type,
        decompose: Some(|b, args, _| {
            let mut o = Ops(b);
            let dtype = o.dtype(args[0]);
            let filled = o.choose(args[1], args[2], args[0]);
            vec![o.cast(filled, dtype)]
        }),
        ..OpInfo::BASE
    },
];

fn where_type(rules: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    let dtype = rules::common_dtype(rules, &args[1..])?;
    Ok(vec![Ty::new(dtype, rules.broadcast(args)?)])
}

fn masked_fill_type(rules: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    rules::need_dtype(rules, args, 1, DType::Bool)?;
    let dtype = rules::common_dtype(rules, &[args[0], args[2]])?;
    Ok(vec![Ty::new(dtype, rules.broadcast(args)?)])
}

fn order(x: &[Num]) -> Option<Ordering> {
    match (x[0], x[1]) {
        (Num::F(a), Num::F(b)) => a.partial_cmp(&b),
        (Num::I(a), Num::I(b)) => Some(a.cmp(&b)),
        (Num::B(a), Num::B(b)) => Some(a.cmp(&b)),
        (a, b) => panic!("{a:?} and {b:?} do not compare"),
    }
}
