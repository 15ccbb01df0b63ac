//! Functions that are generic in the rank of their tensors: `fn scaled<const R: usize>(x: &Tensor<f32, R>) -> Tensor<f32, R>`.
//!
//! They are captured for tensors of [`OPEN_RANK`] axes, which those of a call become by leading axes of extent 1. Results are the
//! same where every op keeps the rank and counts axes from the end; other functions run op by op, and say why.

use super::Function;
use super::program::{Piece, Program, Step};
use super::types::GenericNames;
use crate::graph::{Graph, Node};
use crate::op::{Attr, ParamKind};
use crate::types::OPEN_RANK;
use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{Expr, GenericArgument, PathArguments};

/// The rank that a function leaves open.
pub struct OpenRank {
    /// The const parameter.
    pub name: Ident,
    /// The smallest rank that the ops of the function take.
    pub least: usize,
}

/// Ops whose tensors may differ in rank, or that say something of the last axes, and how many axes those are.
const OF_LAST_AXES: &[(&str, usize)] = &[
    ("layer_norm", 1),
    ("linear", 1),
    ("matmul", 2),
    ("rms_norm", 1),
    ("tril", 2),
    ("triu", 2),
    ("index_select", 1),
    ("index_add", 1),
    ("index_copy", 1),
];

/// The const parameter that is the rank of the tensors of a function, if there is one and nothing asks for their extents.
pub fn of(function: &Function, generics: &GenericNames) -> Option<Ident> {
    let mut ranks = Ranks { generics, named: vec![], is_captured: !function.differentiated };
    ranks.visit_signature(function.sig);
    ranks.visit_block(function.block);
    let (first, others) = ranks.named.split_first()?;
    (ranks.is_captured && others.iter().all(|other| other == first)).then(|| first.clone())
}

/// The const parameters that stand where ranks do.
struct Ranks<'a> {
    generics: &'a GenericNames,
    named: Vec<Ident>,
    is_captured: bool,
}

impl<'ast> Visit<'ast> for Ranks<'_> {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if let PathArguments::AngleBracketed(list) = &segment.arguments
            && segment.ident == "Tensor"
        {
            match list.args.get(1) {
                // A name alone reads as a type.
                Some(GenericArgument::Type(syn::Type::Path(path))) => {
                    let found = self.generics.consts.iter().find(|name| path.path.is_ident(*name));
                    self.named.extend(found.cloned());
                }
                Some(GenericArgument::Const(Expr::Lit(rank))) if is_open_rank(rank) => self.is_captured = false,
                _ => {}
            }
        }
        visit::visit_path_segment(self, segment);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if ["dims", "size", "numel"].iter().any(|query| call.method == query) {
            self.is_captured = false;
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// Tensors that have this rank in any case could not be told from those of open rank.
fn is_open_rank(rank: &syn::ExprLit) -> bool {
    matches!(&rank.lit, syn::Lit::Int(rank) if rank.base10_parse().is_ok_and(|rank: usize| rank == OPEN_RANK))
}

/// The smallest rank that a function captured for [`OPEN_RANK`] axes takes, or why it means something else for others.
pub fn least(program: &Program) -> Result<usize, String> {
    if program.eager || decides_on_the_device(&program.body) {
        return Err("what it does is not captured for all ranks".to_owned());
    }
    program.segments.iter().map(least_of).try_fold(0, |least, of| Ok(least.max(of?)))
}

fn least_of(graph: &Graph) -> Result<usize, String> {
    graph.nodes.iter().map(|node| least_for(graph, node)).try_fold(0, |least, of| Ok(least.max(of?)))
}

fn least_for(graph: &Graph, node: &Node) -> Result<usize, String> {
    let name = node.op.name;
    let ranks = || node.args.iter().map(|arg| graph.nodes[arg.node as usize].outs[arg.out as usize].rank());
    let results = || node.outs.iter().map(|ty| ty.rank());
    let is_open = |rank: usize| rank == OPEN_RANK;
    if name == "input" || !ranks().chain(results()).any(is_open) {
        return Ok(0);
    }
    if !ranks().any(is_open) || !results().all(|rank| is_open(rank) || rank == 0) {
        return Err(format!("`{name}` does not keep the rank"));
    }
    let of_last_axes = OF_LAST_AXES.iter().find(|(op, _)| *op == name).map(|(_, axes)| *axes);
    if of_last_axes.is_none() && !ranks().all(|rank| is_open(rank) || rank == 0) {
        return Err(format!("`{name}` brings tensors of open rank together with others"));
    }
    let kinds = node.op.params.iter().map(|param| param.kind).filter(|kind| !kind.is_operand());
    let axes = kinds.zip(&node.attrs).map(|(kind, attr)| match (kind, attr) {
        (ParamKind::Axis, Attr::Int(axis)) => from_the_end(name, std::slice::from_ref(axis)),
        (ParamKind::Axes, Attr::Ints(axes)) => from_the_end(name, axes),
        (ParamKind::Dims | ParamKind::Count, _) => Err(format!("`{name}` is told all extents")),
        _ => Ok(0),
    });
    axes.chain([Ok(of_last_axes.unwrap_or(0))]).try_fold(0, |least, of| Ok(least.max(of?)))
}

/// How many axes a tensor has at least that has these.
fn from_the_end(op: &str, axes: &[i64]) -> Result<usize, String> {
    match axes.iter().all(|axis| *axis < 0) {
        true => Ok(axes.iter().map(|axis| axis.unsigned_abs() as usize).max().unwrap_or(0)),
        false => Err(format!("`{op}` counts an axis from the front")),
    }
}

/// Whether control flow was captured, whose state would have to be brought from rank to rank.
fn decides_on_the_device(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Loop(_) | Step::Branch(_) => true,
        Step::Nest(pieces) => in_pieces(pieces),
        _ => false,
    })
}

fn in_pieces(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Tokens(_) => false,
        Piece::Block(steps) => decides_on_the_device(steps),
        Piece::Braces(pieces) => in_pieces(pieces),
    })
}
