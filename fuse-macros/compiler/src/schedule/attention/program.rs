//! The program that a kernel of attention runs on every score, copied together from the steps it does.

use super::side::Side;
use crate::plan::abi::divides_integers;
use crate::plan::{
    Attention, BufId, Expr, Kernel, Kind, Leaf, LeafSource, Level, Operand, Plan, Stmt, StmtId, Store, View,
};
use crate::schedule::names;
use std::collections::BTreeMap;

/// A program under construction.
pub struct Program<'p> {
    plan: &'p Plan,
    attention: Attention,
    kernel: Kernel,
    /// Where statements have gone, by the kernel they come from.
    copied: BTreeMap<(String, StmtId), StmtId>,
    /// Buffers that are never there.
    inner: Vec<BufId>,
    /// Whether values keep the bits that their element type does not hold.
    is_exact: bool,
}

impl<'p> Program<'p> {
    /// One without statements.
    /// `last`: what is done with the second product.
    pub fn new(plan: &'p Plan, attention: Attention, last: &Kernel) -> Self {
        let (first, weights) = attention.weights_of(plan);
        let ops = [&first.epilogue.ops[..], &weights.ops, &last.ops].concat();
        let kernel = Kernel {
            name: names::of(plan, attention.first as usize, "attention"),
            kind: Kind::Map,
            domain: weights.domain.clone(),
            reduced: 0,
            leaves: vec![],
            stmts: vec![],
            stores: vec![],
            asks: false,
            heeds: false,
            ops,
        };
        let inner = weights.written().collect();
        Program { plan, attention, kernel, copied: BTreeMap::new(), inner, is_exact: false }
    }

    /// From here on values are not rounded on the way.
    pub fn exactly(&mut self) {
        self.is_exact = true;
    }

    /// Takes over places of ops of a further step, whose stores are never there.
    pub fn with(&mut self, step: &Kernel) {
        self.kernel.ops.extend(&step.ops);
        self.inner.extend(step.written());
    }

    /// What a statement is of its own in the program: a value that the kernel gives in the place of a buffer.
    pub fn given(&mut self, side: Side<'_>, s: StmtId, buf: BufId) -> StmtId {
        let leaf = Leaf { source: LeafSource::Buf(buf), views: vec![], level: Level::Elem, indexed: None };
        self.kernel.leaves.push(leaf);
        let expr = Expr::Load(self.kernel.leaves.len() as u32 - 1);
        let given = self.push(Stmt { expr, round: false, name: None, ..side.kernel.stmt(s).clone() });
        self.copied.insert((side.kernel.name.clone(), s), given);
        given
    }

    /// Copies a statement, if there is one.
    pub fn optional(&mut self, side: Side<'_>, s: Option<StmtId>) -> Option<Option<StmtId>> {
        match s {
            Some(s) => self.copy(side, s).map(Some),
            None => Some(None),
        }
    }

    /// Copies a statement and what it needs; `None` if that is more than a score may be made of.
    pub fn copy(&mut self, side: Side<'_>, s: StmtId) -> Option<StmtId> {
        let s = if self.is_exact { side.unrounded(s) } else { s };
        let key = (side.kernel.name.clone(), s);
        if let Some(copied) = self.copied.get(&key) {
            return Some(*copied);
        }
        let stmt = side.kernel.stmt(s);
        let copied = match &stmt.expr {
            Expr::Load(_) if side.loads(s, self.attention.scores) => self.stored(s, side)?,
            expr => {
                let expr = self.expr(side, expr)?;
                let round = stmt.round && !self.is_exact;
                self.push(Stmt { expr, round, ..stmt.clone() })
            }
        };
        self.copied.insert(key, copied);
        Some(copied)
    }

    /// What the first step has stored, in the type of the buffer.
    fn stored(&mut self, s: StmtId, side: Side<'_>) -> Option<StmtId> {
        let (first, _) = self.attention.weights_of(self.plan);
        let [store] = &first.epilogue.stores[..] else { return None };
        let stored = first.epilogue.stmt(store.value).dtype;
        if stored != side.kernel.stmt(s).dtype {
            return None;
        }
        self.copy(Side { kernel: &first.epilogue }, store.value)
    }

    fn expr(&mut self, side: Side<'_>, expr: &Expr) -> Option<Expr> {
        let is_more = match expr {
            Expr::Apply(op, args) => divides_integers(*op, side.kernel.stmt(args[0]).dtype),
            Expr::Gather { .. } | Expr::Reduce(..) | Expr::Scan(..) => true,
            _ => false,
        };
        let mut copied = (!is_more).then(|| expr.clone())?;
        if let Some(leaf) = copied.leaf_mut() {
            *leaf = self.leaf(&side.kernel.leaves[*leaf as usize])?;
        }
        for operand in copied.operands_mut() {
            *operand = self.copy(side, *operand)?;
        }
        Some(copied)
    }

    /// A leaf of the program; one that is read once a row is spread along it.
    fn leaf(&mut self, leaf: &Leaf) -> Option<u32> {
        if leaf.indexed.is_some() || leaf.buf().is_some_and(|buf| self.inner.contains(&buf)) {
            return None;
        }
        let mut leaf = leaf.clone();
        if leaf.level == Level::Row {
            let last = self.kernel.domain.len() as u32 - 1;
            leaf.views.extend([View::Unsqueeze(last), View::Expand(self.kernel.domain.clone())]);
            leaf.level = Level::Elem;
        }
        Some(self.kernel.leaf(leaf))
    }

    /// Appends a statement; what follows from constants, sizes and scalars alone is computed once.
    pub fn push(&mut self, stmt: Stmt) -> StmtId {
        let operands = stmt.expr.operands();
        let once = |s: &StmtId| self.kernel.stmt(*s).level == Level::All;
        let level = match &stmt.expr {
            expr if expr.is_uniform() => Level::All,
            Expr::Load(leaf) => self.kernel.leaves[*leaf as usize].level,
            Expr::Product(_) => Level::Elem,
            _ if operands.iter().all(once) => Level::All,
            _ => Level::Elem,
        };
        self.kernel.push(Stmt { level, ..stmt })
    }

    /// Makes a value one that the kernel asks for, in the place of a buffer.
    pub fn give(&mut self, value: StmtId, buf: BufId) {
        let to = Operand { buf, views: vec![] };
        self.kernel.stores.push(Store { to, value, scatter: None });
    }

    /// The program.
    pub fn finish(self) -> Kernel {
        self.kernel
    }
}
