//! Algebra that is exact for every float, and constants.
//!
//! Only facts of the op rows are used. `x + 0.0`, `x * 0.0` and `x - x` are no facts: they change -0.0, NaN and
//! infinities.

use crate::graph::{Graph, Node, Rewrite};
use crate::op::{Attr, Build, Class, Fact, Literal, Num, Op, Source, Val, ViewKind};
use crate::types::Ty;

/// Simplifies every node.
pub fn run(graph: Graph) -> Graph {
    Rewrite::run(graph, |new, node| {
        match same_as(new, node).or_else(|| folded(new, node)).or_else(|| moved(new, node)) {
            Some(val) => vec![val],
            None => Rewrite::keep(new, node),
        }
    })
}

/// The operand a node only repeats.
fn same_as(graph: &Graph, node: &Node) -> Option<Val> {
    let &first = node.args.first()?;
    let same_type = graph.node(first).outs[first.out as usize] == node.outs[0];
    match node.op.class {
        Class::View(kind) => is_identity_view(kind, node, same_type).then_some(first),
        Class::Elementwise if node.op == Op::named("cast") => match same_type {
            true => Some(first),
            false => narrow_again(graph, node),
        },
        Class::Elementwise => {
            let facts = node.op.scalar.as_ref().map_or(&[][..], |s| s.facts);
            facts.iter().find_map(|fact| by_fact(graph, node, *fact)).filter(|v| graph.node(*v).outs[0] == node.outs[0])
        }
        _ => None,
    }
}

/// What a value was before it was brought to its compute type, if it goes back to its own: widening is exact.
fn narrow_again(graph: &Graph, node: &Node) -> Option<Val> {
    widened(graph, node.args[0]).filter(|&narrow| *graph.ty(narrow) == node.outs[0])
}

/// What moves elements moves them before they are widened: they are smaller there, and a cast back finds the one it undoes.
/// An expansion stays behind the cast, which is done once for what it repeats.
fn moved(graph: &mut Graph, node: &Node) -> Option<Val> {
    let moves = match node.op.class {
        Class::View(kind) => kind != ViewKind::Expand,
        class => class == Class::Join,
    };
    let narrow: Vec<Val> = node.args.iter().map(|&arg| widened(graph, arg)).collect::<Option<_>>().filter(|_| moves)?;
    let dtype = graph.ty(*narrow.first()?).dtype;
    if narrow.iter().any(|&val| graph.ty(val).dtype != dtype) {
        return None;
    }
    let ty = Ty { dtype, ..node.outs[0].clone() };
    let moved = graph.push_typed(node.op, narrow, node.attrs.clone(), vec![ty]);
    Some(graph.push_typed(Op::named("cast"), vec![moved], vec![Attr::DType(node.outs[0].dtype)], node.outs.clone()))
}

/// What a value was before it was brought to its compute type.
fn widened(graph: &Graph, val: Val) -> Option<Val> {
    let wide = graph.node(val);
    let narrow = *wide.args.first().filter(|_| wide.op.name == "cast")?;
    let dtype = graph.ty(narrow).dtype;
    (dtype != wide.outs[0].dtype && dtype.compute() == wide.outs[0].dtype).then_some(narrow)
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

/// A constant in place of what is known: a size, a converted constant, an exactly rounded op of constants.
///
/// Types narrower or more generic than their compute type are left alone: where they are rounded is for the back ends.
fn folded(graph: &mut Graph, node: &Node) -> Option<Val> {
    let dtype = node.outs.first()?.dtype;
    if dtype.is_narrow() || dtype.is_generic() {
        return None;
    }
    let literal = match known(graph, node)?.cast(dtype) {
        Num::F(x) => Literal::Float(x),
        Num::I(k) => Literal::Int(k),
        Num::B(b) => Literal::Bool(b),
    };
    let attrs = vec![Attr::Lit(literal), Attr::DType(dtype)];
    Some(graph.push_typed(Op::named("constant"), vec![], attrs, node.outs.clone()))
}

/// The value of a node, not yet rounded to its element type.
fn known(graph: &Graph, node: &Node) -> Option<Num> {
    if node.op.class == Class::Source(Source::Size) {
        return node.attrs[0].dim().as_const().map(Num::I);
    }
    let args: Vec<Num> = node.args.iter().map(|&arg| constant_num(graph, arg)).collect::<Option<_>>()?;
    let scalar = match &node.op.scalar {
        Some(scalar) => scalar,
        None if node.op == Op::named("cast") => return args.first().copied(),
        None => return None,
    };
    let faults = scalar.zero_fault && args.get(1) == Some(&Num::I(0));
    // One op on f32 operands, done in f64 and then rounded, is rounded as if done in f32: 53 >= 2 * 24 + 2.
    (scalar.facts.contains(&Fact::Exact) && !args.is_empty() && !faults).then(|| (scalar.eval)(&args))
}

/// A constant as an op sees it: rounded to its element type.
fn constant_num(graph: &Graph, val: Val) -> Option<Num> {
    let dtype = graph.node(val).outs[0].dtype;
    let literal = constant(graph, val)?;
    (!dtype.is_generic()).then(|| Num::of(literal).cast(dtype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{DType, Dim};

    fn float(g: &mut Graph, value: f64, dtype: DType) -> Val {
        g.push(Op::named("constant"), &[], vec![Attr::Lit(Literal::Float(value)), Attr::DType(dtype)])
    }

    /// What the last node of a graph becomes, if that is a constant.
    fn simplified(build: impl FnOnce(&mut Graph) -> Val) -> Option<Literal> {
        let mut g = Graph::new("test");
        g.outs = vec![build(&mut g)];
        let g = run(g);
        constant(&g, g.outs[0])
    }

    #[test]
    fn exactly_rounded_ops_of_constants_are_folded_in_their_element_type() {
        let third = simplified(|g| {
            let (one, three) = (float(g, 1.0, DType::F32), float(g, 3.0, DType::F32));
            g.push(Op::named("div"), &[one, three], vec![])
        });
        assert_eq!(third, Some(Literal::Float(f64::from(1.0f32 / 3.0))));
        let exp = simplified(|g| {
            let one = float(g, 1.0, DType::F32);
            g.push(Op::named("exp"), &[one], vec![])
        });
        assert_eq!(exp, None);
    }

    #[test]
    fn casts_and_sizes_are_folded() {
        let eps = simplified(|g| {
            let eps = float(g, 1e-5, DType::F64);
            g.push(Op::named("cast"), &[eps], vec![Attr::DType(DType::F32)])
        });
        assert_eq!(eps, Some(Literal::Float(f64::from(1e-5f32))));
        let size =
            simplified(|g| g.push(Op::named("size"), &[], vec![Attr::Dim(Dim::Const(768)), Attr::DType(DType::F32)]));
        assert_eq!(size, Some(Literal::Float(768.0)));
        let generic = simplified(|g| {
            g.push(Op::named("size"), &[], vec![Attr::Dim(Dim::Const(768)), Attr::DType(DType::Compute(0))])
        });
        assert_eq!(generic, None);
    }

    #[test]
    fn a_half_that_is_widened_and_narrowed_is_the_same() {
        let back = |from, over, to| {
            let mut g = Graph::new("test");
            let x = g.input("x", from, 1);
            let wide = g.push(Op::named("cast"), &[x], vec![Attr::DType(over)]);
            g.outs = vec![g.push(Op::named("cast"), &[wide], vec![Attr::DType(to)])];
            let g = run(g);
            g.outs[0] == g.inputs[0]
        };
        assert!(back(DType::F16, DType::F32, DType::F16));
        assert!(back(DType::F8E4M3, DType::F32, DType::F8E4M3));
        assert!(back(DType::Param(0), DType::Compute(0), DType::Param(0)));
        assert!(!back(DType::F16, DType::F32, DType::BF16) && !back(DType::F32, DType::F16, DType::F32));
    }

    #[test]
    fn comparisons_are_folded_and_division_by_zero_is_not() {
        let below = simplified(|g| {
            let (one, nan) = (float(g, 1.0, DType::F64), float(g, f64::NAN, DType::F64));
            g.push(Op::named("lt"), &[one, nan], vec![])
        });
        assert_eq!(below, Some(Literal::Bool(false)));
        let int = |op: &str, a, b| {
            simplified(|g| {
                let mut int =
                    |k| g.push(Op::named("constant"), &[], vec![Attr::Lit(Literal::Int(k)), Attr::DType(DType::U8)]);
                let args = [int(a), int(b)];
                g.push(Op::named(op), &args, vec![])
            })
        };
        assert_eq!(int("add", 200, 100), Some(Literal::Int(44)));
        assert_eq!(int("div", 7, 0), None);
    }

    #[test]
    fn adding_positive_zero_stays() {
        let same = |name: &str, c: f64| {
            let mut g = Graph::new("test");
            let x = g.input("x", DType::F32, 1);
            let zero = float(&mut g, c, DType::F32);
            g.outs = vec![g.push(Op::named(name), &[x, zero], vec![])];
            let g = run(g);
            g.outs[0] == g.inputs[0]
        };
        assert!(same("add", -0.0) && same("sub", 0.0) && same("mul", 1.0) && same("div", 1.0));
        assert!(!same("add", 0.0) && !same("sub", -0.0) && !same("mul", 0.0));
    }
}
