//! Functions of floats, element by element.

use super::ParamKind::{Operand, Scalar as Weak};
use super::num::erf;
use super::rules;
use super::{Accepts, Class, Fact, Gradient, Num, OpInfo, Ops, Pulled, Scalar, Val, param};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

const UNARY: OpInfo =
    OpInfo { class: Class::Elementwise, accepts: Accepts::Float, infer: rules::elementwise, ..OpInfo::BASE };

const HEAVY: Scalar = Scalar { heavy: true, ..Scalar::BASE };

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "exp",
        doc: "e to the power of each element",
        scalar: Some(Scalar { cuda: "fuse_exp({0})", rust: "m::exp({0})", eval: |x| Num::F(x[0].f().exp()), ..HEAVY }),
        gradient: Gradient::Built(|o, c, _| o.mul(c.g, c.y)),
        ..UNARY
    },
    OpInfo {
        name: "ln",
        doc: "The natural logarithm",
        scalar: Some(Scalar { cuda: "fuse_ln({0})", rust: "m::ln({0})", eval: |x| Num::F(x[0].f().ln()), ..HEAVY }),
        domain: (0.1, 10.0),
        gradient: Gradient::Built(|o, c, _| o.div(c.g, c.x[0])),
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
        gradient: Gradient::Built(|o, c, _| {
            let twice = o.scale(c.y, 2.0);
            o.div(c.g, twice)
        }),
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
        gradient: Gradient::Built(|o, c, _| {
            // d/dx x^(-1/2) = -1/2 x^(-3/2) = -1/2 y^3
            let square = o.mul(c.y, c.y);
            let cube = o.mul(square, c.y);
            let slope = o.scale(cube, -0.5);
            o.mul(c.g, slope)
        }),
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
        gradient: Gradient::Built(|o, c, _| {
            let square = o.mul(c.y, c.y);
            let slope = o.neg(square);
            o.mul(c.g, slope)
        }),
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
        gradient: Gradient::Built(power),
        ..UNARY
    },
    OpInfo {
        name: "sin",
        doc: "The sine of each element in radians",
        scalar: Some(Scalar { cuda: "fuse_sin({0})", rust: "m::sin({0})", eval: |x| Num::F(x[0].f().sin()), ..HEAVY }),
        gradient: Gradient::Built(|o, c, _| {
            let cos = o.apply("cos", &[c.x[0]]);
            o.mul(c.g, cos)
        }),
        ..UNARY
    },
    OpInfo {
        name: "cos",
        doc: "The cosine of each element in radians",
        scalar: Some(Scalar { cuda: "fuse_cos({0})", rust: "m::cos({0})", eval: |x| Num::F(x[0].f().cos()), ..HEAVY }),
        gradient: Gradient::Built(|o, c, _| {
            let sin = o.apply("sin", &[c.x[0]]);
            let slope = o.neg(sin);
            o.mul(c.g, slope)
        }),
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
        gradient: Gradient::Built(|o, c, _| {
            let square = o.mul(c.y, c.y);
            let slope = one_less(o, square);
            o.mul(c.g, slope)
        }),
        ..UNARY
    },
    OpInfo {
        name: "erf",
        doc: "The error function",
        scalar: Some(Scalar { cuda: "fuse_erf({0})", rust: "m::erf({0})", eval: |x| Num::F(erf(x[0].f())), ..HEAVY }),
        gradient: Gradient::Built(|o, c, _| {
            let bell = bell(o, c.x[0], -1.0);
            let slope = o.scale(bell, FRAC_2_SQRT_PI);
            o.mul(c.g, slope)
        }),
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
        gradient: Gradient::Built(|o, c, _| {
            let rest = one_less(o, c.y);
            let slope = o.mul(c.y, rest);
            o.mul(c.g, slope)
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
        gradient: Gradient::Built(|o, c, _| {
            // d/dx x s = s (1 + x (1 - s))
            let gate = o.apply("sigmoid", &[c.x[0]]);
            let rest = one_less(o, gate);
            let rest = o.mul(c.x[0], rest);
            let rest = o.shift(rest, 1.0);
            let slope = o.mul(gate, rest);
            o.mul(c.g, slope)
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
        gradient: Gradient::Built(gelu),
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
        gradient: Gradient::Built(gelu_tanh),
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
        gradient: Gradient::Built(|o, c, k| {
            let positive = o.against_zero("gt", c.x[0]);
            let below = o.mul(c.g, c.x[1 - k]);
            match k {
                0 => o.choose(positive, c.g, below),
                _ => o.except(positive, below),
            }
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
        gradient: Gradient::Zero,
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
        gradient: Gradient::Zero,
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
        gradient: Gradient::Zero,
        ..UNARY
    },
];

/// `1 - x`.
fn one_less(o: &mut Ops, x: Val) -> Val {
    let one = o.one(o.dtype(x));
    o.sub(one, x)
}

/// `exp(c x^2)`.
fn bell(o: &mut Ops, x: Val, c: f64) -> Val {
    let square = o.mul(x, x);
    let exponent = o.scale(square, c);
    o.apply("exp", &[exponent])
}

/// `b a^(b-1)` and `a^b ln(a)`; 0 where the one is 0 times infinity at `b = 0`, and the other at `a = 0`.
fn power(o: &mut Ops, c: &Pulled, k: usize) -> Val {
    let (base, exponent) = (c.x[0], c.x[1]);
    let at_zero = o.against_zero(["eq", "ge"][k], exponent);
    let (slope, flat) = match k {
        0 => {
            let less = o.shift(exponent, -1.0);
            let power = o.apply("powf", &[base, less]);
            (o.mul(exponent, power), at_zero)
        }
        _ => {
            let log = o.apply("ln", &[base]);
            let nothing = o.against_zero("eq", base);
            (o.mul(c.y, log), o.apply("logical_and", &[nothing, at_zero]))
        }
    };
    let built = o.mul(c.g, slope);
    o.except(flat, built)
}

/// d/dx x P(x) = P(x) + x p(x), with the normal distribution P and its density p.
fn gelu(o: &mut Ops, c: &Pulled, _: usize) -> Val {
    let x = c.x[0];
    let scaled = o.scale(x, FRAC_1_SQRT_2);
    let erf = o.apply("erf", &[scaled]);
    let erf = o.shift(erf, 1.0);
    let below = o.scale(erf, 0.5);
    let bell = bell(o, x, -0.5);
    let density = o.scale(bell, FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5);
    let density = o.mul(x, density);
    let slope = o.add(below, density);
    o.mul(c.g, slope)
}

/// With t = tanh(u) and u = a (x + b x^3): d/dx x/2 (1 + t) = (1 + t)/2 + x/2 (1 - t^2) a (1 + 3 b x^2).
fn gelu_tanh(o: &mut Ops, c: &Pulled, _: usize) -> Val {
    let (x, a, b) = (c.x[0], (2.0 / PI).sqrt(), 0.044715);
    let square = o.mul(x, x);
    let inner = o.scale(square, b);
    let inner = o.shift(inner, 1.0);
    let inner = o.mul(x, inner);
    let inner = o.scale(inner, a);
    let tanh = o.apply("tanh", &[inner]);
    let left = o.shift(tanh, 1.0);
    let left = o.scale(left, 0.5);
    let tanh_square = o.mul(tanh, tanh);
    let falling = one_less(o, tanh_square);
    let rising = o.scale(square, 3.0 * b);
    let rising = o.shift(rising, 1.0);
    let rising = o.scale(rising, a);
    let half = o.scale(x, 0.5);
    let right = o.mul(falling, rising);
    let right = o.mul(half, right);
    let slope = o.add(left, right);
    o.mul(c.g, slope)
}
