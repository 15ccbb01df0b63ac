//! Functions of floats, element by element.

use super::ParamKind::{Operand, Scalar as Weak};
use super::num::erf;
use super::rules;
use super::{Accepts, Class, Fact, Num, OpInfo, Scalar, param};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

const UNARY: OpInfo =
    OpInfo { class: Class::Elementwise, accepts: Accepts::Float, infer: rules::elementwise, ..OpInfo::BASE };

const HEAVY: Scalar = Scalar { heavy: true, ..Scalar::BASE };

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "exp",
        doc: "e to the power of each element",
        scalar: Some(Scalar { cuda: "fuse_exp({0})", rust: "m::exp({0})", eval: |x| Num::F(x[0].f().exp()), ..HEAVY }),
        ..UNARY
    },
    OpInfo {
        name: "ln",
        doc: "The natural logarithm",
        scalar: Some(Scalar { cuda: "fuse_ln({0})", rust: "m::ln({0})", eval: |x| Num::F(x[0].f().ln()), ..HEAVY }),
        domain: (0.1, 10.0),
        ..UNARY
    },
    OpInfo {
        name: "sqrt",
        doc: "The square root, correctly rounded",
        scalar: Some(Scalar {
            cuda: "fuse_sqrt({0})",
            rust: "m::sqrt({0})",
            eval: |x| Num::F(x[0].f().sqrt()),
            facts: &[Fact::Exact],
            ..HEAVY
        }),
        domain: (0.0, 10.0),
        ..UNARY
    },
    OpInfo {
        name: "rsqrt",
        doc: "One over the square root",
        scalar: Some(Scalar {
            cuda: "1.0f / fuse_sqrt({0})",
            rust: "m::recip(m::sqrt({0}))",
            eval: |x| Num::F(1.0 / x[0].f().sqrt()),
            ..HEAVY
        }),
        domain: (0.1, 10.0),
        ..UNARY
    },
    OpInfo {
        name: "recip",
        doc: "One over each element",
        scalar: Some(Scalar {
            cuda: "1.0f / {0}",
            rust: "m::recip({0})",
            eval: |x| Num::F(1.0 / x[0].f()),
            facts: &[Fact::Exact],
            ..Scalar::BASE
        }),
        domain: (0.1, 10.0),
        ..UNARY
    },
    OpInfo {
        name: "powf",
        doc: "Each element to a power",
        params: &[param("exponent", Operand)],
        scalar: Some(Scalar {
            cuda: "fuse_powf({0}, {1})",
            rust: "m::powf({0}, {1})",
            eval: |x| Num::F(x[0].f().powf(x[1].f())),
            ..HEAVY
        }),
        domain: (0.1, 4.0),
        ..UNARY
    },
    OpInfo {
        name: "sin",
        doc: "The sine of each element in radians",
        scalar: Some(Scalar { cuda: "fuse_sin({0})", rust: "m::sin({0})", eval: |x| Num::F(x[0].f().sin()), ..HEAVY }),
        ..UNARY
    },
    OpInfo {
        name: "cos",
        doc: "The cosine of each element in radians",
        scalar: Some(Scalar { cuda: "fuse_cos({0})", rust: "m::cos({0})", eval: |x| Num::F(x[0].f().cos()), ..HEAVY }),
        ..UNARY
    },
    OpInfo {
        name: "tanh",
        doc: "The hyperbolic tangent",
        scalar: Some(Scalar {
            cuda: "fuse_tanh({0})",
            rust: "m::tanh({0})",
            eval: |x| Num::F(x[0].f().tanh()),
            ..HEAVY
        }),
        ..UNARY
    },
    OpInfo {
        name: "erf",
        doc: "The error function",
        scalar: Some(Scalar { cuda: "fuse_erf({0})", rust: "m::erf({0})", eval: |x| Num::F(erf(x[0].f())), ..HEAVY }),
        ..UNARY
    },
    OpInfo {
        name: "sigmoid",
        doc: "The logistic function, 1 / (1 + exp(-x))",
        scalar: Some(Scalar {
            cuda: "fuse_sigmoid({0})",
            rust: "m::sigmoid({0})",
            eval: |x| Num::F(1.0 / (1.0 + (-x[0].f()).exp())),
            ..HEAVY
        }),
        ..UNARY
    },
    OpInfo {
        name: "silu",
        doc: "Each element times its sigmoid, x / (1 + exp(-x))",
        scalar: Some(Scalar {
            cuda: "fuse_silu({0})",
            rust: "m::silu({0})",
            eval: |x| Num::F(x[0].f() / (1.0 + (-x[0].f()).exp())),
            ..HEAVY
        }),
        ..UNARY
    },
    OpInfo {
        name: "gelu",
        doc: "The Gaussian error linear unit, x / 2 * (1 + erf(x / sqrt(2)))",
        scalar: Some(Scalar {
            cuda: "fuse_gelu<{T}>({0})",
            rust: "m::gelu({0})",
            eval: |x| Num::F(0.5 * x[0].f() * (1.0 + erf(x[0].f() * FRAC_1_SQRT_2))),
            ..HEAVY
        }),
        ..UNARY
    },
    OpInfo {
        name: "gelu_tanh",
        doc: "The Gaussian error linear unit approximated through tanh",
        scalar: Some(Scalar {
            cuda: "fuse_gelu_tanh({0})",
            rust: "m::gelu_tanh({0})",
            eval: |x| {
                let x = x[0].f();
                Num::F(0.5 * x * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)).tanh()))
            },
            ..HEAVY
        }),
        ..UNARY
    },
    OpInfo {
        name: "leaky_relu",
        doc: "The element where it is positive, `slope` times it elsewhere",
        params: &[param("slope", Weak)],
        scalar: Some(Scalar {
            cuda: "({0} > 0 ? {0} : {0} * {1})",
            rust: "m::leaky_relu({0}, {1})",
            eval: |x| Num::F(if x[0].f() > 0.0 { x[0].f() } else { x[0].f() * x[1].f() }),
            facts: &[Fact::Exact],
            ..Scalar::BASE
        }),
        ..UNARY
    },
    OpInfo {
        name: "floor",
        doc: "The largest whole number that is not above the element",
        scalar: Some(Scalar {
            cuda: "fuse_floor({0})",
            rust: "m::floor({0})",
            eval: |x| Num::F(x[0].f().floor()),
            facts: &[Fact::Idempotent, Fact::Exact],
            ..Scalar::BASE
        }),
        ..UNARY
    },
    OpInfo {
        name: "ceil",
        doc: "The smallest whole number that is not below the element",
        scalar: Some(Scalar {
            cuda: "fuse_ceil({0})",
            rust: "m::ceil({0})",
            eval: |x| Num::F(x[0].f().ceil()),
            facts: &[Fact::Idempotent, Fact::Exact],
            ..Scalar::BASE
        }),
        ..UNARY
    },
    OpInfo {
        name: "round",
        doc: "The nearest whole number, ties to even",
        scalar: Some(Scalar {
            cuda: "fuse_round({0})",
            rust: "m::round({0})",
            eval: |x| Num::F(x[0].f().round_ties_even()),
            facts: &[Fact::Idempotent, Fact::Exact],
            ..Scalar::BASE
        }),
        ..UNARY
    },
];
