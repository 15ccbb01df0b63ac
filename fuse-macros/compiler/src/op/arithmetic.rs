//! Arithmetic on floats and integers. Integers wrap at their width; dividing one by zero is a fault.

use super::ParamKind::{Operand, ScalarOf};
use super::rules::{self, Rules, Types};
use super::{Accepts, Attr, Class, Fact, Gradient, Num, OpEffect, OpInfo, Ops, Pulled, Scalar, Val, param};
use crate::types::{DType, Ty};

/// One operand, of any number type.
const UNARY: OpInfo =
    OpInfo { class: Class::Elementwise, accepts: Accepts::Number, infer: rules::elementwise, ..OpInfo::BASE };

/// Two operands of one number type.
const BINARY: OpInfo = OpInfo { params: &[param("other", Operand)], ..UNARY };

/// Two operands; on integers the second must not be zero.
const DIVISION: OpInfo = OpInfo { effect: OpEffect::MayFault, ..BINARY };

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "add",
        doc: "The sum of two tensors",
        operator: Some("+"),
        scalar: Some(Scalar {
            cuda: "{0} + {1}",
            rust: "{0} + {1}",
            int: Some(("fuse_add({0}, {1})", "{0}.wrapping_add({1})")),
            eval: |x| number(x, |a, b| a + b, i64::wrapping_add),
            // x + (-0.0) = x for every x, signed zeros included. The same with +0.0 would turn -0.0 into 0.0.
            facts: &[Fact::Commutative, Fact::RightIdentity(-0.0), Fact::RightIdentityInt(0), Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|_, c, _| c.g),
        ..BINARY
    },
    OpInfo {
        name: "sub",
        doc: "The difference of two tensors",
        operator: Some("-"),
        scalar: Some(Scalar {
            cuda: "{0} - {1}",
            rust: "{0} - {1}",
            int: Some(("fuse_sub({0}, {1})", "{0}.wrapping_sub({1})")),
            eval: |x| number(x, |a, b| a - b, i64::wrapping_sub),
            facts: &[Fact::RightIdentity(0.0), Fact::RightIdentityInt(0), Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, k| if k == 0 { c.g } else { o.neg(c.g) }),
        ..BINARY
    },
    OpInfo {
        name: "mul",
        doc: "The product of two tensors, element by element",
        operator: Some("*"),
        scalar: Some(Scalar {
            cuda: "{0} * {1}",
            rust: "{0} * {1}",
            int: Some(("fuse_mul({0}, {1})", "{0}.wrapping_mul({1})")),
            eval: |x| number(x, |a, b| a * b, i64::wrapping_mul),
            facts: &[Fact::Commutative, Fact::RightIdentity(1.0), Fact::RightIdentityInt(1), Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, k| o.mul(c.g, c.x[1 - k])),
        ..BINARY
    },
    OpInfo {
        name: "div",
        doc: "The quotient; on integers truncated, as Rust's `/`",
        operator: Some("/"),
        scalar: Some(Scalar {
            cuda: "{0} / {1}",
            rust: "{0} / {1}",
            int: Some(("fuse_div({0}, {1})", "m::div({0}, {1})")),
            eval: |x| number(x, |a, b| a / b, int_div),
            facts: &[Fact::RightIdentity(1.0), Fact::RightIdentityInt(1), Fact::Exact],
            zero_fault: true,
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(quotient),
        ..DIVISION
    },
    OpInfo {
        name: "fmod",
        doc: "The remainder of the truncated quotient, with the sign of the dividend, as Rust's `%`",
        operator: Some("%"),
        scalar: Some(Scalar {
            cuda: "fuse_fmod({0}, {1})",
            rust: "m::fmod({0}, {1})",
            eval: |x| number(x, |a, b| a % b, int_rem),
            facts: &[Fact::Exact],
            heavy: true,
            zero_fault: true,
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, k| remainder_of(o, c, k, truncated)),
        ..DIVISION
    },
    OpInfo {
        name: "floor_divide",
        doc: "The quotient rounded towards minus infinity",
        scalar: Some(Scalar {
            cuda: "fuse_floor_divide({0}, {1})",
            rust: "m::floor_divide({0}, {1})",
            eval: |x| number(x, floor_divide, int_floor_div),
            heavy: true,
            zero_fault: true,
            ..Scalar::BASE
        }),
        gradient: Gradient::Undefined,
        ..DIVISION
    },
    OpInfo {
        name: "remainder",
        doc: "The remainder of the floored quotient, with the sign of the divisor, as Python's `%`",
        scalar: Some(Scalar {
            cuda: "fuse_remainder({0}, {1})",
            rust: "m::remainder({0}, {1})",
            eval: |x| number(x, remainder, int_remainder),
            heavy: true,
            zero_fault: true,
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, k| remainder_of(o, c, k, |o, quotient| o.apply("floor", &[quotient]))),
        ..DIVISION
    },
    OpInfo {
        name: "neg",
        doc: "Each element with the opposite sign",
        operator: Some("-"),
        scalar: Some(Scalar {
            cuda: "-{0}",
            rust: "-{0}",
            int: Some(("fuse_neg({0})", "{0}.wrapping_neg()")),
            eval: |x| unary(x, |a| -a, i64::wrapping_neg),
            facts: &[Fact::Involution, Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, _| o.neg(c.g)),
        ..UNARY
    },
    OpInfo {
        name: "abs",
        doc: "The absolute value; that of the most negative integer is itself",
        scalar: Some(Scalar {
            cuda: "fuse_abs({0})",
            rust: "m::abs({0})",
            eval: |x| unary(x, f64::abs, i64::wrapping_abs),
            facts: &[Fact::Idempotent, Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, _| {
            let sign = sign(o, c.x[0]);
            o.mul(c.g, sign)
        }),
        ..UNARY
    },
    OpInfo {
        name: "relu",
        doc: "The element where it is positive, zero where it is negative",
        scalar: Some(Scalar {
            cuda: "({0} < 0 ? 0 : {0})",
            rust: "m::relu({0})",
            eval: |x| unary(x, |a| if a < 0.0 { 0.0 } else { a }, |a| a.max(0)),
            facts: &[Fact::Idempotent, Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, _| {
            // NaN lets its cotangent through, as in PyTorch.
            let off = o.against_zero("le", c.y);
            o.except(off, c.g)
        }),
        ..UNARY
    },
    OpInfo {
        name: "minimum",
        doc: "The smaller of two elements; NaN wins and -0 is below +0",
        scalar: Some(Scalar {
            cuda: "fuse_minimum({0}, {1})",
            rust: "m::minimum({0}, {1})",
            eval: |x| number(x, minimum, i64::min),
            facts: &[Fact::Commutative, Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, k| closer(o, c, k, "gt")),
        ..BINARY
    },
    OpInfo {
        name: "maximum",
        doc: "The larger of two elements; NaN wins and -0 is below +0",
        scalar: Some(Scalar {
            cuda: "fuse_maximum({0}, {1})",
            rust: "m::maximum({0}, {1})",
            eval: |x| number(x, maximum, i64::max),
            facts: &[Fact::Commutative, Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(|o, c, k| closer(o, c, k, "lt")),
        ..BINARY
    },
    OpInfo {
        name: "clamp",
        doc: "The element, but at least `min` and at most `max`; NaN in any of them wins",
        params: &[param("min", Operand), param("max", Operand)],
        scalar: Some(Scalar {
            cuda: "fuse_minimum(fuse_maximum({0}, {1}), {2})",
            rust: "m::minimum(m::maximum({0}, {1}), {2})",
            eval: |x| match x[0] {
                Num::I(a) => Num::I(a.max(x[1].i()).min(x[2].i())),
                _ => Num::F(minimum(maximum(x[0].f(), x[1].f()), x[2].f())),
            },
            facts: &[Fact::Exact],
            ..Scalar::BASE
        }),
        gradient: Gradient::Built(clamped),
        ..UNARY
    },
    OpInfo {
        name: "powi",
        doc: "Each element to an integer power; on integers a negative power is 0 but for the bases 1 and -1",
        params: &[param("exponent", ScalarOf(DType::I32))],
        infer: powi_type,
        scalar: Some(Scalar {
            cuda: "fuse_powi({0}, {1})",
            rust: "m::powi({0}, {1})",
            eval: |x| match x[0] {
                Num::I(a) => Num::I(int_powi(a, x[1].i())),
                _ => Num::F(float_powi(x[0].f(), x[1].i())),
            },
            ..Scalar::BASE
        }),
        domain: (0.2, 3.0),
        gradient: Gradient::Built(|o, c, _| {
            // n x^(n-1), where n = 0 gives 0 * x^0 in place of 0 / x.
            let n = c.args[1];
            let below = o.against_zero("ne", n);
            let below = o.cast(below, DType::I32);
            let less = o.sub(n, below);
            let power = o.apply("powi", &[c.x[0], less]);
            let n = o.cast(n, o.dtype(power));
            let slope = o.mul(n, power);
            o.mul(c.g, slope)
        }),
        ..UNARY
    },
];

fn powi_type(rules: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    rules::need_dtype(rules, args, 1, DType::I32)?;
    Ok(vec![Ty::new(args[0].dtype, rules.broadcast(args)?)])
}

/// `g / b` and `-g (a / b) / b`.
fn quotient(o: &mut Ops, c: &Pulled, k: usize) -> Val {
    if k == 0 {
        return o.div(c.g, c.x[1]);
    }
    let quotient = o.div(c.x[0], c.x[1]);
    let slope = o.div(quotient, c.x[1]);
    let slope = o.neg(slope);
    o.mul(c.g, slope)
}

/// `a - b whole(a / b)`: `g`, and `-g whole(a / b)`, the whole quotient being constant almost everywhere.
fn remainder_of(o: &mut Ops, c: &Pulled, k: usize, whole: fn(&mut Ops, Val) -> Val) -> Val {
    if k == 0 {
        return c.g;
    }
    let quotient = o.div(c.x[0], c.x[1]);
    let whole = whole(o, quotient);
    let slope = o.neg(whole);
    o.mul(c.g, slope)
}

/// The whole number next to a float on the side of zero.
fn truncated(o: &mut Ops, x: Val) -> Val {
    let negative = o.against_zero("lt", x);
    let (up, down) = (o.apply("ceil", &[x]), o.apply("floor", &[x]));
    o.choose(negative, up, down)
}

/// -1, 0 or 1.
fn sign(o: &mut Ops, x: Val) -> Val {
    let [above, below] = ["gt", "lt"].map(|compare| {
        let side = o.against_zero(compare, x);
        o.cast(side, o.dtype(x))
    });
    o.sub(above, below)
}

/// The cotangent goes to the operand that is not beaten, half of it where both are equal.
fn closer(o: &mut Ops, c: &Pulled, k: usize, beaten: &str) -> Val {
    let (own, other) = (c.x[k], c.x[1 - k]);
    let equal = o.apply("eq", &[own, other]);
    let half = o.scale(c.g, 0.5);
    let shared = o.choose(equal, half, c.g);
    let beaten = o.apply(beaten, &[own, other]);
    o.except(beaten, shared)
}

/// The cotangent goes to the value within its bounds, the bounds themselves included, and else to the bound that holds.
fn clamped(o: &mut Ops, c: &Pulled, k: usize) -> Val {
    let &[x, min, max] = &c.x[..] else { unreachable!("clamp has three operands") };
    let (left, right, joined) = match k {
        0 => (("ge", x, min), ("le", x, max), "logical_and"),
        1 => (("lt", x, min), ("lt", min, max), "logical_and"),
        _ => (("gt", x, max), ("lt", max, min), "logical_or"),
    };
    let [left, right] = [left, right].map(|(compare, a, b)| o.apply(compare, &[a, b]));
    let goes = o.apply(joined, &[left, right]);
    o.only(goes, c.g)
}

fn unary(x: &[Num], float: fn(f64) -> f64, int: fn(i64) -> i64) -> Num {
    match x[0] {
        Num::I(a) => Num::I(int(a)),
        _ => Num::F(float(x[0].f())),
    }
}

fn number(x: &[Num], float: fn(f64, f64) -> f64, int: fn(i64, i64) -> i64) -> Num {
    match x[0] {
        Num::I(a) => Num::I(int(a, x[1].i())),
        _ => Num::F(float(x[0].f(), x[1].f())),
    }
}

fn int_div(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

fn int_rem(a: i64, b: i64) -> i64 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

fn int_floor_div(a: i64, b: i64) -> i64 {
    let away = int_rem(a, b) != 0 && (a < 0) != (b < 0);
    int_div(a, b).wrapping_sub(away as i64)
}

fn int_remainder(a: i64, b: i64) -> i64 {
    let rem = int_rem(a, b);
    if rem != 0 && (rem < 0) != (b < 0) { rem.wrapping_add(b) } else { rem }
}

/// Goes through fmod as Python does, because the rounded quotient may lie above the true one: 1 / 0.1 floors to 9.
fn floor_divide(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    let rem = a % b;
    let mut quotient = (a - rem) / b;
    if rem != 0.0 && (b < 0.0) != (rem < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return 0f64.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

fn remainder(a: f64, b: f64) -> f64 {
    let rem = a % b;
    if rem != 0.0 && (b < 0.0) != (rem < 0.0) { rem + b } else { rem }
}

/// The smaller of two floats; NaN wins and -0 is below +0.
pub(crate) fn minimum(a: f64, b: f64) -> f64 {
    match a.partial_cmp(&b) {
        None => f64::NAN,
        Some(std::cmp::Ordering::Equal) if a.is_sign_negative() => a,
        Some(std::cmp::Ordering::Less) => a,
        _ => b,
    }
}

/// The larger of two floats; NaN wins and -0 is below +0.
pub(crate) fn maximum(a: f64, b: f64) -> f64 {
    -minimum(-a, -b)
}

fn int_powi(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (_, 0..) => base.wrapping_pow(exponent as u32),
        (1, _) => 1,
        (-1, _) => 1 - 2 * (exponent & 1),
        _ => 0,
    }
}

/// By squaring, from the lowest bit of the exponent up; both back ends multiply in this order.
fn float_powi(base: f64, exponent: i64) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, exponent.unsigned_abs());
    while left > 0 {
        if left & 1 == 1 {
            result *= square;
        }
        square *= square;
        left >>= 1;
    }
    if exponent < 0 { 1.0 / result } else { result }
}

#[cfg(test)]
mod tests {
    use super::super::Op;
    use super::*;

    fn eval(name: &str, args: &[Num]) -> Num {
        (Op::named(name).scalar.as_ref().unwrap().eval)(args)
    }

    fn floats(name: &str, a: f64, b: f64) -> f64 {
        eval(name, &[Num::F(a), Num::F(b)]).f()
    }

    fn ints(name: &str, pairs: &[(i64, i64)]) -> Vec<i64> {
        pairs.iter().map(|&(a, b)| eval(name, &[Num::I(a), Num::I(b)]).i()).collect()
    }

    #[test]
    fn integer_division_floors_or_truncates() {
        let pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2)];
        assert_eq!(ints("floor_divide", &pairs), [3, -4, -4, 3]);
        assert_eq!(ints("remainder", &pairs), [1, 1, -1, -1]);
        assert_eq!(ints("div", &pairs), [3, -3, -3, 3]);
        assert_eq!(ints("fmod", &pairs), [1, -1, 1, -1]);
    }

    #[test]
    fn the_most_negative_integer_divided_by_minus_one_wraps() {
        let pair = [(i64::MIN, -1)];
        assert_eq!(ints("floor_divide", &pair), [i64::MIN]);
        assert_eq!(ints("remainder", &pair), [0]);
        assert_eq!(eval("abs", &[Num::I(i64::MIN)]), Num::I(i64::MIN));
    }

    #[test]
    fn float_floor_division_goes_through_fmod() {
        assert_eq!(floats("floor_divide", 1.0, 0.1), 9.0);
        assert_eq!(floats("floor_divide", 0.5, 0.1), 4.0);
        assert_eq!(floats("floor_divide", 6.0, 0.2), 29.0);
        assert_eq!(floats("floor_divide", -1.0, 0.1), -10.0);
    }

    #[test]
    fn nan_and_negative_zero_win_in_minimum() {
        assert!(floats("minimum", f64::NAN, 1.0).is_nan() && floats("minimum", 1.0, f64::NAN).is_nan());
        assert!(floats("minimum", 0.0, -0.0).is_sign_negative() && floats("minimum", -0.0, 0.0).is_sign_negative());
        assert!(floats("maximum", 0.0, -0.0).is_sign_positive() && floats("maximum", -0.0, 0.0).is_sign_positive());
    }

    #[test]
    fn clamp_lets_nan_bounds_win() {
        let clamp = |v, lo, hi| eval("clamp", &[Num::F(v), Num::F(lo), Num::F(hi)]).f();
        assert!(clamp(0.0, f64::NAN, 1.0).is_nan());
        assert!(clamp(5.0, 1.0, f64::NAN).is_nan());
        assert_eq!(clamp(5.0, 0.0, 1.0), 1.0);
    }

    #[test]
    fn integer_powers_wrap_and_negative_ones_vanish() {
        let powi = |a, n| eval("powi", &[Num::I(a), Num::I(n)]).i();
        assert_eq!([powi(2, -1), powi(1, -1), powi(-1, -1), powi(-1, -2), powi(0, -1)], [0, 1, -1, 1, 0]);
        assert_eq!(powi(3, 39), 4052555153018976267);
    }
}
