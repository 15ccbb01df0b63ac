//! How many bytes kernels move, as formulas in the dims.

use crate::plan::{BufId, Expr, Kernel, LeafSource, Level, Plan, Step, StmtId, print};
use crate::types::{DType, Dim};
use std::collections::{BTreeMap, BTreeSet};

/// Elements by element type; generic types have no size yet.
#[derive(Default)]
struct Traffic(BTreeMap<DType, Dim>);

impl Traffic {
    fn add(&mut self, dtype: DType, elements: Dim) {
        let sum = self.0.entry(dtype).or_insert(Dim::Const(0));
        *sum = Dim::add(sum.clone(), elements);
    }

    fn text(&self, plan: &Plan) -> String {
        let known = self.0.iter().filter(|(dtype, _)| dtype.bytes() > 0);
        let known = known.map(|(dtype, n)| Dim::mul(Dim::Const(dtype.bytes() as i64), n.clone()));
        let known = known.fold(Dim::Const(0), Dim::add);
        let generic = self.0.iter().filter(|(dtype, n)| dtype.bytes() == 0 && **n != Dim::Const(0));
        let mut parts: Vec<String> =
            generic.map(|(dtype, n)| format!("size_of({dtype})*({})", print::dim(plan, n))).collect();
        if known != Dim::Const(0) || parts.is_empty() {
            parts.insert(0, print::dim(plan, &known));
        }
        parts.join(" + ")
    }
}

/// Bytes read and written by a step. An operand counts once, a gathered one by what is read of it.
pub(super) fn moved(plan: &Plan, step: &Step) -> (String, String) {
    let (mut read, mut written) = (Traffic::default(), Traffic::default());
    let mut seen = BTreeSet::new();
    let mut whole = |buf: BufId, read: &mut Traffic| {
        if seen.insert(buf) {
            let ty = &plan.bufs[buf.0 as usize].ty;
            read.add(ty.dtype, ty.numel());
        }
    };
    if let Some(matmul) = step.matmul() {
        whole(matmul.a.buf, &mut read);
        whole(matmul.b.buf, &mut read);
    }
    let kernel = step.program();
    for leaf in &kernel.leaves {
        match (&leaf.source, leaf.indexed) {
            (LeafSource::Buf(buf), None) => whole(*buf, &mut read),
            (LeafSource::Buf(buf), Some(_)) => read.add(plan.bufs[buf.0 as usize].ty.dtype, points(kernel, leaf.level)),
            (LeafSource::Index(_), _) => {}
        }
    }
    for store in &kernel.stores {
        let dtype = plan.bufs[store.to.buf.0 as usize].ty.dtype;
        written.add(dtype, points(kernel, kernel.store_level(store)));
    }
    (read.text(plan), written.text(plan))
}

/// Bytes of results of the user's ops that never reach memory: each would be written once and read once.
pub(super) fn saved(plan: &Plan) -> String {
    let mut traffic = Traffic::default();
    for kernel in plan.steps.iter().map(Step::program) {
        for s in results(kernel) {
            let stmt = kernel.stmt(s);
            if kernel.stores.iter().all(|store| store.value != s) {
                traffic.add(stmt.dtype, Dim::mul(Dim::Const(2), points(kernel, stmt.level)));
            }
        }
    }
    traffic.text(plan)
}

/// The last statement of every op the user wrote; the ones before it are its inside.
fn results(kernel: &Kernel) -> Vec<StmtId> {
    let mut last = BTreeMap::new();
    for s in kernel.ids() {
        let expr = &kernel.stmt(s).expr;
        if !expr.is_uniform() && !matches!(expr, Expr::Load(_)) {
            last.insert(kernel.stmt(s).place, s);
        }
    }
    last.into_values().collect()
}

fn points(kernel: &Kernel, level: Level) -> Dim {
    let outer = kernel.domain.len() - kernel.reduced as usize;
    let axes = match level {
        Level::Elem => kernel.domain.as_slice(),
        Level::Row => &kernel.domain[..outer],
        Level::All => &[],
    };
    axes.iter().cloned().fold(Dim::Const(1), Dim::mul)
}
