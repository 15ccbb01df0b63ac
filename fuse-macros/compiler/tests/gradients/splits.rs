//! Forward and backward as two graphs give what one graph gives, whatever is kept.

use crate::differences::{HOST, Point};
use fuse_compiler::autodiff::split::{self, Kept, Pair};
use fuse_compiler::graph::eval::{Host, Value, eval};
use fuse_compiler::graph::verify::expect_valid;
use fuse_compiler::graph::{Graph, SymSource};
use fuse_compiler::op::{Attr, Build, Op, OpEffect, Ops, Val};
use fuse_compiler::types::DType;
use std::collections::BTreeSet;

/// Splits a point's graph with several budgets, and compares with the gradients of the joint graph.
pub fn check(point: &Point) {
    let joint = point.differentiated();
    let wanted = eval(&joint.graph, &joint.inputs, &HOST).expect("the joint graph has a value");
    let (values, gradients) = wanted.split_at(point.graph.outs.len());
    let cotangents = &joint.inputs[point.inputs.len()..];
    let floats = floats(&point.graph, &point.graph.inputs);
    let seeds = self::floats(&point.graph, &point.graph.outs);
    let in_steps = |_: &Graph| BTreeSet::new();
    let in_kernels = |graph: &Graph| (0..graph.places.len() as u32).collect();
    let attended: [split::Attended<'_>; 2] = [&in_steps, &in_kernels];
    for (memory, attended) in [(0.0, 0), (0.0, 1), (0.5, 0), (1.0, 1)].map(|(memory, k)| (memory, attended[k])) {
        let Some(pair) = split::run(&point.graph, &floats, &seeds, memory, attended) else { continue };
        expect_valid(&pair.forward, "forward");
        expect_valid(&pair.backward, "backward");
        let (found, cotangents_found) = run(&pair, point, &seeds, cotangents);
        assert_eq!(found[..values.len()], *values, "{}", pair.forward);
        for (&input, found) in pair.derivative.wrt.iter().zip(&cotangents_found) {
            let at = floats.iter().position(|&float| float == input).expect("it is a float");
            close(&gradients[at], found, &pair);
        }
    }
}

fn floats(graph: &Graph, vals: &[Val]) -> Vec<u32> {
    (0..vals.len() as u32).filter(|&k| graph.ty(vals[k as usize]).dtype.is_float()).collect()
}

/// The results of the forward graph, and of the backward one on what is kept of them.
fn run(pair: &Pair, point: &Point, seeds: &[u32], cotangents: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let known = &pair.derivative;
    let forward = eval(&pair.forward, &point.inputs, &HOST).unwrap_or_else(|e| panic!("{e:?}\n{}", pair.forward));
    let kept = known.kept.iter().map(|kept| match *kept {
        Kept::Input(k) => point.inputs[k as usize].clone(),
        Kept::Result(k) => forward[k as usize].clone(),
    });
    let ups = known.seeds.iter().map(|seed| {
        let at = seeds.iter().position(|known| known == seed).expect("it has a cotangent");
        cotangents[at].clone()
    });
    let inputs: Vec<Value> = kept.chain(ups).collect();
    let ints: Vec<i64> = known.sizes.iter().map(|size| extent(size, point)).collect();
    let host = Host { ints: &ints, ..HOST };
    let backward = eval(&pair.backward, &inputs, &host).unwrap_or_else(|e| panic!("{e:?}\n{}", pair.backward));
    (forward, backward)
}

fn extent(size: &SymSource, point: &Point) -> i64 {
    match *size {
        SymSource::Input { input, axis } => point.inputs[input as usize].dims[axis as usize] as i64,
        SymSource::Host(_) => unreachable!("these graphs have no host integers"),
    }
}

fn close(wanted: &Value, found: &Value, pair: &Pair) {
    assert_eq!(wanted.dims, found.dims, "{}", pair.backward);
    for (a, b) in wanted.as_floats().into_iter().zip(found.as_floats()) {
        let close = (a - b).abs() <= 1e-11 * a.abs().max(1.0) || (a.is_nan() && b.is_nan()) || a == b;
        assert!(close, "{a} became {b}\n{}\n{}", pair.forward, pair.backward);
    }
}

/// Names of what is kept, in order.
fn kept(function: impl FnOnce(&mut Ops, Val, Val) -> Val, memory: f64) -> Vec<String> {
    let mut graph = Graph::new("f");
    let (x, w) = (graph.input("x", DType::F32, 2), graph.input("w", DType::F32, 2));
    graph.outs = vec![function(&mut Ops(&mut graph), x, w)];
    let pair = split::run(&graph, &[0, 1], &[0], memory, &|_| BTreeSet::new()).expect("gradients go through it");
    let name = |val: Val| match pair.forward.node(val) {
        node if node.op.name == "input" => node.name.clone().unwrap_or_default(),
        node => node.op.name.to_owned(),
    };
    let place = |kept: &Kept| match *kept {
        Kept::Input(k) => name(pair.forward.inputs[k as usize]),
        Kept::Result(k) => name(pair.forward.outs[k as usize]),
    };
    pair.derivative.kept.iter().map(place).collect()
}

#[test]
fn an_elementwise_chain_is_computed_again_from_the_product_before_it() {
    let chain = |o: &mut Ops, x: Val, w: Val| {
        let product = o.apply("matmul", &[x, w]);
        let active = o.apply("gelu", &[product]);
        let squashed = o.apply("tanh", &[active]);
        o.apply("matmul", &[squashed, w])
    };
    assert_eq!(kept(chain, 0.0), ["x", "w", "product"]);
    assert_eq!(kept(chain, 1.0), ["x", "w", "product", "tanh"]);
}

#[test]
fn a_result_is_kept_for_nothing() {
    assert_eq!(
        kept(
            |o, x, w| {
                let sum = o.add(x, w);
                o.apply("relu", &[sum])
            },
            0.0
        ),
        ["relu"]
    );
    let rows = |o: &mut Ops, x: Val, w: Val| {
        let product = o.apply("matmul", &[x, w]);
        o.with("softmax", &[product], vec![Attr::Int(-1)])
    };
    assert_eq!(kept(rows, 0.0), ["x", "w", "softmax"]);
}

#[test]
fn draws_are_made_again_and_not_kept() {
    let dropped = |o: &mut Ops, x: Val, w: Val| {
        let p = o.float(0.5, DType::F64);
        let dropped = o.with("dropout", &[x, p], vec![Attr::Bool(true)]);
        o.mul(dropped, w)
    };
    assert_eq!(kept(dropped, 0.0), ["x", "w"]);
    assert_eq!(kept(dropped, 1.0), ["w", "mul"]);
}

/// What moves the generator on does so in both graphs.
#[test]
fn both_graphs_have_all_draws() {
    let mut graph = Graph::new("f");
    let x = graph.input("x", DType::F32, 2);
    let o = &mut Ops(&mut graph);
    let p = o.float(0.5, DType::F64);
    let noise = o.with("normal", &[], vec![Attr::Dims(o.dims(x))]);
    let noisy = o.add(x, noise);
    let dropped = o.with("dropout", &[noisy, p], vec![Attr::Bool(true)]);
    graph.outs = vec![dropped];
    let pair = split::run(&graph, &[0], &[0], 0.0, &|_| BTreeSet::new()).expect("gradients go through it");
    let draws = |graph: &Graph| {
        let drawn = graph.nodes.iter().filter(|node| node.op.effect == OpEffect::Rng);
        drawn.map(|node| (node.op, graph.nodes[0].outs[0].dims == node.outs[0].dims)).collect::<Vec<_>>()
    };
    assert_eq!(draws(&pair.forward), [(Op::named("normal"), true), (Op::named("uniform"), true)]);
    assert_eq!(draws(&pair.backward), draws(&pair.forward));
    let drawn: Vec<Op> = pair.derivative.draws.iter().map(|(op, _)| *op).collect();
    assert_eq!(drawn, [Op::named("normal"), Op::named("uniform")]);
}
