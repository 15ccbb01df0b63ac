//! Kernels and layouts for the tests of this folder.

use super::{Access, Geometry, Target};
use crate::autodiff::{self, Request, Seed};
use crate::graph::Graph;
use crate::op::{Attr, Build, Check, Op, Relation, Val};
use crate::plan::{Kernel, Matmul, Plan, Step};
use crate::types::DType;
use crate::{optimise, schedule};

pub(super) const H200: Target =
    Target { capability: 90, multiprocessors: 132, shared_per_block: 227 << 10, shared_per_multiprocessor: 228 << 10 };

/// The softmax over the last axis of a matrix of halves.
pub(super) fn softmax() -> Plan {
    plan(|graph| {
        let x = graph.input("x", DType::BF16, 2);
        graph.push(Op::named("softmax"), &[x], vec![Attr::Int(1)])
    })
}

/// `x + y.t()`, of which the second is turned.
pub(super) fn transpose_add() -> Plan {
    plan(|graph| {
        let (x, y) = (graph.input("x", DType::F32, 2), graph.input("y", DType::F32, 2));
        let turned = graph.push(Op::named("transpose"), &[y], vec![Attr::Int(0), Attr::Int(1)]);
        graph.push(Op::named("add"), &[x, turned], vec![])
    })
}

/// A product of two matrices.
pub(super) fn product(dtype: DType) -> Plan {
    plan(|graph| {
        let (x, w) = (graph.input("x", dtype, 2), graph.input("w", dtype, 2));
        graph.push(Op::named("matmul"), &[x, w], vec![])
    })
}

/// What follows a product of two matrices of halves.
pub(super) fn behind_product(follow: impl FnOnce(&mut Graph, Val) -> Vec<Val>) -> Plan {
    plan_of(|graph| {
        let [x, w] = ["x", "w"].map(|name| graph.input(name, DType::BF16, 2));
        let product = graph.push(Op::named("matmul"), &[x, w], vec![]);
        follow(graph, product)
    })
}

/// A product of two matrices of fp8.
pub(super) fn scaled_product() -> Plan {
    plan(|graph| {
        let [a, b] = ["a", "b"].map(|name| graph.input(name, DType::F8E4M3, 2));
        let scales = ["scale", "other_scale"].map(|name| graph.input(name, DType::F32, 0));
        graph.push(Op::named("scaled_matmul"), &[a, b, scales[0], scales[1]], vec![Attr::DType(DType::BF16)])
    })
}

/// So many products of one operand with weights of equal extents; the first may be a gate of the last.
pub(super) fn siblings(dtype: DType, count: usize, is_gate: bool) -> Plan {
    plan_of(|graph| {
        let x = graph.input("x", dtype, 2);
        let weights: Vec<Val> = (0..count).map(|n| graph.input(&format!("w{n}"), dtype, 2)).collect();
        for weight in &weights[1..] {
            for axis in [0, 1] {
                let [left, right] = [weights[0], *weight].map(|of| graph.ty(of).dims[axis].clone());
                graph.checks.push((0, Check { left, right, relation: Relation::Equal, text: String::new() }));
            }
        }
        let products = weights.into_iter().map(|weight| graph.push(Op::named("matmul"), &[x, weight], vec![]));
        let products: Vec<Val> = products.collect();
        if !is_gate {
            return products;
        }
        let gate = graph.push(Op::named("silu"), &[products[0]], vec![]);
        vec![graph.push(Op::named("mul"), &[gate, products[count - 1]], vec![])]
    })
}

/// Causal attention of halves, by heads.
pub(super) fn attention() -> Plan {
    plan(|graph| {
        let [q, k, v] = ["q", "k", "v"].map(|name| graph.input(name, DType::BF16, 2));
        graph.push(Op::named("scaled_dot_product_attention"), &[q, k, v], vec![Attr::Bool(true)])
    })
}

/// The same with a way back.
pub(super) fn attention_and_back() -> Plan {
    let mut graph = Graph::new("sample");
    let [q, k, v] = ["q", "k", "v"].map(|name| graph.input(name, DType::BF16, 2));
    graph.outs = vec![graph.push(Op::named("scaled_dot_product_attention"), &[q, k, v], vec![Attr::Bool(true)])];
    let request = Request { wrt: vec![0, 1, 2], seeds: vec![Seed::Input] };
    let graph = optimise::run(autodiff::run(graph, &request), optimise::Options::default());
    schedule::run(&graph, schedule::Options::default())
}

fn plan(build: impl FnOnce(&mut Graph) -> Val) -> Plan {
    plan_of(|graph| vec![build(graph)])
}

fn plan_of(build: impl FnOnce(&mut Graph) -> Vec<Val>) -> Plan {
    let mut graph = Graph::new("sample");
    graph.outs = build(&mut graph);
    let graph = optimise::run(graph, optimise::Options::default());
    schedule::run(&graph, schedule::Options::default())
}

/// The first step of a plan that begins with a product.
pub(super) fn matmul(plan: &Plan) -> &Matmul {
    let Some(Step::Matmul(matmul)) = plan.steps.first() else { panic!("{} begins with a product", plan.name) };
    matmul
}

/// The last kernel of a plan, the general one where operands might broadcast.
pub(super) fn kernel(plan: &Plan) -> &Kernel {
    let Some(Step::Kernel(kernel)) = plan.steps.last() else { panic!("{} ends in a kernel", plan.name) };
    kernel
}

/// Rows of halves from an address on, and as many results.
pub(super) fn rows(rows: i64, len: i64, address: u64) -> Geometry {
    let operand = Access { strides: vec![len, 1], address, bytes: 2, indexed: false };
    Geometry { outer: vec![rows], inner: vec![len], operands: vec![operand.clone(), operand] }
}

/// Square matrices, of which the second is turned.
pub(super) fn square(n: i64) -> Geometry {
    let operand = |strides: [i64; 2]| Access { strides: strides.to_vec(), address: 0, bytes: 4, indexed: false };
    Geometry { outer: vec![n, n], inner: vec![], operands: vec![operand([n, 1]), operand([1, n]), operand([n, 1])] }
}
