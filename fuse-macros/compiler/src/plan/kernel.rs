//! A generated kernel: a program in single assignment form over a domain.

use super::{BufId, Operand, Phases, StmtId, View};
use crate::op::{Literal, Op, Reduction};
use crate::types::{DType, Dim};
use serde::{Deserialize, Serialize};

/// A generated kernel: a program over a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its entry point.
    pub name: String,
    /// How the domain is walked.
    pub kind: Kind,
    /// The extents it iterates over; reduced axes last.
    pub domain: Vec<Dim>,
    /// How many of the last axes are reduced (`Row`, `Column`) or sequential (`Line`: 1); 0 for `Map`.
    pub reduced: u32,
    /// What it reads.
    pub leaves: Vec<Leaf>,
    /// Its program; operands come before their users.
    pub stmts: Vec<Stmt>,
    /// What it writes.
    pub stores: Vec<Store>,
    /// The places of the ops fused in it, in program order.
    pub ops: Vec<u32>,
    /// Whether it is part of a turn that may be left out: it is told where to find whether it has anything to do.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub asks: bool,
    /// Whether it may write over a tensor of the caller, see [`PartWrite`](super::PartWrite): on a GPU it does nothing in a call that has
    /// failed.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub heeds: bool,
}

/// How a kernel walks its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Every point on its own.
    Map,
    /// Rows along the reduced axes, in the canonical row order; any number of reductions, one after the other.
    Row,
    /// Columns along the reduced axes, in the canonical column order; reductions of elementwise values only.
    Column,
    /// Along the last axis point after point: scans and scatters.
    Line,
}

/// What one iteration of a value stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// One value for the whole kernel: a reduction over all rows, done by the last block to finish.
    All,
    /// One value a row (or column).
    Row,
    /// One value a point.
    Elem,
}

/// Something a kernel reads by position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// Where values come from.
    pub source: LeafSource,
    /// Views that bring the source onto the domain (`Elem`) or onto its outer axes (`Row`).
    pub views: Vec<View>,
    /// Whether it is read at every point or once a row.
    pub level: Level,
    /// How an [`Expr::Gather`] indexes it. Before the views, that axis is cut down to extent 1.
    pub indexed: Option<Lookup>,
}

/// A read at a computed position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The axis of the source.
    pub axis: u32,
    /// The op that reads, as an index into [`Plan::places`](super::Plan::places): ops share no leaf, so that a fault is one op's.
    pub place: u32,
}

/// Where the values of a leaf come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeafSource {
    /// A buffer.
    Buf(BufId),
    /// A virtual contiguous i64 tensor of these extents whose elements are their own row-major positions.
    Index(Vec<Dim>),
}

/// One statement: a value and how it comes about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stmt {
    /// How the value comes about.
    pub expr: Expr,
    /// Its element type. Halves are held in f32.
    pub dtype: DType,
    /// Whether it is rounded to its element type; false where it stays in the compute type.
    pub round: bool,
    /// One value a point, a row, or for the whole kernel.
    pub level: Level,
    /// The user's variable, if it has one.
    pub name: Option<String>,
    /// Index into [`Plan::places`](super::Plan::places).
    pub place: u32,
}

/// How a value comes about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// The leaf at the current point or row.
    Load(u32),
    /// The leaf at the current point, moved along its indexed axis to a computed position. Out of range is a fault.
    Gather {
        /// The leaf.
        leaf: u32,
        /// The position, an i64 or i32 value.
        index: StmtId,
    },
    /// A constant, rounded to the statement's compute type.
    Const(Literal),
    /// The n-th host scalar.
    Scalar(u32),
    /// A size, converted to the statement's type.
    Size(Dim),
    /// An elementwise op of the table.
    Apply(Op, Vec<StmtId>),
    /// A conversion to the statement's element type, as Rust's `as`.
    Cast(StmtId),
    /// A reduction over the reduced axes (`Row` level), or over all rows (`All` level).
    Reduce(Reduction, StmtId),
    /// A running sum along the last axis (`Line` kernels).
    Scan(Reduction, StmtId),
    /// A uniform f32 in [0, 1) of the n-th draw at this position of the draw.
    Uniform(u32, StmtId),
    /// A standard normal f32 of the n-th draw at this position of the draw.
    Normal(u32, StmtId),
    /// The element of the n-th product, in the program that follows one or several.
    Product(u32),
}

/// Something a kernel writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Store {
    /// The buffer, under views that bring it onto the domain (`Elem`), its outer axes (`Row`) or rank 0 (`All`).
    pub to: Operand,
    /// The value.
    pub value: StmtId,
    /// For scatters (`Line`): the buffer's axis (before the views, cut down to extent 1), the position along it, and whether to add.
    pub scatter: Option<Scatter>,
}

/// A write at a computed position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// The axis of the buffer.
    pub axis: u32,
    /// The position, an i64 or i32 value. Out of range is a fault.
    pub index: StmtId,
    /// Add to what is there, or replace it.
    pub add: bool,
    /// The op that writes, as an index into [`Plan::places`](super::Plan::places).
    pub place: u32,
}

impl Leaf {
    /// The buffer that values come from, if they come from one.
    pub fn buf(&self) -> Option<BufId> {
        match self.source {
            LeafSource::Buf(buf) => Some(buf),
            LeafSource::Index(_) => None,
        }
    }

    /// Whether every point reads the element in its own place.
    pub fn is_in_place(&self) -> bool {
        self.views.is_empty() && self.level == Level::Elem && self.indexed.is_none()
    }
}

impl Expr {
    /// The statements an expression reads.
    pub fn operands(&self) -> Vec<StmtId> {
        match self {
            Expr::Apply(_, args) => args.clone(),
            Expr::Gather { index, .. } => vec![*index],
            Expr::Cast(x) | Expr::Reduce(_, x) | Expr::Scan(_, x) | Expr::Uniform(_, x) | Expr::Normal(_, x) => {
                vec![*x]
            }
            Expr::Load(_) | Expr::Const(_) | Expr::Scalar(_) | Expr::Size(_) | Expr::Product(_) => vec![],
        }
    }

    /// The same, to be changed.
    pub fn operands_mut(&mut self) -> &mut [StmtId] {
        match self {
            Expr::Apply(_, args) => args,
            Expr::Gather { index, .. } => std::slice::from_mut(index),
            Expr::Cast(x) | Expr::Reduce(_, x) | Expr::Scan(_, x) | Expr::Uniform(_, x) | Expr::Normal(_, x) => {
                std::slice::from_mut(x)
            }
            Expr::Load(_) | Expr::Const(_) | Expr::Scalar(_) | Expr::Size(_) | Expr::Product(_) => &mut [],
        }
    }

    /// The random draw it takes a number of, and the position that it asks.
    pub fn draw(&self) -> Option<(u32, StmtId)> {
        match self {
            Expr::Uniform(draw, at) | Expr::Normal(draw, at) => Some((*draw, *at)),
            _ => None,
        }
    }

    /// Whether it takes a number of a random draw.
    pub fn is_draw(&self) -> bool {
        self.draw().is_some()
    }

    /// Whether it takes many instructions: a function of the table's heavy ones, or a draw.
    pub fn is_heavy(&self) -> bool {
        self.is_draw() || matches!(self, Expr::Apply(op, _) if op.scalar.as_ref().is_some_and(|row| row.heavy))
    }

    /// Whether it is the same everywhere, whatever level it carries: a constant, a host scalar or a size.
    pub fn is_uniform(&self) -> bool {
        matches!(self, Expr::Const(_) | Expr::Scalar(_) | Expr::Size(_))
    }

    /// The leaf an expression reads.
    pub fn leaf(&self) -> Option<u32> {
        match self {
            Expr::Load(leaf) | Expr::Gather { leaf, .. } => Some(*leaf),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn leaf_mut(&mut self) -> Option<&mut u32> {
        match self {
            Expr::Load(leaf) | Expr::Gather { leaf, .. } => Some(leaf),
            _ => None,
        }
    }
}

impl Kernel {
    /// The buffers it reads, those that several leaves read several times.
    pub fn read(&self) -> impl Iterator<Item = BufId> {
        self.leaves.iter().filter_map(Leaf::buf)
    }

    /// The buffers it writes.
    pub fn written(&self) -> impl Iterator<Item = BufId> {
        self.stores.iter().map(|store| store.to.buf)
    }

    /// Whether it reads a buffer.
    pub fn reads(&self, buf: BufId) -> bool {
        self.read().any(|read| read == buf)
    }

    /// Whether it writes a buffer.
    pub fn writes(&self, buf: BufId) -> bool {
        self.written().any(|written| written == buf)
    }

    /// The order its statements run in.
    pub fn phases(&self) -> Phases {
        Phases::of(self)
    }

    /// Appends a statement. A leaf has one that loads it, so that all parts of a kernel which need it find that one.
    pub fn push(&mut self, stmt: Stmt) -> StmtId {
        let loads = |other: &StmtId| matches!(stmt.expr, Expr::Load(_)) && self.stmt(*other).expr == stmt.expr;
        let known = self.ids().find(loads);
        known.unwrap_or_else(|| {
            self.stmts.push(stmt);
            StmtId(self.stmts.len() as u32 - 1)
        })
    }

    /// The number of a leaf, which equal accesses share.
    pub fn leaf(&mut self, leaf: Leaf) -> u32 {
        let known = self.leaves.iter().position(|other| *other == leaf);
        known.unwrap_or_else(|| {
            self.leaves.push(leaf);
            self.leaves.len() - 1
        }) as u32
    }

    /// The statement of this number.
    pub fn stmt(&self, id: StmtId) -> &Stmt {
        &self.stmts[id.0 as usize]
    }

    /// The statements in program order.
    pub fn ids(&self) -> impl Iterator<Item = StmtId> + use<> {
        (0..self.stmts.len() as u32).map(StmtId)
    }

    /// Which statements some values need, those values included.
    pub fn needed(&self, values: impl IntoIterator<Item = StmtId>) -> Vec<bool> {
        let mut needed = vec![false; self.stmts.len()];
        values.into_iter().for_each(|value| needed[value.0 as usize] = true);
        for k in (0..self.stmts.len()).rev() {
            if needed[k] {
                self.stmts[k].expr.operands().iter().for_each(|operand| needed[operand.0 as usize] = true);
            }
        }
        needed
    }

    /// The level of a store: that of its value or its position. Maps store every point, constants too.
    pub fn store_level(&self, store: &Store) -> Level {
        if self.kind == Kind::Map {
            return Level::Elem;
        }
        let value = self.stmt(store.value).level;
        store.scatter.as_ref().map_or(value, |s| value.max(self.stmt(s.index).level))
    }

    /// The statements a store reads.
    pub fn store_operands(&self, store: &Store) -> Vec<StmtId> {
        std::iter::once(store.value).chain(store.scatter.as_ref().map(|s| s.index)).collect()
    }
}
