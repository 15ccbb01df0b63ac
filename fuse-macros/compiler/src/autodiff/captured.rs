//! The gradients of a `value_and_grad` that was captured inside of a graph.
//!
//! Capture leaves a node in their place, whose operands are the value and its variables. What comes before it is
//! differentiated as a graph of its own, in which the variables are inputs; then the rest follows. Of two that are nested
//! the inner one comes first, so the outer one differentiates what the inner one has become.

use super::{Mistake, Request, Seed, check, run as differentiate};
use crate::graph::{Graph, Node, Place};
use crate::op::{Op, Val};

/// A variable that a value depends on only through an op that has no gradient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// What the user calls the variable.
    pub variable: String,
    /// The op.
    pub op: Op,
    /// Where it stands.
    pub place: Place,
}

/// Puts gradients in all their places.
pub fn run(mut graph: Graph) -> Result<Graph, Cut> {
    while let Some(at) = graph.nodes.iter().position(is_place) {
        graph = Parts::of(graph, at).joined()?;
    }
    Ok(graph)
}

/// The highest order of gradients in a graph, and where they are taken. One that is taken of another is one higher.
pub fn order(graph: &Graph) -> Option<(usize, &Place)> {
    let mut orders = vec![0; graph.nodes.len()];
    for (id, node) in graph.nodes.iter().enumerate().filter(|(_, node)| is_place(node)) {
        let mut depends = vec![false; id];
        node.args[1..].iter().for_each(|variable| depends[variable.node as usize] = true);
        for inner in 0..id {
            depends[inner] |= graph.nodes[inner].args.iter().any(|arg| depends[arg.node as usize]);
        }
        orders[id] = 1 + (0..id).filter(|&inner| depends[inner]).map(|inner| orders[inner]).max().unwrap_or(0);
    }
    let (id, order) = orders.into_iter().enumerate().max_by_key(|(_, order)| *order).filter(|(_, order)| *order > 0)?;
    Some((order, &graph.places[graph.nodes[id].place as usize]))
}

fn is_place(node: &Node) -> bool {
    node.op.name == "gradients"
}

/// A graph in three parts: before a place of gradients, that place, and behind it.
struct Parts {
    /// Its results are the value, then the results of all its nodes in order.
    before: Graph,
    place: Node,
    behind: Graph,
}

impl Parts {
    fn of(mut graph: Graph, at: usize) -> Parts {
        let behind = graph.nodes.split_off(at + 1);
        let place = graph.nodes.pop().expect("the place is a node");
        let is_before = |val: &Val| (val.node as usize) < at;
        let split = |vals: &mut Vec<Val>| vals.split_off(vals.iter().take_while(|val| is_before(val)).count());
        let (inputs, scalars) = (split(&mut graph.inputs), split(&mut graph.scalars));
        let checks = graph.checks.iter().take_while(|(node, _)| (*node as usize) < at).count();
        let checks = graph.checks.split_off(checks);
        let outs = std::mem::take(&mut graph.outs);
        graph.outs = vec![place.args[0]];
        graph.outs.extend(graph.nodes.iter().enumerate().flat_map(results));
        Parts {
            before: graph,
            place,
            behind: Graph { nodes: behind, inputs, scalars, outs, checks, ..Graph::default() },
        }
    }

    fn joined(self) -> Result<Graph, Cut> {
        let Parts { mut before, place, behind } = self;
        let variables = &place.args[1..];
        let inputs = before.inputs.len();
        before.inputs.extend(variables);
        let request = Request {
            wrt: (inputs..inputs + variables.len()).map(|input| input as u32).collect(),
            seeds: (0..before.outs.len()).map(|out| if out == 0 { Seed::One } else { Seed::Nothing }).collect(),
        };
        if let Err(Mistake::Undefined { input, op, place }) = check(&before, &request) {
            let variable = before.node(before.inputs[input as usize]).name.clone().unwrap_or_default();
            return Err(Cut { variable, op, place: before.places[place as usize].clone() });
        }
        let counts: Vec<usize> = before.nodes.iter().chain([&place]).map(|node| node.outs.len()).collect();
        let mut joined = differentiate(before, &request);
        joined.inputs.truncate(inputs);
        let mut results = joined.outs.split_off(1).into_iter();
        let moved = counts.into_iter().map(|count| results.by_ref().take(count).collect()).collect();
        append(&mut joined, behind, moved);
        Ok(joined)
    }
}

fn results((id, node): (usize, &Node)) -> impl Iterator<Item = Val> {
    (0..node.outs.len() as u32).map(move |out| Val { node: id as u32, out })
}

/// Adds what comes behind the place. `moved`: where the results of each node before are now.
fn append(graph: &mut Graph, behind: Graph, mut moved: Vec<Vec<Val>>) {
    let now = |moved: &[Vec<Val>], val: Val| moved[val.node as usize][val.out as usize];
    for mut node in behind.nodes {
        node.args = node.args.iter().map(|&arg| now(&moved, arg)).collect();
        moved.push(results((graph.nodes.len(), &node)).collect());
        graph.nodes.push(node);
    }
    let list = |vals: Vec<Val>| vals.into_iter().map(|val| now(&moved, val)).collect::<Vec<_>>();
    graph.inputs.extend(list(behind.inputs));
    graph.scalars.extend(list(behind.scalars));
    graph.outs = list(behind.outs);
    let check = |(node, check)| (now(&moved, Val { node, out: 0 }).node, check);
    graph.checks.extend(behind.checks.into_iter().map(check));
}
