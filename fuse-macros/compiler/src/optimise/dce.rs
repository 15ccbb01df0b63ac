//! Removes what no result needs. Inputs and scalars stay, which are the signature; so does a random draw, which moves the
//! generator on for whoever draws next, and what may fail on the values it meets, as it would in the original.

use crate::graph::{Graph, Rewrite};
use crate::op::OpEffect;

/// Removes dead nodes.
pub fn run(graph: Graph) -> Graph {
    let live = live(&graph);
    let mut graph = graph;
    // A check stays if its node goes: the original would have failed there. It moves to the first node.
    for (node, _) in graph.checks.iter_mut().chain(&mut graph.guards) {
        if !live[*node as usize] {
            *node = 0;
        }
    }
    Rewrite::retain(graph, &live)
}

fn live(graph: &Graph) -> Vec<bool> {
    let mut live = vec![false; graph.nodes.len()];
    for val in graph.outs.iter().chain(&graph.inputs).chain(&graph.scalars) {
        live[val.node as usize] = true;
    }
    for (id, node) in graph.nodes.iter().enumerate().rev() {
        live[id] |= node.op.effect == OpEffect::Rng || graph.may_fault(id as u32);
        if live[id] {
            node.args.iter().for_each(|a| live[a.node as usize] = true);
        }
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Attr, Build, Literal, Op};
    use crate::types::DType;

    /// Whether a quotient that nobody reads stays.
    fn stays(dtype: DType, divisor: Option<i64>) -> bool {
        let mut graph = Graph::new("test");
        let (a, b) = (graph.input("a", dtype, 1), graph.input("b", dtype, 1));
        let divisor = match divisor {
            Some(k) => graph.push(Op::named("constant"), &[], vec![Attr::Lit(Literal::Int(k)), Attr::DType(dtype)]),
            None => b,
        };
        graph.push(Op::named("div"), &[a, divisor], vec![]);
        graph.outs = vec![a];
        run(graph).nodes.iter().any(|node| node.op.name == "div")
    }

    #[test]
    fn a_division_that_may_fail_stays() {
        assert!(stays(DType::I32, None));
        assert!(stays(DType::I32, Some(0)));
        assert!(!stays(DType::I32, Some(2)));
        assert!(!stays(DType::F32, None));
    }
}
