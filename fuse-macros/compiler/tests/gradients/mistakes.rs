//! Requests that make no sense.

use fuse_compiler::autodiff::{Mistake, Request, Seed, check};
use fuse_compiler::graph::Graph;
use fuse_compiler::op::{Attr, Op, Ops, Val};
use fuse_compiler::types::DType;

/// What is wrong with the gradient of a function of a float and an integer vector for one of them.
fn mistake(wrt: u32, function: impl FnOnce(&mut Ops, Val, Val) -> Val) -> Option<Mistake> {
    let mut graph = Graph::new("mistake");
    let (x, k) = (graph.input("x", DType::F32, 1), graph.input("k", DType::I64, 1));
    graph.outs = vec![function(&mut Ops(&mut graph), x, k)];
    check(&graph, &Request { wrt: vec![wrt], seeds: vec![Seed::Input] }).err()
}

#[test]
fn integers_have_no_gradient() {
    let found = mistake(1, |_, x, _| x);
    assert_eq!(found, Some(Mistake::Input { input: 1, dtype: DType::I64 }));
    let found = mistake(0, |o, x, _| o.with("argmax", &[x], vec![Attr::Int(0)]));
    assert_eq!(found, Some(Mistake::Output { out: 0, dtype: DType::I64 }));
}

#[test]
fn the_op_that_cuts_an_input_off_is_named() {
    let cut = |name: &str| Some((0, Op::named(name)));
    let named = |found: Option<Mistake>| match found {
        Some(Mistake::Undefined { input, op, .. }) => Some((input, op)),
        _ => None,
    };
    let compared = mistake(0, |o, x, _| {
        let above = o.against_zero("gt", x);
        let number = o.cast(above, DType::F32);
        o.scale(number, 2.0)
    });
    assert_eq!(named(compared), cut("gt"));
    let converted = mistake(0, |o, x, k| {
        let whole = o.cast(x, DType::I64);
        let sum = o.add(whole, k);
        o.cast(sum, DType::F32)
    });
    assert_eq!(named(converted), cut("cast"));
    let divided = mistake(0, |o, x, _| {
        let two = o.float(2.0, DType::F32);
        o.apply("floor_divide", &[x, two])
    });
    assert_eq!(named(divided), cut("floor_divide"));
}

#[test]
fn a_gradient_of_zero_is_no_mistake() {
    assert_eq!(mistake(0, |o, x, _| o.apply("floor", &[x])), None);
    assert_eq!(mistake(0, |o, x, _| o.apply("detach", &[x])), None);
    assert_eq!(mistake(0, |o, _, k| o.cast(k, DType::F32)), None);
    let beside = mistake(0, |o, x, _| {
        let above = o.against_zero("gt", x);
        o.only(above, x)
    });
    assert_eq!(beside, None);
}
