//! Finds writes that need no copy of what they write to.
//!
//! A write is lowered as a copy of its base and a kernel that writes a part of the copy. Where the caller gives the base up and
//! nothing reads it afterwards, the runtime leaves the copy out and the part is written over the base: a cache of keys and values
//! grows by a row without being read. It comes behind all that moves steps, since it names them by number, and before small kernels are
//! listed, which would make the copy together with others.
//!
//! A call that fails changes no tensor. On a processor what is written over is kept until the call is over. On a GPU, which goes on
//! behind a fault, the kernel that writes asks whether the call has failed and looks at all of its positions before it writes one.
//! So nothing behind it may find a fault that was not found by then: positions behind it must have been tested before it.

use super::buffers::{touched, touchers};
use super::sink::copied;
use crate::op::Op;
use crate::plan::{BufClass, BufId, Expr, Kernel, PartWrite, Plan, Scatter, Step, StmtId, View, abi};
use crate::types::Dim;

/// Lists them.
pub fn run(mut plan: Plan) -> Plan {
    plan.writes = (0..plan.steps.len()).filter_map(|step| write_at(&plan, step)).collect();
    let on_gpu: Vec<usize> =
        plan.writes.iter().filter(|write| write.on_gpu).map(|write| write.copy as usize + 1).collect();
    for step in 0..plan.steps.len() {
        let heeds = on_gpu.contains(&step) && (0..=step).any(|step| may_fault(&plan.steps[step]));
        if let Step::Kernel(kernel) = &mut plan.steps[step] {
            kernel.heeds = heeds;
        }
    }
    plan
}

fn write_at(plan: &Plan, step: usize) -> Option<PartWrite> {
    let [Step::Kernel(copy), Step::Kernel(kernel), ..] = &plan.steps[step..] else { return None };
    let (from, views, to) = copied(copy)?;
    let (old, new) = (&plan.bufs[from.0 as usize], &plan.bufs[to.buf.0 as usize]);
    let is_whole = views.is_empty() && to.views.is_empty() && old.ty == new.ty;
    let is_read_later = touchers(plan, from).any(|other| other > step) || plan.outs.iter().any(|out| out.buf == from);
    let is_first = touchers(plan, to.buf).next() == Some(step);
    let [store] = &kernel.stores[..] else { return None };
    let writes_part =
        store.to.buf == to.buf && touched(&plan.steps[step + 1]).iter().filter(|buf| **buf == to.buf).count() == 1;
    let adds = store.scatter.as_ref().is_some_and(|scatter| scatter.add);
    let is_part = matches!(old.class, BufClass::In(_)) && new.class == BufClass::Out && writes_part && !adds;
    // A kernel that is launched can look ahead at positions that lie in memory, where they are the same for all lines.
    let looks_ahead = |scatter: &Scatter| kernel.heeds && matches!(kernel.stmt(scatter.index).expr, Expr::Load(_));
    let on_gpu = store.scatter.as_ref().is_none_or(looks_ahead) && finds_no_more(plan, step);
    let is_write = is_whole && is_first && is_part && !is_read_later;
    is_write.then_some(PartWrite { copy: step as u32, from, to: to.buf, on_gpu })
}

/// Whether what comes behind a copy, the write included once it has looked at its own positions, finds no fault that was not found before.
fn finds_no_more(plan: &Plan, copy: usize) -> bool {
    let (before, behind) = plan.steps.split_at(copy + 1);
    let tests = |step: &Step| step.kernels().flat_map(|kernel| tests_of(plan, kernel)).collect::<Vec<_>>();
    let own = behind[0].kernels().flat_map(|kernel| scattered(plan, kernel));
    let known: Vec<Test> = before.iter().flat_map(tests).chain(own).flatten().collect();
    let is_known = |test: Test| known.iter().any(|known| known.is_whole && known.is_of(&test));
    behind.iter().flat_map(tests).all(|test| test.is_some_and(is_known))
}

/// Positions that are tested.
struct Test {
    /// What holds them.
    index: BufId,
    /// Whether all of its elements are tested.
    is_whole: bool,
    /// What they must be below.
    extent: Dim,
}

impl Test {
    fn of(plan: &Plan, kernel: &Kernel, index: StmtId, target: BufId, axis: u32) -> Option<Test> {
        let Expr::Load(leaf) = kernel.stmt(index).expr else { return None };
        let leaf = &kernel.leaves[leaf as usize];
        let index = leaf.buf()?;
        let is_whole = !leaf.views.iter().any(|view| matches!(view, View::Slice { .. }));
        Some(Test { index, is_whole, extent: plan.bufs[target.0 as usize].ty.dims[axis as usize].clone() })
    }

    fn is_of(&self, other: &Test) -> bool {
        self.index == other.index && self.extent == other.extent
    }
}

/// What a kernel tests; `None` for what is more than a position that lies in memory.
fn tests_of(plan: &Plan, kernel: &Kernel) -> Vec<Option<Test>> {
    let gathered = kernel.stmts.iter().filter_map(|stmt| match &stmt.expr {
        Expr::Gather { leaf, index } => {
            let leaf = &kernel.leaves[*leaf as usize];
            let (Some(table), Some(lookup)) = (leaf.buf(), leaf.indexed) else { return Some(None) };
            Some(Test::of(plan, kernel, *index, table, lookup.axis))
        }
        Expr::Apply(op, args) if divides(kernel, *op, args) => Some(None),
        _ => None,
    });
    gathered.chain(scattered(plan, kernel)).collect()
}

/// The same of its stores.
fn scattered<'p>(plan: &'p Plan, kernel: &'p Kernel) -> impl Iterator<Item = Option<Test>> {
    kernel.stores.iter().filter_map(|store| {
        let scatter = store.scatter.as_ref()?;
        Some(Test::of(plan, kernel, scatter.index, store.to.buf, scatter.axis))
    })
}

fn divides(kernel: &Kernel, op: Op, args: &[StmtId]) -> bool {
    // Of a generic type it is not known yet.
    let dtype = kernel.stmt(args[0]).dtype;
    abi::divides_integers(op, dtype) || dtype.is_generic() && op.scalar.as_ref().is_some_and(|scalar| scalar.zero_fault)
}

fn may_fault(step: &Step) -> bool {
    step.kernels().any(abi::may_fault)
}
