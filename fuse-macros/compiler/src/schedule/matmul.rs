//! Products of matrices: operands, epilogue, and the form in which a library does the same.

use super::group::{Group, Member};
use super::kernel::KernelBuilder;
use super::lower::Lower;
use super::views::{behind_views, broadcast};
use crate::graph::{Graph, Node};
use crate::op::{Class, Val};
use crate::plan::{
    BufClass, BufId, Expr, Kernel, Kind, Leaf, LeafSource, Level, LibForm, Matmul, Operand, StmtId, View,
};
use crate::types::{DType, Dim, Ty};

/// Lowers a matmul group.
pub fn lower(lower: &mut Lower<'_>, group: &Group, wanted: &[(&Member, BufId)]) -> Matmul {
    let node = &lower.graph.nodes[group.members[0].node as usize];
    let (a, b) = (node.args[0], node.args[1]);
    let (batch, [m, n]) = split(&group.domain);
    let dims = |val: Val| lower.graph.node(val).outs[val.out as usize].dims.clone();
    let (a_dims, b_dims) = (dims(a), dims(b));
    let k = a_dims[a_dims.len() - 1].clone();
    let dtype = lower.graph.node(a).outs[a.out as usize].dtype;
    let a_onto = broadcast(&a_dims, &[batch.as_slice(), &[m.clone(), k.clone()]].concat());
    let b_onto = broadcast(&b_dims, &[batch.as_slice(), &[k.clone(), n.clone()]].concat());
    let reach = Reach::of(lower.graph, group);
    let (epilogue, at) = epilogue(lower, group, wanted, &reach);
    let (a, b) = (lower.operand(a, &a_onto), lower.operand(b, &b_onto));
    let lib = library_form(lower, &epilogue, &reach, at);
    Matmul { a, b, batch, m, n, k, dtype, tf32: false, epilogue, lib }
}

/// What is done with the product, and the statement of it that a library makes.
fn epilogue(lower: &mut Lower<'_>, group: &Group, wanted: &[(&Member, BufId)], reach: &Reach) -> (Kernel, StmtId) {
    let product = lower.graph.nodes[group.members[0].node as usize].place;
    let mut builder = KernelBuilder::new(lower, group, Kind::Map);
    let at = builder.member(group.member(reach.last()).expect("a library takes members only"));
    for (member, buf) in wanted {
        builder.store_member(member, *buf);
    }
    let mut kernel = builder.finish();
    kernel.ops.push(product);
    kernel.ops.sort_unstable();
    kernel.ops.dedup();
    (kernel, at)
}

fn split(domain: &[Dim]) -> (Vec<Dim>, [Dim; 2]) {
    let (batch, last) = domain.split_at(domain.len() - 2);
    (batch.to_vec(), [last[0].clone(), last[1].clone()])
}

/// How far along its epilogue a library can take a product with the same rounding.
pub struct Reach {
    /// What the library takes, in program order; the last one is its result.
    pub nodes: Vec<u32>,
    bias: Option<Val>,
    relu: bool,
}

impl Reach {
    /// Follows the product of a group through the only things that read it.
    pub fn of(graph: &Graph, group: &Group) -> Reach {
        let product = group.members[0].node;
        let operand = graph.nodes[product as usize].args[0];
        let dtype = graph.node(operand).outs[operand.out as usize].dtype;
        let mut reach = Reach { nodes: vec![product], bias: None, relu: false };
        while let Some(next) = only_reader(graph, reach.last()).filter(|next| group.member(*next).is_some()) {
            if !reach.step(graph, next, &group.domain, dtype) {
                break;
            }
        }
        reach
    }

    fn last(&self) -> u32 {
        self.nodes[self.nodes.len() - 1]
    }

    /// Takes one more op, if the library has it.
    fn step(&mut self, graph: &Graph, next: u32, domain: &[Dim], dtype: DType) -> bool {
        let (from, node) = (&graph.nodes[self.last() as usize], &graph.nodes[next as usize]);
        let is_rounding =
            node.op.name == "cast" && node.outs[0].dtype == dtype && from.outs[0].dtype == dtype.compute();
        // Everything happens in the accumulator's precision, so the value must not have been rounded before.
        if is_rounded(from) || self.nodes.len() > 1 && from.op.name == "cast" {
            return false;
        }
        match node.op.name {
            "add" if self.bias.is_none() && !self.relu => {
                let other = if node.args[0].node == self.last() { node.args[1] } else { node.args[0] };
                self.bias = bias(graph, other, domain);
                if self.bias.is_none() {
                    return false;
                }
            }
            "relu" if !self.relu => self.relu = true,
            _ if is_rounding => {}
            _ => return false,
        }
        self.nodes.push(next);
        true
    }
}

/// Whether a value in registers has already lost the bits its element type does not hold.
fn is_rounded(node: &Node) -> bool {
    node.round && node.outs[0].dtype.compute() != node.outs[0].dtype
}

/// The node that reads a value, if it is the only one and the value is no result.
fn only_reader(graph: &Graph, node: u32) -> Option<u32> {
    let reads = |val: &Val| behind_views(graph, *val).0.node == node;
    let is_view = |node: &Node| matches!(node.op.class, Class::View(_));
    let mut readers = graph
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, n)| !is_view(n) && n.args.iter().any(reads))
        .map(|(id, _)| id as u32);
    let reader = readers.next()?;
    (readers.next().is_none() && !graph.outs.iter().any(reads)).then_some(reader)
}

/// An input (perhaps widened from a half) that is one vector along n, repeated over everything else.
fn bias(graph: &Graph, val: Val, domain: &[Dim]) -> Option<Val> {
    let node = graph.node(val);
    let val = if node.op.name == "cast" { node.args[0] } else { val };
    let dims = &graph.node(val).outs[val.out as usize].dims;
    (graph.inputs.contains(&val) && dims.len() == 1 && dims.last() == domain.last()).then_some(val)
}

/// The library's form of an epilogue in which it makes the statement `at`.
fn library_form(lower: &mut Lower<'_>, epilogue: &Kernel, reach: &Reach, at: StmtId) -> LibForm {
    let stored = epilogue.stores.iter().position(|s| s.value == at && keeps_rows(&s.to.views));
    let product = match stored {
        Some(store) => epilogue.stores[store].to.clone(),
        None => {
            let ty = Ty::new(epilogue.stmt(at).dtype, epilogue.domain.clone());
            Operand { buf: lower.push_buffer("product".into(), ty, BufClass::Temp), views: vec![] }
        }
    };
    let rest = rest(epilogue, at, &product, stored);
    let bias = reach.bias.map(|bias| lower.operand(bias, &[]));
    LibForm { bias, relu: reach.relu, product, rest }
}

/// Whether views leave the elements of a row next to each other, as a library needs them.
pub fn keeps_rows(views: &[View]) -> bool {
    views.iter().all(|view| matches!(view, View::Permute(order) if order.last() == Some(&(order.len() as u32 - 1))))
}

/// The epilogue from the library's result on, or `None` where nothing is left.
fn rest(epilogue: &Kernel, at: StmtId, product: &Operand, stored: Option<usize>) -> Option<Kernel> {
    let mut kernel = epilogue.clone();
    kernel.name.push_str("_rest");
    if let Some(store) = stored {
        kernel.stores.remove(store);
    }
    if kernel.stores.is_empty() {
        return None;
    }
    let views = product.views.clone();
    let leaf = Leaf { source: LeafSource::Buf(product.buf), views, level: Level::Elem, indexed: None };
    kernel.leaves.push(leaf);
    let stmt = &mut kernel.stmts[at.0 as usize];
    (stmt.expr, stmt.round) = (Expr::Load(kernel.leaves.len() as u32 - 1), false);
    Some(super::prune::run(kernel))
}
