//! Uses the equalities that are checked on entry: once `x.1 == w.0` has been checked, both are one symbol.
//!
//! It comes first, because a sum whose operands have extents `a` and `b` has the extent `broadcast(a, b)` until it is
//! known that `a` is `b`, and kernels fuse only over extents that are known to be equal.

use crate::graph::Graph;
use crate::op::{Attr, Relation};
use crate::types::{Dim, Sym};
use std::collections::BTreeMap;

/// Puts one symbol in the place of those that are checked to equal it. The checks stay as they are: they make it true.
pub fn run(mut graph: Graph) -> Graph {
    let mut known: BTreeMap<Sym, Dim> = BTreeMap::new();
    let checks = graph.checks.iter().filter(|(_, check)| check.relation == Relation::Equal);
    for (_, check) in graph.guards.iter().chain(checks) {
        let (left, right) = (resolve(&check.left, &known), resolve(&check.right, &known));
        if let Some((sym, dim)) = definition(&left, &right) {
            let now = BTreeMap::from([(sym, dim.clone())]);
            known.values_mut().for_each(|d| *d = resolve(d, &now));
            known.insert(sym, dim);
        }
    }
    if !known.is_empty() {
        substitute(&mut graph, &known);
    }
    graph
}

fn resolve(dim: &Dim, known: &BTreeMap<Sym, Dim>) -> Dim {
    dim.substitute(&|sym| known.get(&sym).cloned().unwrap_or(Dim::Sym(sym)))
}

/// An equality as the definition of a symbol: the later of two symbols, so that inputs keep the names of earlier ones.
fn definition(left: &Dim, right: &Dim) -> Option<(Sym, Dim)> {
    match (left, right) {
        (Dim::Sym(a), Dim::Sym(b)) if a != b => Some((*a.max(b), Dim::Sym(*a.min(b)))),
        (Dim::Sym(a), other) | (other, Dim::Sym(a)) if !mentions(other, *a) => Some((*a, other.clone())),
        _ => None,
    }
}

fn mentions(dim: &Dim, sym: Sym) -> bool {
    let mut found = false;
    dim.for_each_sym(&mut |s| found |= s == sym);
    found
}

fn substitute(graph: &mut Graph, known: &BTreeMap<Sym, Dim>) {
    let replace = |d: &mut Dim| *d = resolve(d, known);
    for node in &mut graph.nodes {
        node.outs.iter_mut().flat_map(|ty| &mut ty.dims).for_each(replace);
        for attr in &mut node.attrs {
            match attr {
                Attr::Dim(d) => replace(d),
                Attr::Dims(ds) => ds.iter_mut().for_each(replace),
                _ => {}
            }
        }
    }
}
