//! Whole functions against finite differences, and what they become.

use crate::common::Rng;
use crate::differences::{HOST, Point};
use fuse_compiler::emit::loops;
use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::{Value, eval};
use fuse_compiler::graph::verify::expect_valid;
use fuse_compiler::op::{Attr, Check, Ops, Relation, Val};
use fuse_compiler::plan::verify::verify;
use fuse_compiler::types::{DType, Dim};
use fuse_compiler::{optimise, schedule};

/// Checks the gradients of a function of f64 tensors of these extents (and of integers below 3 where `i` is asked for),
/// and that what the optimiser makes of them means the same and can be scheduled.
fn check(what: &str, shapes: &[(&str, &[usize])], function: impl FnOnce(&mut Ops, &[Val]) -> Vec<Val>) {
    let mut graph = Graph::new(what);
    let mut rng = Rng::named(what);
    let mut inputs = vec![];
    let vals: Vec<Val> = shapes
        .iter()
        .map(|(name, dims)| {
            let dtype = if *name == "i" { DType::I64 } else { DType::F64 };
            inputs.push(if *name == "i" { rng.index(dims, 3) } else { rng.value(dtype, dims, (-1.0, 1.0)) });
            graph.input(name, dtype, dims.len())
        })
        .collect();
    graph.outs = function(&mut Ops(&mut graph), &vals);
    let point = Point { graph, inputs };
    point.check(what);
    compiles(&point.differentiated());
    crate::splits::check(&point);
}

/// What the optimiser and the scheduler make of a graph; the optimised one has the same values.
pub fn compiles(point: &Point) {
    let wanted = eval(&point.graph, &point.inputs, &HOST).expect("the graph has a value");
    let special = optimise::assume(&point.graph).filter(|special| holds(special, &point.inputs));
    for graph in special.iter().chain([&point.graph]) {
        let optimised = optimise::run(graph.clone(), optimise::Options::default());
        expect_valid(&optimised, "optimise");
        let found = eval(&optimised, &point.inputs, &HOST).expect("what has a value keeps it");
        wanted.iter().zip(&found).for_each(|(wanted, found)| same(wanted, found, &optimised));
        let plan = schedule::run(&optimised, schedule::Options::default());
        verify(&plan);
        crate::turns::check(&loops::text(&plan));
    }
}

/// Whether the guards of a graph hold for these inputs.
fn holds(special: &Graph, inputs: &[Value]) -> bool {
    let mut guarded = special.clone();
    let guards =
        special.guards.iter().cloned().map(|(node, guard)| (node, Check { relation: Relation::Equal, ..guard }));
    guarded.checks.extend(guards);
    eval(&guarded, inputs, &HOST).is_ok()
}

fn same(wanted: &Value, found: &Value, graph: &Graph) {
    assert_eq!(wanted.dims, found.dims, "{graph}");
    for (a, b) in wanted.as_floats().into_iter().zip(found.as_floats()) {
        // Sums may be taken in another order.
        let close = (a - b).abs() <= 1e-11 * a.abs().max(1.0) || (a.is_nan() && b.is_nan()) || a == b;
        assert!(close, "{a} became {b}\n{graph}");
    }
}

fn axis(k: i64) -> Vec<Attr> {
    vec![Attr::Int(k)]
}

#[test]
fn a_perceptron_with_its_loss() {
    let shapes: &[(&str, &[usize])] =
        &[("x", &[4, 3]), ("w1", &[5, 3]), ("b1", &[5]), ("w2", &[3, 5]), ("b2", &[3]), ("i", &[4])];
    check("perceptron", shapes, |o, x| {
        let hidden = o.apply("linear", &x[..3]);
        let hidden = o.apply("gelu", &[hidden]);
        let logits = o.apply("linear", &[hidden, x[3], x[4]]);
        vec![o.apply("cross_entropy", &[logits, x[5]])]
    });
}

#[test]
fn a_residual_network_of_plain_products() {
    let shapes: &[(&str, &[usize])] = &[("x", &[2, 3]), ("w", &[3, 3]), ("b", &[3])];
    check("residual", shapes, |o, x| {
        let mut h = x[0];
        for _ in 0..3 {
            let product = o.apply("matmul", &[h, x[1]]);
            let sum = o.add(product, x[2]);
            let active = o.apply("silu", &[sum]);
            h = o.add(h, active);
        }
        vec![h, o.apply("mean_all", &[h])]
    });
}

#[test]
fn a_transformer_block() {
    let shapes: &[(&str, &[usize])] = &[
        ("x", &[2, 3, 4]),
        ("w_qkv", &[12, 4]),
        ("b_qkv", &[12]),
        ("w_out", &[4, 4]),
        ("b_out", &[4]),
        ("gain", &[4]),
        ("shift", &[4]),
        ("scale", &[4]),
    ];
    check("block", shapes, |o, x| {
        let eps = o.float(1e-5, DType::F64);
        let normal = o.apply("layer_norm", &[x[0], x[5], x[6], eps]);
        let qkv = o.apply("linear", &[normal, x[1], x[2]]);
        let parts = o.with("chunk", &[qkv], vec![Attr::Int(-1), Attr::Int(3)]);
        let heads = [0, 1, 2].map(|out| {
            let [batch, length, _] = o.dims(x[0]).try_into().unwrap();
            let shape = vec![batch, length, Dim::Const(2), Dim::Const(2)];
            let split = o.reshape(Val { out, ..parts }, shape);
            o.permute(split, &[0, 2, 1, 3])
        });
        let attended = o.with("scaled_dot_product_attention", &heads, vec![Attr::Bool(true)]);
        let joined = o.permute(attended, &[0, 2, 1, 3]);
        let joined = o.reshape(joined, o.dims(x[0]));
        let out = o.apply("linear", &[joined, x[3], x[4]]);
        let rate = o.float(0.3, DType::F64);
        let out = o.with("dropout", &[out, rate], vec![Attr::Bool(true)]);
        let h = o.add(x[0], out);
        vec![o.apply("rms_norm", &[h, x[7], eps])]
    });
}

#[test]
fn rows_looked_up_scored_and_gathered() {
    let shapes: &[(&str, &[usize])] = &[("table", &[3, 4]), ("i", &[2, 5]), ("w", &[4, 3])];
    check("lookup", shapes, |o, x| {
        let rows = o.apply("embedding", &[x[0], x[1]]);
        let scores = o.apply("matmul", &[rows, x[2]]);
        let logs = o.with("log_softmax", &[scores], axis(-1));
        let index = o.unsqueeze(x[1], 2);
        let picked = o.with("gather", &[logs, index], axis(2));
        let sums = o.with("cumsum", &[picked], axis(1));
        vec![sums, o.with("std", &[logs], axis(1))]
    });
}

#[test]
fn draws_are_made_once_for_both_directions() {
    let mut graph = Graph::new("dropout");
    let x = graph.input("x", DType::F64, 1);
    let mut o = Ops(&mut graph);
    let rate = o.float(0.5, DType::F64);
    let dropped = o.with("dropout", &[x, rate], vec![Attr::Bool(true)]);
    graph.outs = vec![dropped];
    let x = Value::floats(DType::F64, &[10], &[1.0; 10]);
    let joint = Point { graph, inputs: vec![x] }.differentiated();
    assert_eq!(joint.graph.nodes.iter().filter(|node| node.op.name == "uniform").count(), 1);
}
