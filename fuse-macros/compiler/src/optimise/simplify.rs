//! Algebra that is exact for every float, and constants.
//!
//! Only facts of the op rows are used. `x + 0.0`, `x * 0.0` and `x - x` are no facts: they change -0.0, NaN and
//! infinities.

use crate::graph::{Graph, Node, Rewrite};
use crate::op::{Attr, Class, Fact, Literal, Num, Op, Val, ViewKind};
use crate::types::DType;

/// Simplifies every node.
pub fn run(graph: Graph) -> Graph {
    Rewrite::run(graph, |new, node| match same_as(new, node).or_else(|| folded(new, node)) {
        Some(val) => vec![val],
        None => Rewrite::keep(new, node),
    })
}

/// The operand a node only repeats.
fn same_as(graph: &Graph, node: &Node) -> Option<Val> {
    let &first = node.args.first()?;
    let same_type = graph.node(first).outs[first.out as usize] == node.outs[0];
    match node.op.class {
        Class::View(kind) => is_identity_view(kind, node, same_type).then_some(first),
        Class::Elementwise if node.op == Op::named("cast") => same_type.then_some(first),
        Class::Elementwise => {
            let facts = node.op.scalar.as_ref().map_or(&[][..], |s| s.facts);
            facts.iter().find_map(|fact| by_fact(graph, node, *fact)).filter(|v| graph.node(*v).outs[0] == node.outs[0])
        }
        _ => None,
    }
}

fn is_identity_view(kind: ViewKind, node: &Node, same_type: bool) -> bool {
    match (kind, &node.attrs[0]) {
        (ViewKind::Reshape | ViewKind::Expand, _) => same_type,
        (ViewKind::Permute, Attr::Ints(order)) => order.iter().enumerate().all(|(k, &o)| k as i64 == o),
        _ => false,
    }
}

fn by_fact(graph: &Graph, node: &Node, fact: Fact) -> Option<Val> {
    let is = |literal: Literal| node.args.len() == 2 && constant(graph, node.args[1]) == Some(literal);
    let inner = || {
        let inner = graph.node(node.args[0]);
        (inner.op == node.op && inner.attrs == node.attrs).then_some(inner)
    };
    let float = node.outs[0].dtype.is_float();
    match fact {
        Fact::RightIdentity(c) if float && is(Literal::Float(c)) => Some(node.args[0]),
        Fact::RightIdentityInt(c) if !float && is(Literal::Int(c)) => Some(node.args[0]),
        Fact::Involution => inner().map(|inner| inner.args[0]),
        Fact::Idempotent => inner().map(|_| node.args[0]),
        _ => None,
    }
}

fn constant(graph: &Graph, val: Val) -> Option<Literal> {
    match graph.node(val).attrs.first() {
        Some(Attr::Lit(literal)) if graph.node(val).op.name == "constant" => Some(*literal),
        _ => None,
    }
}

/// A constant in place of an exactly rounded op of constants.
fn folded(graph: &mut Graph, node: &Node) -> Option<Val> {
    let scalar = node.op.scalar.as_ref()?;
    let dtype = node.outs[0].dtype;
    if !scalar.facts.contains(&Fact::Exact) || node.args.is_empty() || !matches!(dtype, DType::F32 | DType::F64) {
        return None;
    }
    let operands: Option<Vec<Num>> = node.args.iter().map(|&v| constant(graph, v).map(|c| num(c, dtype))).collect();
    let value = match (scalar.eval)(&operands?) {
        // One op on f32 operands, done in f64 and then rounded, is rounded as if done in f32: 53 >= 2 * 24 + 2.
        Num::F(x) if dtype == DType::F32 => Literal::Float(f64::from(x as f32)),
        Num::F(x) => Literal::Float(x),
        _ => return None,
    };
    let op = Op::named("constant");
    Some(graph.push_typed(op, vec![], vec![Attr::Lit(value), Attr::DType(dtype)], node.outs.clone()))
}

/// The constant as the op would see it, rounded to its element type.
fn num(literal: Literal, dtype: DType) -> Num {
    match literal {
        Literal::Float(x) if dtype == DType::F32 => Num::F(f64::from(x as f32)),
        Literal::Float(x) => Num::F(x),
        Literal::Int(k) => Num::I(k),
        Literal::Bool(b) => Num::B(b),
    }
}
