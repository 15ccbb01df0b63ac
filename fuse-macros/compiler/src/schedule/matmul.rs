//! Products of matrices: operands, epilogue, and the form in which a library does the same.

use super::groups::{Group, Member};
use super::lower::Lower;
use super::views::broadcast;
use crate::op::{Op, Val};
use crate::plan::{
    BufClass, BufId, Expr, Kernel, Kind, Leaf, LeafSource, Level, LibForm, Matmul, Operand, Stmt, StmtId, View,
};
use crate::types::{Dim, Ty};

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
    let mut epilogue = lower.nest(group, Kind::Map, wanted);
    epilogue.ops.push(node.place);
    epilogue.ops.sort_unstable();
    epilogue.ops.dedup();
    let (a, b) = (lower.operand(a, &a_onto), lower.operand(b, &b_onto));
    let lib = library_form(lower, &epilogue, &group.domain);
    Matmul { a, b, batch, m, n, k, dtype, tf32: false, epilogue, lib }
}

fn split(domain: &[Dim]) -> (Vec<Dim>, [Dim; 2]) {
    let (batch, last) = domain.split_at(domain.len() - 2);
    (batch.to_vec(), [last[0].clone(), last[1].clone()])
}

/// How far along its epilogue a library can take a product.
struct Reach {
    /// The statement the library's result is.
    at: StmtId,
    bias: Option<Operand>,
    relu: bool,
}

fn library_form(lower: &mut Lower<'_>, epilogue: &Kernel, domain: &[Dim]) -> LibForm {
    let reach = reach(lower, epilogue);
    let stored = epilogue.stores.iter().position(|s| s.value == reach.at && s.to.views.is_empty());
    let product = match stored {
        Some(store) => epilogue.stores[store].to.buf,
        None => {
            let ty = Ty::new(epilogue.stmts[reach.at.0 as usize].dtype, domain.to_vec());
            lower.push_buffer("product".into(), ty, BufClass::Temp)
        }
    };
    let rest = rest(epilogue, reach.at, product, stored);
    LibForm { bias: reach.bias, relu: reach.relu, product, rest }
}

/// Follows the product through the only things that read it, as long as a library does the same with the same rounding.
fn reach(lower: &Lower<'_>, epilogue: &Kernel) -> Reach {
    let product = epilogue.stmts.iter().position(|s| s.expr == Expr::Product).expect("an epilogue reads its product");
    let mut reach = Reach { at: StmtId(product as u32), bias: None, relu: false };
    while let Some(next) = only_reader(epilogue, reach.at) {
        let stmt = &epilogue.stmts[next.0 as usize];
        let at_compute = !epilogue.stmts[reach.at.0 as usize].round;
        match &stmt.expr {
            // Bias and relu happen in the accumulator's precision, so the value must not have been rounded before.
            Expr::Apply(op, args) if *op == Op::named("add") && at_compute && reach.bias.is_none() && !reach.relu => {
                let other = if args[0] == reach.at { args[1] } else { args[0] };
                match bias(lower, epilogue, other) {
                    Some(bias) => reach.bias = Some(bias),
                    None => break,
                }
            }
            Expr::Apply(op, _) if *op == Op::named("relu") && at_compute && !reach.relu => reach.relu = true,
            Expr::Cast(_) if stmt.dtype.is_half() && at_compute && stmt.level == Level::Elem => {
                reach.at = next;
                break;
            }
            _ => break,
        }
        reach.at = next;
    }
    reach
}

/// The statement that reads another, if it is the only one and the value is not stored.
fn only_reader(kernel: &Kernel, value: StmtId) -> Option<StmtId> {
    if kernel.stores.iter().any(|s| s.value == value) {
        return None;
    }
    let mut readers = (0..kernel.stmts.len()).filter(|&k| operands(&kernel.stmts[k]).contains(&value));
    let reader = readers.next()?;
    readers.next().is_none().then_some(StmtId(reader as u32))
}

/// The statements a statement reads.
pub fn operands(stmt: &Stmt) -> Vec<StmtId> {
    match &stmt.expr {
        Expr::Apply(_, args) => args.clone(),
        Expr::Cast(a) | Expr::Reduce(_, a) | Expr::Scan(_, a) | Expr::Uniform(_, a) | Expr::Normal(_, a) => vec![*a],
        Expr::Gather { index, .. } => vec![*index],
        Expr::Load(_) | Expr::Const(_) | Expr::Scalar(_) | Expr::Size(_) | Expr::Product => vec![],
    }
}

/// A leaf (perhaps widened from a half) that is one vector along n, repeated over everything else.
fn bias(lower: &Lower<'_>, epilogue: &Kernel, value: StmtId) -> Option<Operand> {
    let leaf = match &epilogue.stmts[value.0 as usize].expr {
        Expr::Load(leaf) => *leaf,
        Expr::Cast(from) => match &epilogue.stmts[from.0 as usize].expr {
            Expr::Load(leaf) => *leaf,
            _ => return None,
        },
        _ => return None,
    };
    let Leaf { source: LeafSource::Buf(buf), views, .. } = &epilogue.leaves[leaf as usize] else { return None };
    let ty = lower.buffer_ty(*buf);
    let along_n = matches!(views.as_slice(), [View::Expand(_)]) && ty.dims.len() == 1;
    let matches_n = ty.dims.last() == epilogue.domain.last();
    (along_n && matches_n).then(|| Operand { buf: *buf, views: vec![] })
}

/// The epilogue from the library's result on, or `None` where nothing is left.
fn rest(epilogue: &Kernel, at: StmtId, product: BufId, stored: Option<usize>) -> Option<Kernel> {
    let mut kernel = epilogue.clone();
    kernel.name.push_str("_rest");
    if let Some(store) = stored {
        kernel.stores.remove(store);
    }
    if kernel.stores.is_empty() {
        return None;
    }
    let leaf = Leaf { source: LeafSource::Buf(product), views: vec![], level: Level::Elem, indexed: None };
    kernel.leaves.push(leaf);
    let stmt = &mut kernel.stmts[at.0 as usize];
    (stmt.expr, stmt.round) = (Expr::Load(kernel.leaves.len() as u32 - 1), false);
    Some(super::prune::run(kernel))
}
