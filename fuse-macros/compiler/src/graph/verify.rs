//! Whether a graph is well formed: what every stage may take for granted.

use super::{Graph, Node};
use crate::op::{Attr, Build, Call, Class, ParamKind, Rules, Source, Val};
use crate::types::{Dim, Sym, Ty};

/// Checks a graph; the message names the node.
pub fn verify(graph: &Graph) -> Result<(), String> {
    for (id, node) in graph.nodes.iter().enumerate() {
        let fault = operands(graph, id, node)
            .and_then(|()| attributes(node))
            .and_then(|()| types(graph, node))
            .and_then(|()| symbols(graph, node));
        fault.map_err(|fault| format!("%{id} = {}: {fault}\n{graph}", node.op.name))?;
    }
    ends(graph)
}

/// Checks a graph after a stage of ours.
///
/// # Panics
/// With the graph, if the stage broke it.
pub fn expect_valid(graph: &Graph, stage: &str) {
    if let Err(fault) = verify(graph) {
        panic!("`{stage}` made a graph that is not well formed: {fault}");
    }
}

fn operands(graph: &Graph, id: usize, node: &Node) -> Result<(), String> {
    match node.args.iter().find(|arg| arg.node as usize >= id || !exists(graph, **arg)) {
        Some(arg) => Err(format!("operand {arg:?} does not come before its user")),
        None => Ok(()),
    }
}

fn exists(graph: &Graph, val: Val) -> bool {
    graph.nodes.get(val.node as usize).is_some_and(|node| (val.out as usize) < node.outs.len())
}

/// Attributes are those of the row's parameters, in order.
fn attributes(node: &Node) -> Result<(), String> {
    let params = node.op.params.iter().map(|param| param.kind);
    let mut wanted: Vec<ParamKind> = params.filter(|kind| !kind.is_operand() && *kind != ParamKind::Device).collect();
    match node.op.class {
        Class::Source(Source::Constant) => return literal(&node.attrs),
        Class::Source(Source::Input | Source::Scalar) => wanted.push(ParamKind::Count),
        // The product may be asked for in a wider type.
        Class::Matmul if !node.attrs.is_empty() => wanted.push(ParamKind::DType),
        _ if node.op.call == Call::Function && !takes_tensors(node) => wanted.push(ParamKind::DType),
        _ => {}
    }
    let fits = wanted.len() == node.attrs.len() && wanted.iter().zip(&node.attrs).all(|(kind, attr)| fits(*kind, attr));
    if fits { Ok(()) } else { Err(format!("attributes {:?} are no {wanted:?}", node.attrs)) }
}

fn literal(attrs: &[Attr]) -> Result<(), String> {
    match attrs {
        [Attr::Lit(_), Attr::DType(_)] => Ok(()),
        _ => Err(format!("attributes {attrs:?} are no constant")),
    }
}

fn takes_tensors(node: &Node) -> bool {
    node.op.params.iter().any(|param| param.kind == ParamKind::Tensors)
}

fn fits(kind: ParamKind, attr: &Attr) -> bool {
    use ParamKind::*;
    match kind {
        Axis | Count | Choice(..) => matches!(attr, Attr::Int(_)),
        Axes => matches!(attr, Attr::Ints(_)),
        Dim => matches!(attr, Attr::Dim(_) | Attr::Int(_)),
        Dims => matches!(attr, Attr::Dims(_)),
        Bound => matches!(attr, Attr::Dim(_) | Attr::Int(_) | Attr::Float(_)),
        Bool => matches!(attr, Attr::Bool(_)),
        DType => matches!(attr, Attr::DType(_)),
        Operand | Branch | Tensor | TensorOf(_) | Mask | Tensors | Scalar | ScalarOf(_) | Device => false,
    }
}

/// The types of the results are those the row's rule gives.
fn types(graph: &Graph, node: &Node) -> Result<(), String> {
    if matches!(node.op.class, Class::Source(Source::Input | Source::Scalar)) {
        return Ok(());
    }
    let args: Vec<&Ty> = node.args.iter().map(|&arg| graph.ty(arg)).collect();
    let inferred = node.op.types(&mut Rules::default(), &args, &node.attrs).map_err(|fault| fault.message)?;
    let agree = inferred.len() == node.outs.len() && inferred.iter().zip(&node.outs).all(|(a, b)| may_agree(a, b));
    if agree { Ok(()) } else { Err(format!("results are {:?}, the rule gives {inferred:?}", node.outs)) }
}

/// Whether two types can be the same at run time.
fn may_agree(a: &Ty, b: &Ty) -> bool {
    let differ = |(a, b): (&Dim, &Dim)| matches!(Dim::sub(a.clone(), b.clone()), Dim::Const(k) if k != 0);
    a.dtype == b.dtype && a.rank() == b.rank() && !a.dims.iter().zip(&b.dims).any(differ)
}

fn symbols(graph: &Graph, node: &Node) -> Result<(), String> {
    let mut unknown = None;
    let mut visit = |Sym(n)| {
        if n as usize >= graph.syms.len() {
            unknown = Some(n);
        }
    };
    node.outs.iter().flat_map(|ty| &ty.dims).for_each(|dim| dim.for_each_sym(&mut visit));
    for attr in &node.attrs {
        match attr {
            Attr::Dim(dim) => dim.for_each_sym(&mut visit),
            Attr::Dims(dims) => dims.iter().for_each(|dim| dim.for_each_sym(&mut visit)),
            _ => {}
        }
    }
    match unknown {
        Some(n) => Err(format!("symbol s{n} is not in the table")),
        None => Ok(()),
    }
}

/// Inputs, scalars and results are there, and inputs and scalars are numbered in order.
fn ends(graph: &Graph) -> Result<(), String> {
    let numbered = |vals: &[Val], source: Source| {
        vals.iter().enumerate().all(|(k, &val)| {
            let node = exists(graph, val).then(|| graph.node(val));
            node.is_some_and(|node| node.op.class == Class::Source(source) && node.attrs == [Attr::Int(k as i64)])
        })
    };
    if !numbered(&graph.inputs, Source::Input) || !numbered(&graph.scalars, Source::Scalar) {
        return Err("inputs or scalars are not numbered in order".to_owned());
    }
    match graph.outs.iter().find(|out| !exists(graph, **out)) {
        Some(out) => Err(format!("result {out:?} does not exist")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Op;
    use crate::types::DType;

    fn sum_graph() -> Graph {
        let mut g = Graph::new("f");
        let x = g.input("x", DType::F32, 2);
        let sum = g.push(Op::named("sum"), &[x], vec![Attr::Int(-1)]);
        g.outs = vec![sum];
        g
    }

    #[test]
    fn a_built_graph_is_well_formed() {
        assert_eq!(verify(&sum_graph()), Ok(()));
    }

    #[test]
    fn operands_come_before_their_users() {
        let mut g = sum_graph();
        g.nodes[1].args[0].node = 1;
        assert!(verify(&g).unwrap_err().contains("does not come before its user"));
    }

    #[test]
    fn attributes_are_those_of_the_row() {
        let mut g = sum_graph();
        g.nodes[1].attrs = vec![Attr::Bool(true)];
        assert!(verify(&g).unwrap_err().contains("are no [Axis]"));
    }

    #[test]
    fn result_types_are_those_of_the_rule() {
        let mut g = sum_graph();
        g.nodes[1].outs[0].dtype = DType::I64;
        assert!(verify(&g).unwrap_err().contains("the rule gives"));
    }

    #[test]
    fn graphs_are_read_back_as_they_were_written() {
        let g = sum_graph();
        let text = ron::to_string(&g).unwrap();
        assert_eq!(ron::from_str::<Graph>(&text).unwrap(), g);
    }
}
