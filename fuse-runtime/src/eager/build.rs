//! The plan of one op.

use super::key::{Key, Operand};
use crate::error::{Error, ErrorKind, Result};
use fuse_compiler::graph::{Graph, SymSource};
use fuse_compiler::op::{Attr, Fault, Val, with_names};
use fuse_compiler::plan::Plan;
use fuse_compiler::types::Dim;
use fuse_compiler::{optimise, schedule};

/// Schedules the graph of one node.
pub(super) fn plan(key: &Key) -> Result<Plan> {
    let graph = optimise::run(graph(key)?, optimise::Options::default());
    Ok(schedule::run(&graph, schedule::Options::default()))
}

/// Builds the graph of one node, all of whose results are the graph's.
pub(crate) fn graph(key: &Key) -> Result<Graph> {
    let mut graph = Graph::new(key.op.name);
    let mut args = Vec::with_capacity(key.args.len());
    for (k, operand) in key.args.iter().enumerate() {
        args.push(match *operand {
            Operand::Tensor(dtype, rank) => graph.input(&name(key, k), dtype, rank),
            Operand::Scalar(dtype) => graph.scalar(&name(key, k), dtype),
        });
    }
    let attrs = with_symbols(&mut graph, &key.attrs);
    let val = graph.try_push(key.op, &args, attrs).map_err(|fault| refusal(key, &fault))?;
    let results = graph.node(val).outs.len() as u32;
    graph.outs = (0..results).map(|out| Val { out, ..val }).collect();
    Ok(graph)
}

/// The name of an operand in messages and generated text.
fn name(key: &Key, operand: usize) -> String {
    let params = key.op.params.iter().filter(|param| param.kind.is_operand());
    match operand.checked_sub(1) {
        None => "x".to_owned(),
        Some(k) => params.clone().nth(k).map_or_else(|| format!("x{operand}"), |param| param.name.to_owned()),
    }
}

/// The attributes with a symbol in the place of each size.
fn with_symbols(graph: &mut Graph, attrs: &[Attr]) -> Vec<Attr> {
    let mut next = 0;
    let mut fresh = || {
        let sym = graph.sym(format!("n{next}"), SymSource::Host(next));
        next += 1;
        Dim::Sym(sym)
    };
    let mut attr = |attr: &Attr| match attr {
        Attr::Dim(_) => Attr::Dim(fresh()),
        Attr::Dims(dims) => Attr::Dims(dims.iter().map(|_| fresh()).collect()),
        other => other.clone(),
    };
    attrs.iter().map(&mut attr).collect()
}

/// Why the operands do not fit, with their names.
fn refusal(key: &Key, fault: &Fault) -> Error {
    let help = fault.help.iter().map(|help| format!("; {help}"));
    let text: String = [fault.message.clone()].into_iter().chain(help).collect();
    let names: Vec<String> = (0..key.args.len()).map(|k| name(key, k).to_owned()).collect();
    Error::new(ErrorKind::Shape, with_names(&text, &names))
}
