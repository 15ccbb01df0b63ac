//! Small programs that between them use every kind of kernel, as graphs.

// Every test binary looks at some of the stages.
#![allow(dead_code)]

use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::graph::{Graph, Place};
use fuse_compiler::op::{Attr, Build, Check, Literal, Op, Relation, Val};
use fuse_compiler::plan::Plan;
use fuse_compiler::types::{DType, Dim, Ty};
use fuse_compiler::{optimise, schedule};

/// Builds a graph in the words of its user.
pub struct Program {
    graph: Graph,
}

impl Program {
    fn new(name: &str) -> Self {
        Program { graph: Graph::new(name) }
    }

    fn input(&mut self, name: &str, dtype: DType, rank: usize) -> Val {
        self.graph.input(name, dtype, rank)
    }

    fn constant(&mut self, value: f64, dtype: DType) -> Val {
        let literal = if dtype.is_int() { Literal::Int(value as i64) } else { Literal::Float(value) };
        self.graph.push_typed(Op::named("constant"), vec![], vec![Attr::Lit(literal)], vec![Ty::new(dtype, [])])
    }

    fn with(&mut self, name: &str, args: &[Val], attrs: Vec<Attr>) -> Val {
        let line = self.graph.places.len() as u32 + 1;
        let text = format!("{name}(..)");
        self.graph.places.push(Place { file: "src/lib.rs".into(), line, column: 5, text, op: String::new() });
        self.graph.try_push(Op::named(name), args, attrs).unwrap_or_else(|fault| panic!("{name}: {}", fault.message))
    }

    /// Says that two extents are equal, as named dims would.
    fn same(&mut self, (x, i): (Val, usize), (y, k): (Val, usize)) {
        let (left, right) = (self.graph.ty(x).dims[i].clone(), self.graph.ty(y).dims[k].clone());
        self.graph.checks.push((0, Check { left, right, relation: Relation::Equal, text: String::new() }));
    }

    fn op(&mut self, name: &str, args: &[Val]) -> Val {
        self.with(name, args, vec![])
    }

    fn along(&mut self, name: &str, x: Val, dim: i64) -> Val {
        self.with(name, &[x], vec![Attr::Int(dim)])
    }

    fn cast(&mut self, x: Val, dtype: DType) -> Val {
        self.with("cast", &[x], vec![Attr::DType(dtype)])
    }

    fn named(&mut self, name: &str, val: Val) -> Val {
        self.graph.nodes[val.node as usize].name = Some(name.to_owned());
        val
    }

    /// The plan of a result and of the gradients of these inputs.
    fn plan_with_gradients(mut self, out: Val, wrt: Vec<u32>) -> Made {
        self.graph.outs = vec![out];
        self.graph = autodiff::run(self.graph, &Request { wrt, seeds: vec![Seed::Input] });
        let outs = self.graph.outs.clone();
        self.plan(&outs)
    }

    fn plan(mut self, outs: &[Val]) -> Made {
        self.graph.outs = outs.to_vec();
        let graph = optimise::run(self.graph.clone(), optimise::Options::default());
        let plan = schedule::run(&graph, schedule::Options::default());
        Made { written: self.graph, graph, plan }
    }
}

/// A program in every stage.
pub struct Made {
    /// As its user wrote it.
    pub written: Graph,
    /// As it is scheduled.
    pub graph: Graph,
    /// As it runs.
    pub plan: Plan,
}

/// The plan of every program with its name.
pub fn all() -> Vec<(&'static str, Plan)> {
    made().into_iter().map(|(name, made)| (name, made.plan)).collect()
}

/// Every program with its name.
pub fn made() -> Vec<(&'static str, Made)> {
    use DType::{BF16, F16, F32, F64, I64, Param, U8};
    vec![
        ("pointwise", pointwise(F32)),
        ("pointwise_f16", pointwise(F16)),
        ("pointwise_generic", pointwise(Param(0))),
        ("chain", chain()),
        ("bias_gelu", bias_gelu(BF16)),
        ("bias_gelu_f64", bias_gelu(F64)),
        ("softmax", softmax(F32)),
        ("softmax_generic", softmax(Param(0))),
        ("softmax_gradient", softmax_gradient(F32)),
        ("layer_norm", layer_norm(BF16)),
        ("rms_norm", rms_norm(BF16)),
        ("norm_residual", norm_residual(BF16)),
        ("dropout", dropout(F32)),
        ("dropout_twice", dropout_twice(F32)),
        ("dropout_of_sums", dropout_of_sums()),
        ("cross_entropy", cross_entropy(F32)),
        ("column_sum", column_sum(F32)),
        ("column_max", column_argmax(BF16)),
        ("sum_all", sum_all(F32)),
        ("counting", counting()),
        ("argmax", argmax(F32)),
        ("argmax_u8", argmax(U8)),
        ("transpose_add", transpose_add(F32)),
        ("linear_relu", linear_relu(BF16)),
        ("linear_relu_f32", linear_relu(F32)),
        ("linear_relu_generic", linear_relu(Param(0))),
        ("projections_generic", projections(Param(0))),
        ("gate_up", gate_up(BF16)),
        ("gate_up_f32", gate_up(F32)),
        ("several_maps", several_maps(Param(0))),
        ("small_rows", small_rows(Param(0))),
        ("batched_matmul", batched_matmul(F64)),
        ("matmul_i64", batched_matmul(I64)),
        ("integers", integers()),
        ("casts", casts()),
        ("embedding", embedding(BF16)),
        ("scatter_add", scatter_add(F32)),
        ("write_rows", write_rows(BF16)),
        ("cumsum", cumsum(F16)),
        ("attention", attention(BF16)),
        ("attention_fused", attention_fused(F16)),
        ("attention_floats", attention_fused(F32)),
        ("attention_generic", attention_fused(Param(0))),
        ("attention_training", attention_training(BF16)),
        ("attention_training_masked", attention_training_masked(BF16)),
        ("attention_training_generic", attention_training(Param(0))),
    ]
}

fn pointwise(dtype: DType) -> Made {
    let mut p = Program::new("pointwise");
    let (x, y) = (p.input("x", dtype, 2), p.input("y", dtype, 2));
    let (two, one) = (p.constant(2.0, dtype), p.constant(1.0, dtype));
    let scaled = p.op("mul", &[x, two]);
    let shifted = p.op("add", &[scaled, one]);
    let relu = p.op("relu", &[shifted]);
    let gate = p.op("sigmoid", &[x]);
    let gate = p.named("gate", gate);
    let product = p.op("mul", &[relu, gate]);
    let out = p.op("add", &[product, y]);
    p.plan(&[out])
}

/// A chain of functions, one of whose values is kept and read again at its end.
fn chain() -> Made {
    let mut p = Program::new("chain");
    let (x, y) = (p.input("x", DType::F32, 1), p.input("y", DType::F16, 1));
    let y = p.cast(y, DType::F32);
    let scaled = p.op("mul", &[x, y]);
    let first = p.op("tanh", &[scaled]);
    let first = p.named("first", first);
    let second = p.op("exp", &[first]);
    let third = p.op("sub", &[second, y]);
    let third = p.op("sin", &[third]);
    let out = p.op("mul", &[third, first]);
    let out = p.op("erf", &[out]);
    p.plan(&[second, out])
}

fn bias_gelu(dtype: DType) -> Made {
    let mut p = Program::new("bias_gelu");
    let (x, b) = (p.input("x", dtype, 2), p.input("b", dtype, 1));
    let sum = p.op("add", &[x, b]);
    let out = p.op("gelu", &[sum]);
    p.plan(&[out])
}

fn softmax(dtype: DType) -> Made {
    let mut p = Program::new("softmax");
    let x = p.input("x", dtype, 2);
    let out = p.along("softmax", x, -1);
    p.plan(&[out])
}

/// Forward and backward of a softmax: its values are read by two later walks of one row.
fn softmax_gradient(dtype: DType) -> Made {
    let mut p = Program::new("softmax_gradient");
    let x = p.input("x", dtype, 2);
    let tanh = p.op("tanh", &[x]);
    let out = p.along("softmax", tanh, -1);
    p.plan_with_gradients(out, vec![0])
}

fn layer_norm(dtype: DType) -> Made {
    let mut p = Program::new("layer_norm");
    let (x, w, b) = (p.input("x", dtype, 2), p.input("w", dtype, 1), p.input("b", dtype, 1));
    let eps = p.constant(1e-5, DType::F64);
    let out = p.op("layer_norm", &[x, w, b, eps]);
    p.plan(&[out])
}

fn rms_norm(dtype: DType) -> Made {
    let mut p = Program::new("rms_norm");
    let (x, w) = (p.input("x", dtype, 2), p.input("w", dtype, 1));
    let eps = p.constant(1e-6, DType::F64);
    let out = p.op("rms_norm", &[x, w, eps]);
    p.plan(&[out])
}

/// A row that is read as it is behind its norm.
fn norm_residual(dtype: DType) -> Made {
    let mut p = Program::new("norm_residual");
    let (x, w) = (p.input("x", dtype, 2), p.input("w", dtype, 1));
    let eps = p.constant(1e-6, DType::F64);
    let norm = p.op("rms_norm", &[x, w, eps]);
    let out = p.op("add", &[x, norm]);
    p.plan(&[out])
}

/// Draws at the same positions in two walks over a row.
fn dropout_twice(dtype: DType) -> Made {
    let mut p = Program::new("dropout_twice");
    let x = p.input("x", dtype, 2);
    let rate = p.graph.scalar("rate", DType::F64);
    let dropped = p.with("dropout", &[x, rate], vec![Attr::Bool(true)]);
    let weights = p.along("softmax", dropped, -1);
    let out = p.with("dropout", &[weights, rate], vec![Attr::Bool(true)]);
    p.plan(&[out])
}

/// Random draws of one value a row, a column, and in all.
fn dropout_of_sums() -> Made {
    let mut p = Program::new("dropout_of_sums");
    let x = p.input("x", DType::BF16, 2);
    let rate = p.constant(0.1, DType::F64);
    let sums = [p.along("sum", x, 1), p.along("sum", x, 0), p.op("sum_all", &[x])];
    let outs = sums.map(|sum| p.with("dropout", &[sum, rate], vec![Attr::Bool(true)]));
    let scaled = p.op("mul", &[x, outs[2]]);
    p.plan(&[outs[0], outs[1], outs[2], scaled])
}

fn dropout(dtype: DType) -> Made {
    let mut p = Program::new("dropout");
    let (x, r) = (p.input("x", dtype, 2), p.input("r", dtype, 2));
    let (w, b) = (p.input("w", dtype, 1), p.input("b", dtype, 1));
    let (rate, eps) = (p.constant(0.1, DType::F64), p.constant(1e-5, DType::F64));
    let dropped = p.with("dropout", &[x, rate], vec![Attr::Bool(true)]);
    let sum = p.op("add", &[r, dropped]);
    let out = p.op("layer_norm", &[sum, w, b, eps]);
    p.plan(&[out])
}

fn cross_entropy(dtype: DType) -> Made {
    let mut p = Program::new("loss");
    let (logits, targets) = (p.input("logits", dtype, 2), p.input("targets", DType::I64, 1));
    let out = p.op("cross_entropy", &[logits, targets]);
    p.plan(&[out])
}

fn column_sum(dtype: DType) -> Made {
    let mut p = Program::new("column_sum");
    let x = p.input("x", dtype, 2);
    let square = p.op("mul", &[x, x]);
    let out = p.along("sum", square, 0);
    p.plan(&[out])
}

fn column_argmax(dtype: DType) -> Made {
    let mut p = Program::new("column_argmax");
    let x = p.input("x", dtype, 3);
    let largest = p.along("max", x, 1);
    let at = p.along("argmin", x, 1);
    p.plan(&[largest, at])
}

fn sum_all(dtype: DType) -> Made {
    let mut p = Program::new("sum_all");
    let x = p.input("x", dtype, 3);
    let square = p.op("mul", &[x, x]);
    let out = p.op("sum_all", &[square]);
    p.plan(&[out])
}

fn counting() -> Made {
    let mut p = Program::new("counting");
    let x = p.input("x", DType::F32, 2);
    let half = p.constant(0.5, DType::F32);
    let above = p.op("gt", &[x, half]);
    let count = p.along("sum", above, -1);
    p.plan(&[count])
}

fn argmax(dtype: DType) -> Made {
    let mut p = Program::new("argmax");
    let x = p.input("x", dtype, 2);
    let at = p.along("argmax", x, -1);
    let largest = p.along("max", x, -1);
    p.plan(&[at, largest])
}

fn transpose_add(dtype: DType) -> Made {
    let mut p = Program::new("transpose_add");
    let (x, y) = (p.input("x", dtype, 2), p.input("y", dtype, 2));
    let turned = p.op("t", &[x]);
    let out = p.op("add", &[turned, y]);
    p.plan(&[out])
}

fn linear_relu(dtype: DType) -> Made {
    let mut p = Program::new("linear_relu");
    let (x, w, b) = (p.input("x", dtype, 2), p.input("w", dtype, 2), p.input("b", dtype, 1));
    let product = p.op("matmul", &[x, w]);
    let sum = p.op("add", &[product, b]);
    let out = p.op("relu", &[sum]);
    p.plan(&[out])
}

/// Weights of equal extents.
fn weights<const N: usize>(p: &mut Program, names: [&str; N], dtype: DType) -> [Val; N] {
    let all = names.map(|name| p.input(name, dtype, 2));
    for other in &all[1..] {
        [0, 1].into_iter().for_each(|axis| p.same((all[0], axis), (*other, axis)));
    }
    all
}

fn projections(dtype: DType) -> Made {
    let mut p = Program::new("projections");
    let (x, b) = (p.input("x", dtype, 2), p.input("b", dtype, 1));
    let [wq, wk, wv] = weights(&mut p, ["wq", "wk", "wv"], dtype);
    p.same((b, 0), (wq, 1));
    let [q, k, v] = [wq, wk, wv].map(|w| p.op("matmul", &[x, w]));
    let q = p.op("add", &[q, b]);
    p.plan(&[q, k, v])
}

fn gate_up(dtype: DType) -> Made {
    let mut p = Program::new("gate_up");
    let x = p.input("x", dtype, 2);
    let [gate, up] = weights(&mut p, ["gate", "up"], dtype);
    let opened = p.op("matmul", &[x, gate]);
    let opened = p.op("silu", &[opened]);
    let through = p.op("matmul", &[x, up]);
    let out = p.op("mul", &[opened, through]);
    p.plan(&[out])
}

/// Maps over domains of their own.
fn several_maps(dtype: DType) -> Made {
    let mut p = Program::new("several_maps");
    let (x, y, z) = (p.input("x", dtype, 1), p.input("y", dtype, 2), p.input("z", dtype, 3));
    let p_of_drop = p.constant(0.1, DType::F64);
    let dropped = p.with("dropout", &[x, p_of_drop], vec![Attr::Bool(true)]);
    let turned = p.with("transpose", &[y], vec![Attr::Int(0), Attr::Int(1)]);
    let sum = p.op("add", &[turned, turned]);
    let bent = p.op("tanh", &[z]);
    p.plan(&[dropped, sum, bent])
}

/// Rows of two lengths, and points beside them: heads of queries and keys that are normalised, and a step of a counter.
fn small_rows(dtype: DType) -> Made {
    let mut p = Program::new("small_rows");
    let [q, k] = ["q", "k"].map(|name| {
        let (x, weight) = (p.input(name, dtype, 3), p.input(&format!("{name}_weight"), dtype, 1));
        let epsilon = p.constant(1e-6, DType::F64);
        p.op("rms_norm", &[x, weight, epsilon])
    });
    let count = p.input("count", DType::I64, 1);
    let one = p.constant(1.0, DType::I64);
    let next = p.op("add", &[count, one]);
    p.plan(&[q, k, next])
}

fn batched_matmul(dtype: DType) -> Made {
    let mut p = Program::new("batched_matmul");
    let (a, b) = (p.input("a", dtype, 3), p.input("b", dtype, 2));
    let out = p.op("matmul", &[a, b]);
    p.plan(&[out])
}

/// A product of fp8 with a bias, of which halves and fp8 are kept.
pub fn scaled_matmul() -> Made {
    let mut p = Program::new("scaled_matmul");
    let (a, b) = (p.input("a", DType::F8E4M3, 2), p.input("b", DType::F8E4M3, 2));
    let (scale, other_scale) = (p.input("scale", DType::F32, 0), p.input("other_scale", DType::F32, 0));
    let bias = p.input("bias", DType::F32, 1);
    let turned = p.op("t", &[b]);
    let product = p.with("scaled_matmul", &[a, turned, scale, other_scale], vec![Attr::DType(DType::F32)]);
    let sum = p.op("add", &[product, bias]);
    let outs = [p.cast(sum, DType::BF16), p.cast(sum, DType::F8E4M3)];
    p.plan(&outs)
}

fn integers() -> Made {
    let mut p = Program::new("integers");
    let (x, y) = (p.input("x", DType::I64, 1), p.input("y", DType::I64, 1));
    let (a, b) = (p.input("a", DType::U8, 1), p.input("b", DType::U8, 1));
    let quotient = p.op("floor_divide", &[x, y]);
    let sum = p.op("add", &[quotient, x]);
    let bytes = p.op("mul", &[a, b]);
    let same = p.op("eq", &[a, b]);
    p.plan(&[sum, bytes, same])
}

fn casts() -> Made {
    let mut p = Program::new("casts");
    let x = p.input("x", DType::F64, 1);
    let outs: Vec<Val> = DType::ALL.iter().filter(|d| **d != DType::F64).map(|d| p.cast(x, *d)).collect();
    let bytes = p.input("bytes", DType::U8, 1);
    let wide = p.cast(bytes, DType::BF16);
    p.plan(&[outs, vec![wide]].concat())
}

fn embedding(dtype: DType) -> Made {
    let mut p = Program::new("embedding");
    let (weight, index) = (p.input("weight", dtype, 2), p.input("index", DType::I64, 2));
    let looked_up = p.op("embedding", &[weight, index]);
    let out = p.op("relu", &[looked_up]);
    p.plan(&[out])
}

fn scatter_add(dtype: DType) -> Made {
    let mut p = Program::new("scatter_add");
    let (x, index, src) = (p.input("x", dtype, 2), p.input("index", DType::I64, 2), p.input("src", dtype, 2));
    let out = p.with("scatter_add", &[x, index, src], vec![Attr::Int(0)]);
    p.plan(&[out])
}

/// A row at a position on the device, then a part at one that is known, into caches that may be written in place.
fn write_rows(dtype: DType) -> Made {
    let mut p = Program::new("write_rows");
    let (keys, values, table) = (p.input("keys", dtype, 2), p.input("values", dtype, 2), p.input("table", dtype, 2));
    let index = p.input("place", DType::I64, 1);
    p.same((keys, 0), (table, 0));
    let row = p.with("index_select", &[table, index], vec![Attr::Int(0)]);
    let row = p.along("softmax", row, -1);
    let keys = p.with("index_copy_", &[keys, index, row], vec![Attr::Int(0)]);
    let range = [3, 4].map(|at| Attr::Dim(Dim::Const(at)));
    let values = p.with("slice_assign", &[values, row], [vec![Attr::Int(0)], range.to_vec()].concat());
    p.plan(&[keys, values])
}

fn cumsum(dtype: DType) -> Made {
    let mut p = Program::new("cumsum");
    let x = p.input("x", dtype, 2);
    let out = p.along("cumsum", x, -1);
    p.plan(&[out])
}

fn attention(dtype: DType) -> Made {
    let mut p = Program::new("attention");
    let (q, k, v) = (p.input("q", dtype, 4), p.input("k", dtype, 4), p.input("v", dtype, 4));
    let turned = p.with("transpose", &[k], vec![Attr::Int(-2), Attr::Int(-1)]);
    let scores = p.op("matmul", &[q, turned]);
    let weights = p.along("softmax", scores, -1);
    let out = p.op("matmul", &[weights, v]);
    p.plan(&[out])
}

/// Causal attention under a bias, over extents that are known to be equal.
fn attention_fused(dtype: DType) -> Made {
    let mut p = Program::new("attention_fused");
    let (q, k, v) = (p.input("q", dtype, 3), p.input("k", dtype, 3), p.input("v", dtype, 3));
    let bias = p.input("bias", dtype, 3);
    [(k, 0), (v, 0), (bias, 0)].into_iter().for_each(|(x, axis)| p.same((q, 0), (x, axis)));
    p.same((q, 1), (bias, 1));
    p.same((k, 1), (bias, 2));
    let out = p.with("scaled_dot_product_attention", &[q, k, v, bias], vec![Attr::Bool(true)]);
    p.plan(&[out])
}

/// Attention behind a mask and its gradients: a way back asks for the mask in two of its kernels' programs.
fn attention_training_masked(dtype: DType) -> Made {
    let mut p = Program::new("attention_training_masked");
    let (q, k, v) = (p.input("q", dtype, 3), p.input("k", dtype, 3), p.input("v", dtype, 3));
    let mask = p.input("mask", DType::Bool, 3);
    [(k, 0), (v, 0), (mask, 0)].into_iter().for_each(|(x, axis)| p.same((q, 0), (x, axis)));
    [(v, 1), (mask, 2)].into_iter().for_each(|(x, axis)| p.same((k, 1), (x, axis)));
    [(k, 2), (mask, 1)].into_iter().zip([2, 1]).for_each(|(x, axis)| p.same((q, axis), x));
    let turned = p.with("transpose", &[k], vec![Attr::Int(-2), Attr::Int(-1)]);
    let scores = p.op("matmul", &[q, turned]);
    let least = p.constant(f64::NEG_INFINITY, dtype);
    let scores = p.op("where_cond", &[mask, scores, least]);
    let weights = p.along("softmax", scores, -1);
    let out = p.op("matmul", &[weights, v]);
    p.plan_with_gradients(out, vec![0, 1, 2])
}

/// Attention with dropout and its gradients.
fn attention_training(dtype: DType) -> Made {
    let mut p = Program::new("attention_training");
    let (q, k, v) = (p.input("q", dtype, 3), p.input("k", dtype, 3), p.input("v", dtype, 3));
    [(k, 0), (v, 0)].into_iter().for_each(|(x, axis)| p.same((q, 0), (x, axis)));
    p.same((k, 1), (v, 1));
    p.same((q, 2), (k, 2));
    let turned = p.with("transpose", &[k], vec![Attr::Int(-2), Attr::Int(-1)]);
    let scores = p.op("matmul", &[q, turned]);
    let scale = p.constant(0.125, dtype);
    let scores = p.op("mul", &[scores, scale]);
    let weights = p.along("softmax", scores, -1);
    let rate = p.constant(0.1, DType::F64);
    let weights = p.with("dropout", &[weights, rate], vec![Attr::Bool(true)]);
    let out = p.op("matmul", &[weights, v]);
    p.plan_with_gradients(out, vec![0, 1, 2])
}
