//! Lets what is joined be written where it is joined.
//!
//! A join copies each operand to its place. An operand that a step of its own makes, and nothing but the copy reads, is written to
//! that place at once, so that the copy and the memory between them are saved: the gradients of queries, keys and values become the
//! three parts of one projection's gradient.

use super::buffers::touchers;
use super::frame::dims_after;
use super::matmul::keeps_rows;
use super::views::{inverse, normal};
use crate::plan::{BufClass, BufId, Expr, Kernel, Kind, Level, Operand, Plan, Step, View};
use crate::types::Dim;

/// Drops the copies to these buffers, whose parts do not overlap, that their operands can do without.
pub fn run(mut plan: Plan, joined: &[BufId]) -> Plan {
    let mut step = 0;
    while step < plan.steps.len() {
        match Sunk::at(&plan, step, joined) {
            Some(sunk) => {
                sunk.redirect(&mut plan);
                plan.steps.remove(step);
            }
            None => step += 1,
        }
    }
    plan
}

/// A copy that is not needed.
struct Sunk {
    /// The step that makes what is copied.
    writer: usize,
    from: BufId,
    /// Where it is wanted, in the extents it has.
    to: Operand,
    /// What the copy stands for.
    ops: Vec<u32>,
}

impl Sunk {
    fn at(plan: &Plan, step: usize, joined: &[BufId]) -> Option<Sunk> {
        let copy = plan.steps[step].kernel()?;
        let (from, views, to) = copied(copy).filter(|(.., to)| joined.contains(&to.buf))?;
        let buf = &plan.bufs[from.0 as usize];
        let mut others = touchers(plan, from).filter(|other| *other != step);
        let (Some(writer), None) = (others.next(), others.next()) else { return None };
        let fits = buf.class == BufClass::Temp
            && buf.ty.dtype == plan.bufs[to.buf.0 as usize].ty.dtype
            && writer < step
            && writes_only(&plan.steps[writer], from);
        let back = undone(&buf.ty.dims, views).filter(|_| fits)?;
        let by_library = plan.steps[writer].matmul().is_some_and(|matmul| matmul.lib.product.buf == from);
        let turns = |view: &View| matches!(view, View::Permute(_)) && !keeps_rows(std::slice::from_ref(view));
        if by_library && back.iter().any(turns) {
            return None;
        }
        let to = Operand { buf: to.buf, views: [to.views.as_slice(), &back].concat() };
        Some(Sunk { writer, from, to, ops: copy.ops.clone() })
    }

    fn redirect(&self, plan: &mut Plan) {
        let dims = plan.bufs[self.to.buf.0 as usize].ty.dims.clone();
        let move_to = |operand: &mut Operand| {
            if operand.buf == self.from {
                let views = [self.to.views.as_slice(), &operand.views].concat();
                *operand = Operand { buf: self.to.buf, views: normal(&dims, &views) };
            }
        };
        let step = &mut plan.steps[self.writer];
        for kernel in step.kernels_mut() {
            kernel.stores.iter_mut().for_each(|store| move_to(&mut store.to));
            kernel.ops.extend(&self.ops);
        }
        if let Some(matmul) = step.matmul_mut() {
            move_to(&mut matmul.lib.product);
        }
    }
}

/// What a kernel that only copies reads and writes.
pub fn copied(kernel: &Kernel) -> Option<(BufId, &[View], &Operand)> {
    let ([leaf], [stmt], [store]) = (&kernel.leaves[..], &kernel.stmts[..], &kernel.stores[..]) else { return None };
    let is_copy = kernel.kind == Kind::Map
        && stmt.expr == Expr::Load(0)
        && leaf.level == Level::Elem
        && leaf.indexed.is_none()
        && store.scatter.is_none();
    leaf.buf().filter(|_| is_copy).map(|from| (from, leaf.views.as_slice(), &store.to))
}

/// Whether a step writes a buffer and does not read it, other than behind a product by the library.
fn writes_only(step: &Step, buf: BufId) -> bool {
    let reads = |kernel: &Kernel| kernel.reads(buf);
    let writes = |kernel: &Kernel| kernel.written().filter(|written| *written == buf).count();
    match step {
        Step::Kernel(kernel) => {
            !reads(kernel) && writes(kernel) == 1 && kernel.stores.iter().all(|s| s.scatter.is_none())
        }
        Step::Matmul(m) => {
            let rest_reads = m.lib.rest.as_ref().is_some_and(reads);
            let by_library = m.lib.product.buf == buf && m.lib.rest.is_none();
            let after = m.lib.product.buf != buf && m.lib.rest.is_some();
            !reads(&m.epilogue) && !rest_reads && (by_library || after) && writes(&m.epilogue) == 1
        }
    }
}

/// Views that undo others, if none of these drops or repeats elements, and none that undoes a reshape has to merge axes.
fn undone(dims: &[Dim], views: &[View]) -> Option<Vec<View>> {
    let mut at = dims.to_vec();
    let mut back = Vec::new();
    for view in views {
        back.push(match view {
            View::Permute(order) => View::Permute(inverse(order)),
            View::Unsqueeze(axis) => View::Squeeze(*axis),
            View::Squeeze(axis) => View::Unsqueeze(*axis),
            View::Reshape(to) if merges(&at, to) => View::Reshape(at.clone()),
            _ => return None,
        });
        at = dims_after(&at, std::slice::from_ref(view));
    }
    back.reverse();
    Some(back)
}

/// Whether a reshape makes one axis of several neighbours and leaves the others.
fn merges(from: &[Dim], to: &[Dim]) -> bool {
    let before = std::iter::zip(from, to).take_while(|(a, b)| a == b).count();
    let (from, to) = (&from[before..], &to[before..]);
    let behind = std::iter::zip(from.iter().rev(), to.iter().rev()).take_while(|(a, b)| a == b).count();
    to.len() <= behind + 1 && from.len() >= to.len()
}
