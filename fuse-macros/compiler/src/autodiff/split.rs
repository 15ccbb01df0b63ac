//! Forward and backward as two graphs, for what a tape walks back over.
//!
//! The forward graph gives its results and what the backward graph keeps of it; which values these are, a minimum cut says
//! (`keep`). Draws are not kept: both graphs have all of them, in the same order, and from a generator in the same state the
//! same numbers come again.

use super::keep::Cut;
use super::{Request, Seed, again, flow, keep, open, sweep};
use crate::graph::{Graph, Node, Rewrite, SymDef, SymSource};
use crate::op::{Attr, Class, Op, OpEffect, Source, Val};
use crate::types::{Dim, Sym, Ty};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a tape has to know of a graph that it walks back over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Derivative {
    /// The graph, with its draws as further inputs. Any other gradient is derived from it when it is asked for.
    pub graph: Graph,
    /// Its draws, in order: the op, whose one attribute are the extents.
    pub draws: Vec<(Op, Vec<Dim>)>,
    /// How many of the forward graph's results are the graph's own; then comes what else is kept.
    pub results: usize,
    /// The inputs whose cotangents the backward graph gives.
    pub wrt: Vec<u32>,
    /// The results whose cotangents it takes.
    pub seeds: Vec<u32>,
    /// The inputs of the backward graph before cotangents.
    pub kept: Vec<Kept>,
    /// The host integers of the backward graph, as the forward graph has them.
    pub sizes: Vec<SymSource>,
}

/// What the backward graph reads of the forward one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kept {
    /// An input.
    Input(u32),
    /// A result.
    Result(u32),
}

/// A graph as a forward and a backward one.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// How the two go together.
    pub derivative: Derivative,
    /// The graph, with what is kept as further results.
    pub forward: Graph,
    /// From what is kept and cotangents to cotangents.
    pub backward: Graph,
    /// What is kept and with how many bytes, and what is computed again, for people.
    pub told: Vec<String>,
}

/// Of a backward graph: where the products stand, as indices into its places, with which attention begins that kernels walk back
/// through.
pub type Attended<'a> = &'a dyn Fn(&Graph) -> BTreeSet<u32>;

/// The pair for the cotangents of some inputs, from those of some results. `None`: no cotangent goes through the graph.
/// `memory`: from 0, where as little as possible is kept, to 1, where nothing is computed again but what kernels of attention make
/// again on their way; whether there will be such kernels only the scheduler can tell.
pub fn run(graph: &Graph, wrt: &[u32], seeds: &[u32], memory: f64, attended: Attended<'_>) -> Option<Pair> {
    let graph = with_plain_draws(graph);
    let request = |wrt: &[u32], seeds: &[u32]| {
        let seed = |out| if seeds.contains(&out) { Seed::Input } else { Seed::Nothing };
        Request { wrt: wrt.to_vec(), seeds: (0..graph.outs.len() as u32).map(seed).collect() }
    };
    let active = flow::active(&graph, &request(wrt, seeds));
    let through = |numbers: &[u32], vals: &[Val]| -> Vec<u32> {
        numbers.iter().copied().filter(|&k| active[vals[k as usize].node as usize]).collect()
    };
    let (wrt, seeds) = (through(wrt, &graph.inputs), through(seeds, &graph.outs));
    if wrt.is_empty() || seeds.is_empty() {
        return None;
    }
    let request = request(&wrt, &seeds);
    let opened = open::run(graph.clone(), &request);
    let joint = sweep::run(opened.clone(), &request);
    let parts = Parts { graph, opened, joint, wrt, seeds, memory };
    let found = again::attention(&parts.opened);
    let pair = parts.pair(&found);
    if found.is_empty() {
        return Some(pair);
    }
    let attended = attended(&pair.backward);
    let (kernels, steps): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| attended.contains(&found.place));
    Some(if steps.is_empty() { pair } else { parts.pair(&kernels) })
}

/// What pairs are made of.
struct Parts {
    graph: Graph,
    /// The graph as it is differentiated.
    opened: Graph,
    /// That, and the backward part behind it.
    joint: Graph,
    wrt: Vec<u32>,
    seeds: Vec<u32>,
    memory: f64,
}

impl Parts {
    /// The pair in which this attention is made again.
    fn pair(&self, attention: &[again::Attention]) -> Pair {
        let mut again = again::drawn(&self.opened);
        attention.iter().for_each(|attention| again.extend(&attention.nodes));
        let cut = keep::run(&self.opened, &self.joint, self.memory, &again);
        let (forward, kept) = forward(self.opened.clone(), &cut);
        let results = self.graph.outs.len();
        let (backward, sizes, again) = backward(&self.joint, &cut, results);
        let mut told: Vec<String> = kept.iter().map(|kept| tell(&forward, results, *kept)).collect();
        if !again.is_empty() {
            told.push(format!("computes again {}", again.join(", ")));
        }
        let (graph, draws) = draws_as_inputs(&self.graph);
        let (wrt, seeds) = (self.wrt.clone(), self.seeds.clone());
        let derivative = Derivative { graph, draws, results, wrt, seeds, kept, sizes };
        Pair { derivative, forward, backward, told }
    }
}

/// One value that is kept, in the words of the user.
fn tell(forward: &Graph, results: usize, kept: Kept) -> String {
    let label = |val: Val| label(forward, forward.node(val));
    match kept {
        Kept::Input(k) => format!("keeps the argument {}", label(forward.inputs[k as usize])),
        Kept::Result(k) if (k as usize) < results => format!("keeps the result {}", label(forward.outs[k as usize])),
        Kept::Result(k) => {
            let val = forward.outs[k as usize];
            let ty = &forward.nodes[val.node as usize].outs[val.out as usize];
            let names = |sym: Sym| forward.syms[sym.0 as usize].name.clone();
            let size = match ty.dtype.bytes() {
                0 => format!("{} elements", ty.numel().display(&names)),
                bytes => format!("{} bytes", Dim::mul(ty.numel(), Dim::Const(bytes as i64)).display(&names)),
            };
            format!("keeps {}, {size}", label(val))
        }
    }
}

/// What users know a node by: their variable, their expression, or the op.
fn label(graph: &Graph, node: &Node) -> String {
    let text = || graph.places.get(node.place as usize).map(|place| place.text.clone()).filter(|text| !text.is_empty());
    let label = node.name.clone().or_else(text).unwrap_or_else(|| node.op.name.to_owned());
    format!("`{label}`")
}

/// The graph with random draws as nodes of their own.
fn with_plain_draws(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let opens = |node: &Node| node.op.effect == OpEffect::Rng && node.op.decompose.is_some();
    while graph.nodes.iter().any(opens) {
        graph = Rewrite::run(graph, |new, node| match opens(node) {
            true => node.op.open(new, &node.args, &node.attrs).expect("the op stands for a graph"),
            false => Rewrite::keep(new, node),
        });
    }
    graph
}

fn is_draw(node: &Node) -> bool {
    node.op.effect == OpEffect::Rng
}

/// The graph with inputs in the places of draws, behind its own, and the draws.
fn draws_as_inputs(graph: &Graph) -> (Graph, Vec<(Op, Vec<Dim>)>) {
    let (mut graph, mut draws) = (graph.clone(), Vec::new());
    for (id, node) in graph.nodes.iter_mut().enumerate().filter(|(_, node)| is_draw(node)) {
        draws.push((node.op, node.attrs[0].dims().to_vec()));
        let input = Attr::Int(graph.inputs.len() as i64);
        *node = Node { op: Op::named("input"), attrs: vec![input], ..node.clone() };
        graph.inputs.push(Val { node: id as u32, out: 0 });
    }
    (graph, draws)
}

/// The graph that gives what is kept; where each of that is found.
fn forward(mut graph: Graph, cut: &Cut) -> (Graph, Vec<Kept>) {
    let mut kept = Vec::new();
    for &val in &cut.kept {
        if let Some(input) = graph.inputs.iter().position(|&input| input == val) {
            kept.push(Kept::Input(input as u32));
            continue;
        }
        let known = graph.outs.iter().position(|&out| out == val);
        let result = known.unwrap_or_else(|| {
            graph.outs.push(val);
            graph.outs.len() - 1
        });
        kept.push(Kept::Result(result as u32));
    }
    (graph, kept)
}

/// The graph from what is kept, and the cotangents of results, to the cotangents of inputs; its host integers, and what it
/// computes again.
fn backward(joint: &Graph, cut: &Cut, results: usize) -> (Graph, Vec<SymSource>, Vec<String>) {
    let cotangents = joint.inputs.iter().copied().filter(|input| input.node as usize >= cut.forward);
    let inputs: Vec<Val> = cut.kept.iter().copied().chain(cotangents).collect();
    let mut part = Part { joint, new: Graph::new(format!("{}_backward", joint.name)), moved: BTreeMap::new() };
    part.new.places.clone_from(&joint.places);
    inputs.iter().for_each(|&val| part.input(val));
    joint.scalars.iter().for_each(|&val| part.scalar(val));
    // Also those that nobody reads here: each moves the generator on.
    (0..cut.forward).filter(|&node| is_draw(&joint.nodes[node])).for_each(|node| _ = part.copy(node as u32));
    let outs = &joint.outs[results..];
    part.nodes_for(outs);
    part.new.outs = outs.iter().map(|out| part.moved[out]).collect();
    // What holds between extents holds here, too; where the node that needs it is gone, any other stands for it.
    let moved = |node: u32| part.moved.get(&Val { node, out: 0 }).map_or(0, |val| val.node);
    let checks = joint.checks.iter().filter(|(node, _)| (*node as usize) < cut.forward);
    part.new.checks = checks.map(|(node, check)| (moved(*node), check.clone())).collect();
    let mut again = part.again(cut.forward);
    again.dedup();
    let (graph, sizes) = part.close_symbols(&inputs);
    (graph, sizes, again)
}

/// A part of a graph under construction.
struct Part<'a> {
    joint: &'a Graph,
    new: Graph,
    moved: BTreeMap<Val, Val>,
}

impl Part<'_> {
    fn ty(&self, val: Val) -> Ty {
        self.joint.nodes[val.node as usize].outs[val.out as usize].clone()
    }

    fn input(&mut self, val: Val) {
        let attr = Attr::Int(self.new.inputs.len() as i64);
        let input = self.new.push_typed(Op::named("input"), vec![], vec![attr], vec![self.ty(val)]);
        let node = &mut self.new.nodes[input.node as usize];
        node.name.clone_from(&self.joint.nodes[val.node as usize].name);
        self.new.inputs.push(input);
        self.moved.insert(val, input);
    }

    fn scalar(&mut self, val: Val) {
        let scalar = self.copy(val.node);
        self.new.scalars.push(scalar);
    }

    /// Copies a node that has no operands.
    fn copy(&mut self, node: u32) -> Val {
        self.new.nodes.push(self.joint.nodes[node as usize].clone());
        let copied = Val { node: self.new.nodes.len() as u32 - 1, out: 0 };
        self.moved.insert(Val { node, out: 0 }, copied);
        copied
    }

    /// The nodes that some values need, in program order.
    fn nodes_for(&mut self, outs: &[Val]) {
        let nodes = &self.joint.nodes;
        let mut needed = vec![false; nodes.len()];
        let want = |needed: &mut Vec<bool>, val: &Val| needed[val.node as usize] |= !self.moved.contains_key(val);
        outs.iter().for_each(|out| want(&mut needed, out));
        for id in (0..nodes.len()).rev() {
            if needed[id] {
                nodes[id].args.iter().for_each(|arg| want(&mut needed, arg));
            }
        }
        for (id, node) in nodes.iter().enumerate().filter(|(id, _)| needed[*id]) {
            let args = node.args.iter().map(|arg| self.moved[arg]).collect();
            self.new.nodes.push(Node { args, ..node.clone() });
            let new = self.new.nodes.len() as u32 - 1;
            for out in 0..node.outs.len() as u32 {
                self.moved.entry(Val { node: id as u32, out }).or_insert(Val { node: new, out });
            }
        }
    }

    /// The nodes of the forward part that are computed in this one, too.
    fn again(&self, forward: usize) -> Vec<String> {
        let is_again = |val: &&Val| {
            let node = self.joint.node(**val);
            let is_given = self.new.inputs.contains(&self.moved[*val]);
            (val.node as usize) < forward && !is_given && !is_free(node) && !matches!(node.op.class, Class::View(_))
        };
        self.moved.keys().filter(is_again).map(|val| label(self.joint, self.joint.node(*val))).collect()
    }

    /// Finds every symbol of the part again: as an extent of one of its inputs, or as a host integer.
    fn close_symbols(mut self, inputs: &[Val]) -> (Graph, Vec<SymSource>) {
        let mut closed = BTreeMap::<Sym, Sym>::new();
        let mut syms = Vec::new();
        for (input, &val) in inputs.iter().enumerate() {
            for (axis, dim) in self.ty(val).dims.into_iter().enumerate() {
                if let Dim::Sym(sym) = dim
                    && !closed.contains_key(&sym)
                {
                    closed.insert(sym, Sym(syms.len() as u32));
                    let name = self.joint.syms[sym.0 as usize].name.clone();
                    syms.push(SymDef { name, source: SymSource::Input { input: input as u32, axis: axis as u32 } });
                }
            }
        }
        let mut sizes = Vec::new();
        self.new.for_each_dim(&mut |dim| {
            dim.for_each_sym(&mut |sym| {
                closed.entry(sym).or_insert_with(|| {
                    let SymDef { name, source } = self.joint.syms[sym.0 as usize].clone();
                    syms.push(SymDef { name, source: SymSource::Host(sizes.len() as u32) });
                    sizes.push(source);
                    Sym(syms.len() as u32 - 1)
                });
            })
        });
        self.new.map_dims(&|dim| dim.substitute(&|sym| Dim::Sym(closed[&sym])));
        self.new.syms = syms;
        (self.new, sizes)
    }
}

/// Whether a node stands for a number that costs nothing to have again.
pub(super) fn is_free(node: &Node) -> bool {
    matches!(node.op.class, Class::Source(Source::Scalar | Source::Constant | Source::Size | Source::Index))
}
