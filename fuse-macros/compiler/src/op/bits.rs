//! Operations on the bits of integers; bools are one bit wide.

use super::ParamKind::Operand;
use super::rules;
use super::{Accepts, Class, Fact, Gradient, Num, OpInfo, Scalar, param};

const UNARY: OpInfo = OpInfo {
    class: Class::Elementwise,
    accepts: Accepts::Bits,
    infer: rules::elementwise,
    gradient: Gradient::Undefined,
    ..OpInfo::BASE
};

const BINARY: OpInfo = OpInfo { params: &[param("other", Operand)], ..UNARY };

const SHIFT: OpInfo = OpInfo { params: &[param("count", Operand)], accepts: Accepts::Int, ..UNARY };

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "bitwise_and",
        doc: "The bits set in both elements",
        operator: Some("&"),
        scalar: Some(Scalar {
            cuda: "{0} & {1}",
            rust: "{0} & {1}",
            eval: |x| bits(x, |a, b| a & b),
            facts: &[Fact::Commutative, Fact::RightIdentityInt(-1), Fact::Exact],
            ..Scalar::BASE
        }),
        ..BINARY
    },
    OpInfo {
        name: "bitwise_or",
        doc: "The bits set in one of the elements",
        operator: Some("|"),
        scalar: Some(Scalar {
            cuda: "{0} | {1}",
            rust: "{0} | {1}",
            eval: |x| bits(x, |a, b| a | b),
            facts: &[Fact::Commutative, Fact::RightIdentityInt(0), Fact::Exact],
            ..Scalar::BASE
        }),
        ..BINARY
    },
    OpInfo {
        name: "bitwise_xor",
        doc: "The bits set in exactly one of the elements",
        operator: Some("^"),
        scalar: Some(Scalar {
            cuda: "{0} ^ {1}",
            rust: "{0} ^ {1}",
            eval: |x| bits(x, |a, b| a ^ b),
            facts: &[Fact::Commutative, Fact::RightIdentityInt(0), Fact::Exact],
            ..Scalar::BASE
        }),
        ..BINARY
    },
    OpInfo {
        name: "bitwise_not",
        doc: "The bits that are not set",
        operator: Some("!"),
        scalar: Some(Scalar {
            cuda: "!{0}",
            rust: "!{0}",
            int: Some(("~{0}", "!{0}")),
            eval: |x| match x[0] {
                Num::B(a) => Num::B(!a),
                a => Num::I(!a.i()),
            },
            facts: &[Fact::Involution, Fact::Exact],
            ..Scalar::BASE
        }),
        ..UNARY
    },
    OpInfo {
        name: "bitwise_left_shift",
        doc: "The bits moved up by `count`; 0 where that is outside the width",
        operator: Some("<<"),
        scalar: Some(Scalar {
            cuda: "fuse_left_shift({0}, {1})",
            rust: "m::bitwise_left_shift({0}, {1})",
            eval: |x| Num::I(if (0..64).contains(&x[1].i()) { x[0].i() << x[1].i() } else { 0 }),
            facts: &[Fact::RightIdentityInt(0), Fact::Exact],
            ..Scalar::BASE
        }),
        ..SHIFT
    },
    OpInfo {
        name: "bitwise_right_shift",
        doc: "The bits moved down by `count`, keeping the sign; 0 or -1 by the sign where that is outside the width",
        operator: Some(">>"),
        scalar: Some(Scalar {
            cuda: "fuse_right_shift({0}, {1})",
            rust: "m::bitwise_right_shift({0}, {1})",
            eval: |x| Num::I(x[0].i() >> if (0..64).contains(&x[1].i()) { x[1].i() } else { 63 }),
            facts: &[Fact::RightIdentityInt(0), Fact::Exact],
            ..Scalar::BASE
        }),
        ..SHIFT
    },
];

fn bits(x: &[Num], f: fn(i64, i64) -> i64) -> Num {
    match (x[0], x[1]) {
        (Num::B(a), Num::B(b)) => Num::B(f(a as i64, b as i64) & 1 == 1),
        (a, b) => Num::I(f(a.i(), b.i())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Num, Op};

    fn shift(name: &str, value: i64, count: i64) -> i64 {
        (Op::named(name).scalar.as_ref().unwrap().eval)(&[Num::I(value), Num::I(count)]).i()
    }

    #[test]
    fn shifts_outside_the_width_give_zero_or_the_sign() {
        let right = |v, k| shift("bitwise_right_shift", v, k);
        assert_eq!([right(77, 64), right(-77, 64), right(1, 65), right(8, -1), right(-8, -1)], [0, -1, 0, 0, -1]);
        let left = |v, k| shift("bitwise_left_shift", v, k);
        assert_eq!([left(77, 64), left(-77, 64), left(8, -1)], [0, 0, 0]);
    }
}
