//! The reverse sweep.

use super::{Request, Seed, flow};
use crate::graph::{Graph, Place};
use crate::op::{Build, Check, Gradient, Ops, Pulled, Relation, Val};
use crate::types::{Dim, Ty};

/// Adds the gradients of a graph whose composites on the way have closed forms.
pub(super) fn run(graph: Graph, request: &Request) -> Graph {
    let active = flow::active(&graph, request);
    let cotangents = graph.nodes.iter().map(|node| vec![None; node.outs.len()]).collect();
    let mut sweep = Sweep { graph, cotangents };
    sweep.seed(&request.seeds);
    for node in (0..active.len()).rev().filter(|&node| active[node]) {
        sweep.pull(node, &active);
    }
    let gradients: Vec<Val> = request.wrt.iter().map(|&input| sweep.gradient(input)).collect();
    sweep.graph.outs.extend(gradients);
    sweep.graph
}

/// A graph under construction and the cotangents found so far, by node of the forward part and result.
struct Sweep {
    graph: Graph,
    cotangents: Vec<Vec<Option<Val>>>,
}

impl Sweep {
    fn seed(&mut self, seeds: &[Seed]) {
        for (out, &seed) in self.graph.outs.clone().into_iter().zip(seeds) {
            let cotangent = match seed {
                Seed::One => Some(one(&mut self.graph, out)),
                Seed::Input => Some(cotangent(&mut self.graph, out)),
                Seed::Nothing => None,
            };
            cotangent.into_iter().for_each(|cotangent| self.accumulate(out, cotangent));
        }
    }

    /// Hands the cotangents of a node on to its operands.
    fn pull(&mut self, id: usize, active: &[bool]) {
        let ups = self.cotangents[id].clone();
        let node = self.graph.nodes[id].clone();
        let Gradient::Built(pull) = node.op.gradient else { return };
        if ups.iter().all(Option::is_none) {
            return;
        }
        let (first, checks) = (self.graph.nodes.len(), self.graph.checks.len());
        let outs: Vec<Val> = (0..ups.len() as u32).map(|out| Val { node: id as u32, out }).collect();
        let call = Pulled::new(&mut Ops(&mut self.graph), &node.args, &node.attrs, &outs, ups);
        for (k, &arg) in node.args.iter().enumerate().filter(|(_, arg)| active[arg.node as usize]) {
            let cotangent = Gradient::pull(pull, &mut Ops(&mut self.graph), &call, k);
            self.accumulate(arg, cotangent);
        }
        let place = self.backward_place(node.place);
        self.graph.nodes[first..].iter_mut().for_each(|new| new.place = place);
        // Cotangents have the extents of what they belong to, so the checks of the forward part are enough.
        self.graph.checks.truncate(checks);
    }

    /// A place for the gradient of what stands at a place.
    fn backward_place(&mut self, forward: u32) -> u32 {
        let place = &self.graph.places[forward as usize];
        if place.text.is_empty() {
            return forward;
        }
        let text = format!("gradient of {}", place.text);
        let place = Place { text, ..place.clone() };
        let known = self.graph.places.iter().position(|known| *known == place);
        known.unwrap_or_else(|| {
            self.graph.places.push(place);
            self.graph.places.len() - 1
        }) as u32
    }

    fn accumulate(&mut self, val: Val, cotangent: Val) {
        let before = self.cotangents[val.node as usize][val.out as usize];
        let sum = before.map_or(cotangent, |before| Ops(&mut self.graph).add(before, cotangent));
        self.cotangents[val.node as usize][val.out as usize] = Some(sum);
    }

    /// The gradient of an input, in whose node cotangents stay.
    fn gradient(&mut self, input: u32) -> Val {
        let input = self.graph.inputs[input as usize];
        let Ty { dtype, dims } = self.graph.ty(input).clone();
        let found = self.cotangents[input.node as usize][0];
        let gradient = found.unwrap_or_else(|| Ops(&mut self.graph).zeros(dims, dtype));
        let name = self.graph.node(input).name.as_ref().map(|name| format!("{name}_grad"));
        let node = &mut self.graph.nodes[gradient.node as usize];
        node.name = node.name.take().or(name);
        gradient
    }
}

fn one(graph: &mut Graph, like: Val) -> Val {
    let dtype = graph.ty(like).dtype;
    Ops(graph).one(dtype)
}

/// A further input, of the type of a result.
fn cotangent(graph: &mut Graph, out: Val) -> Val {
    let Ty { dtype, dims } = graph.ty(out).clone();
    let cotangent = graph.input("cotangent", dtype, dims.len());
    let text = "`cotangent` has extent {left} where the result has {right}";
    let given = std::mem::replace(&mut graph.nodes[cotangent.node as usize].outs[0].dims, dims.clone());
    let checks = given.into_iter().zip(dims).map(|(left, right): (Dim, Dim)| {
        (cotangent.node, Check { left, right, relation: Relation::Equal, text: text.to_owned() })
    });
    graph.checks.extend(checks);
    cotangent
}
