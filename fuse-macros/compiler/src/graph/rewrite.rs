//! Rebuilding a graph node by node, the plumbing of every pass.

use super::{Graph, Node};
use crate::op::{Check, Val};

/// A graph under construction from an older one.
pub struct Rewrite {
    /// The new graph; symbols, places and checks are those of the old one.
    pub graph: Graph,
    /// New values by old node and result.
    map: Vec<Vec<Val>>,
}

impl Rewrite {
    /// Visits the nodes of a graph in order; `visit` adds what replaces a node and returns its results.
    pub fn run(old: Graph, visit: impl FnMut(&mut Graph, &Node) -> Vec<Val>) -> Graph {
        Rewrite::walk(old, |_| true, visit)
    }

    /// Leaves out nodes that no node which stays needs.
    pub fn retain(old: Graph, stays: &[bool]) -> Graph {
        Rewrite::walk(old, |node| stays[node], Rewrite::keep)
    }

    fn walk(old: Graph, stays: impl Fn(usize) -> bool, mut visit: impl FnMut(&mut Graph, &Node) -> Vec<Val>) -> Graph {
        let Graph { name, syms, nodes, inputs, scalars, outs, checks, guards, places } = old;
        let graph = Graph { name, syms, places, ..Graph::default() };
        let mut rewrite = Rewrite { graph, map: Vec::with_capacity(nodes.len()) };
        let mut moved = Vec::with_capacity(nodes.len());
        for (id, mut node) in nodes.into_iter().enumerate() {
            if !stays(id) {
                moved.push(0);
                rewrite.map.push(vec![]);
                continue;
            }
            node.args = node.args.iter().map(|&v| rewrite.of(v)).collect();
            let first = rewrite.graph.nodes.len();
            let results = visit(&mut rewrite.graph, &node);
            rewrite.adopt(first, &node, &results);
            let same = (first..rewrite.graph.nodes.len()).find(|&new| rewrite.graph.nodes[new].op == node.op);
            moved.push(same.map_or(results.first().map_or(0, |v| v.node), |new| new as u32));
            rewrite.map.push(results);
        }
        // Checks of nodes a pass adds repeat what the old node checked already, and an error names the op that was written.
        let follow = |list: Vec<(u32, Check)>| list.into_iter().map(|(node, c)| (moved[node as usize], c)).collect();
        let (checks, guards) = (follow(checks), follow(guards));
        let list = |vals: &[Val]| vals.iter().map(|&v| rewrite.of(v)).collect::<Vec<_>>();
        let (inputs, scalars, outs) = (list(&inputs), list(&scalars), list(&outs));
        Graph { inputs, scalars, outs, checks, guards, ..rewrite.graph }
    }

    /// Copies a node as it is.
    pub fn keep(graph: &mut Graph, node: &Node) -> Vec<Val> {
        graph.nodes.push(node.clone());
        let id = graph.nodes.len() as u32 - 1;
        (0..node.outs.len() as u32).map(|out| Val { node: id, out }).collect()
    }

    fn of(&self, val: Val) -> Val {
        self.map[val.node as usize][val.out as usize]
    }

    /// New nodes stand where the old one stood, and its name goes to the node that takes its place.
    fn adopt(&mut self, first: usize, old: &Node, results: &[Val]) {
        for node in &mut self.graph.nodes[first..] {
            node.place = old.place;
        }
        if let Some(result) = results.first()
            && result.node as usize >= first
        {
            self.graph.nodes[result.node as usize].name.clone_from(&old.name);
        }
    }
}
