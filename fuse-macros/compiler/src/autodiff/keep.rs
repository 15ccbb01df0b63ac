//! What the forward part keeps for the backward part, and what is computed again: a minimum cut on bytes.
//!
//! A value is kept, or computed again from others that are. Between what only the forward part has and what the backward
//! part reads, the kept values are a cut, and its bytes are those that lie in memory in between. Inputs and results
//! are there anyhow. What is dear to compute is never computed again: products, reductions, scans, whatever goes through an
//! index, and composites of such. The exceptions are what kernels make again on their way (`again`), and draws.

use super::split::is_free;
use crate::graph::Graph;
use crate::op::{Class, Val};
use std::collections::{BTreeSet, VecDeque};

/// What the backward part keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// How many nodes the forward part has.
    pub forward: usize,
    /// The values that are kept, in program order.
    pub kept: Vec<Val>,
}

/// Chooses what is kept of a forward graph, which is the first part of the joint one. `again`: the nodes that are computed
/// again in any case.
pub(super) fn run(graph: &Graph, joint: &Graph, memory: f64, again: &BTreeSet<usize>) -> Cut {
    let read = read(graph, joint);
    let cost = |val: Val| cost(graph, val);
    let mut kept = smallest(graph, &read, again, &cost);
    // What there is room for beside need not be computed again; small values first.
    let bytes = |set: &BTreeSet<Val>| set.iter().map(|&val| cost(val)).sum::<u64>() as f64;
    let is_free = |val: &Val| is_free(graph.node(*val)) || again.contains(&(val.node as usize));
    let mut others: Vec<Val> = read.iter().copied().filter(|val| !is_free(val)).collect();
    let (least, most) = (bytes(&kept), bytes(&others.iter().copied().collect()));
    let room = least + memory * (most - least).max(0.0);
    others.sort_by_key(|&val| cost(val));
    for val in others {
        if bytes(&kept) + cost(val) as f64 <= room {
            kept.insert(val);
        }
    }
    Cut { forward: graph.nodes.len(), kept: needed(graph, &read, &kept).into_iter().collect() }
}

/// The kept values from which all that is read can be computed.
fn needed(graph: &Graph, read: &BTreeSet<Val>, kept: &BTreeSet<Val>) -> BTreeSet<Val> {
    let mut needed = BTreeSet::new();
    let mut open: Vec<Val> = read.iter().copied().collect();
    let mut seen = BTreeSet::new();
    while let Some(val) = open.pop() {
        if kept.contains(&val) {
            needed.insert(val);
        } else if seen.insert(val) {
            open.extend(&graph.node(val).args);
        }
    }
    needed
}

/// The values of the forward part that the gradients read.
fn read(graph: &Graph, joint: &Graph) -> BTreeSet<Val> {
    let forward = graph.nodes.len();
    let mut needed = vec![false; joint.nodes.len()];
    let mut read = BTreeSet::new();
    let mut want = |needed: &mut Vec<bool>, val: Val| match (val.node as usize) < forward {
        true => {
            read.insert(val);
        }
        false => needed[val.node as usize] = true,
    };
    joint.outs[graph.outs.len()..].iter().for_each(|&out| want(&mut needed, out));
    for id in (forward..joint.nodes.len()).rev() {
        if needed[id] {
            joint.nodes[id].args.iter().for_each(|&arg| want(&mut needed, arg));
        }
    }
    read
}

/// The bytes that keeping a value takes; nothing for what is there anyhow.
fn cost(graph: &Graph, val: Val) -> u64 {
    if graph.inputs.contains(&val) || graph.outs.contains(&val) {
        return 0;
    }
    let ty = &graph.nodes[val.node as usize].outs[val.out as usize];
    // A generic float counts as one of single precision.
    let bytes = ty.dtype.bytes().max(if ty.dtype.is_float() { 2 } else { 1 });
    ty.likely_numel() as u64 * bytes as u64
}

/// Whether a node may be computed again.
fn is_cheap(graph: &Graph, node: usize) -> bool {
    match graph.nodes[node].op.class {
        Class::Elementwise | Class::View(_) => true,
        Class::Composite => {
            let node = &graph.nodes[node];
            let mut opened = Graph { syms: graph.syms.clone(), ..Graph::new("opened") };
            let args: Vec<Val> = node
                .args
                .iter()
                .map(|arg| opened.push_typed(graph.node(*arg).op, vec![], vec![], vec![types(graph, *arg)]))
                .collect();
            let first = opened.nodes.len();
            node.op.open(&mut opened, &args, &node.attrs);
            (first..opened.nodes.len()).all(|inner| is_free(&opened.nodes[inner]) || is_cheap(&opened, inner))
        }
        _ => is_free(&graph.nodes[node]),
    }
}

fn types(graph: &Graph, val: Val) -> crate::types::Ty {
    graph.nodes[val.node as usize].outs[val.out as usize].clone()
}

/// The values of a minimum cut.
fn smallest(graph: &Graph, read: &BTreeSet<Val>, again: &BTreeSet<usize>, cost: &impl Fn(Val) -> u64) -> BTreeSet<Val> {
    let mut vals: Vec<Val> = Vec::new();
    let mut firsts = Vec::new();
    for (id, node) in graph.nodes.iter().enumerate() {
        firsts.push(vals.len());
        vals.extend((0..node.outs.len() as u32).map(|out| Val { node: id as u32, out }));
    }
    let number = |val: Val| firsts[val.node as usize] + val.out as usize;
    // Every value has two vertices, and the edge between them is what keeping it costs.
    let (source, sink) = (2 * vals.len(), 2 * vals.len() + 1);
    let mut network = Network::new(2 * vals.len() + 2);
    for (k, &val) in vals.iter().enumerate() {
        let node = graph.node(val);
        let is_again = again.contains(&(val.node as usize));
        network.edge(2 * k, 2 * k + 1, if is_again { Network::ENDLESS } else { cost(val) });
        let is_input = graph.inputs.contains(&val);
        if is_input || !is_again && !is_free(node) && !is_cheap(graph, val.node as usize) {
            network.edge(source, 2 * k, Network::ENDLESS);
        }
        if read.contains(&val) {
            network.edge(2 * k + 1, sink, Network::ENDLESS);
        }
        for &arg in &node.args {
            network.edge(2 * number(arg) + 1, 2 * k, Network::ENDLESS);
        }
    }
    network.flow(source, sink);
    // Of all minimum cuts the one next to the backward part leaves the least to compute again.
    let leads = network.leading_to(sink);
    vals.iter().enumerate().filter(|(k, _)| !leads[2 * k] && leads[2 * k + 1]).map(|(_, &val)| val).collect()
}

/// A network of capacities.
struct Network {
    /// The edges by vertex.
    edges: Vec<Vec<usize>>,
    /// Where each edge leads and what is left of its capacity; the next one of a pair is its reverse.
    ends: Vec<(usize, u64)>,
}

impl Network {
    const ENDLESS: u64 = u64::MAX / 4;

    fn new(vertices: usize) -> Network {
        Network { edges: vec![vec![]; vertices], ends: vec![] }
    }

    fn edge(&mut self, from: usize, to: usize, capacity: u64) {
        self.edges[from].push(self.ends.len());
        self.ends.push((to, capacity));
        self.edges[to].push(self.ends.len());
        self.ends.push((from, 0));
    }

    /// Sends as much as possible, along shortest ways.
    fn flow(&mut self, source: usize, sink: usize) {
        while let Some(way) = self.way(source, sink) {
            let room = way.iter().map(|&edge| self.ends[edge].1).min().expect("a way has edges");
            if room >= Network::ENDLESS {
                // A value that may not be computed again and is read has an edge of its own, so there is none.
                return;
            }
            for edge in way {
                self.ends[edge].1 -= room;
                self.ends[edge ^ 1].1 += room;
            }
        }
    }

    /// The edges of a shortest way with room.
    fn way(&self, source: usize, sink: usize) -> Option<Vec<usize>> {
        let mut came_by: Vec<Option<usize>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            for &edge in &self.edges[vertex] {
                let (to, room) = self.ends[edge];
                if room == 0 || to == source || came_by[to].is_some() {
                    continue;
                }
                came_by[to] = Some(edge);
                if to == sink {
                    let back = |&edge: &usize| came_by[self.ends[edge ^ 1].0];
                    return Some(std::iter::successors(Some(edge), back).collect());
                }
                queue.push_back(to);
            }
        }
        None
    }

    /// The vertices from which there is still room on a way to the sink.
    fn leading_to(&self, sink: usize) -> Vec<bool> {
        let mut leads = vec![false; self.edges.len()];
        let mut queue = VecDeque::from([sink]);
        leads[sink] = true;
        while let Some(vertex) = queue.pop_front() {
            for &edge in &self.edges[vertex] {
                // The reverse of an edge away from here is one that comes here.
                let (from, room) = (self.ends[edge].0, self.ends[edge ^ 1].1);
                if room > 0 && !std::mem::replace(&mut leads[from], true) {
                    queue.push_back(from);
                }
            }
        }
        leads
    }
}
