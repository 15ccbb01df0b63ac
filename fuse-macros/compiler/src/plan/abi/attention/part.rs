//! The kernels of attention: which matrices they have, what they are called with, and what their programs make of weights.

use super::super::{Arg, PARTS, arguments};
use crate::plan::{Expr, Fused, Kernel, Level, StmtId};
use crate::types::DType;
use serde::{Deserialize, Serialize};

/// Which of the kernels of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Part {
    /// Draws which weights are kept, before all others.
    Drops,
    /// The way forward.
    Forward,
    /// The gradient of the queries.
    Queries,
    /// The gradients of the keys and the values.
    Keys,
}

impl Part {
    /// The matrices that a kernel reads and those it writes.
    pub fn matrices(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Part::Drops => (&[], &[]),
            Part::Forward => (&["queries", "keys", "values"], &["result"]),
            Part::Queries => (&["queries", "keys", "values", "result", "gradient"], &["gradient_of_queries"]),
            Part::Keys => (&["queries", "keys", "values", "gradient"], &["gradient_of_keys", "gradient_of_values"]),
        }
    }

    /// How many they are.
    pub fn count(self) -> usize {
        let (read, written) = self.matrices();
        read.len() + written.len()
    }

    /// The kernels on the way forward, in order.
    pub fn forward(fused: &Fused) -> &'static [Part] {
        if fused.drops().is_some() { &[Part::Drops, Part::Forward] } else { &[Part::Forward] }
    }

    /// The kernels on the way back, in order.
    pub const BACK: [Part; 2] = [Part::Queries, Part::Keys];

    /// The program of the kernel.
    ///
    /// # Panics
    /// If it is a kernel of a way back that is none, or draws where nothing is dropped.
    pub fn program(self, fused: &Fused) -> &Kernel {
        let back = || fused.back.as_ref().expect("there is a way back");
        match self {
            Part::Drops => &fused.drops().expect("weights are dropped").program,
            Part::Forward => &fused.score,
            Part::Queries => &back().of_queries,
            Part::Keys => &back().of_keys,
        }
    }
}

/// The arguments of a kernel of attention: the matrices, values a row or what blocks exchange, then those of its program, whose outer extents are
/// the batch axes, m and n.
pub fn attention_arguments(fused: &Fused, part: Part) -> Vec<Arg> {
    let (read, written) = part.matrices();
    let all = (0..(read.len() + written.len()) as u32).flat_map(|k| {
        let matrix = if (k as usize) < read.len() { Arg::Matrix(k) } else { Arg::MatrixTo(k) };
        [matrix, Arg::Heads(k)]
    });
    let rows: &[Arg] = match part {
        Part::Drops => &[Arg::KeptTo],
        Part::Forward if fused.back.is_none() => &[PARTS],
        Part::Forward => &[Arg::LogsTo],
        Part::Queries => &[Arg::Logs, Arg::SumsTo],
        Part::Keys => &[Arg::Logs, Arg::Sums],
    };
    let program = part.program(fused);
    let left_out = |arg: &Arg| match arg {
        Arg::Outer | Arg::Store(_) | Arg::StoreStrides(_) => true,
        Arg::Leaf(k) | Arg::LeafStrides(k) => is_given(program, *k as usize),
        _ => false,
    };
    let rest = arguments(program).into_iter().filter(|arg| !left_out(arg));
    let kept = fused.drops().filter(|_| part != Part::Drops).map(|_| Arg::Kept);
    let counters = (part != Part::Drops).then_some(Arg::Counters);
    all.chain(rows.iter().copied()).chain(kept).chain([Arg::Attention]).chain(counters).chain(rest).collect()
}

/// What tells of a weight whether it is kept and what those are multiplied by that are, if that is what a program makes of weights
/// and the second is one value for the whole kernel.
pub fn drops(program: &Kernel, weight: StmtId) -> Option<[StmtId; 2]> {
    let factors = |s: StmtId| match &program.stmt(s).expr {
        Expr::Apply(op, args) if op.name == "mul" => Some([args[0], args[1]]),
        _ => None,
    };
    let [given, factor] = factors(weight)?;
    let [kept, scale] = factors(factor)?;
    let Expr::Cast(keeps) = program.stmt(kept).expr else { return None };
    let is_bool = program.stmt(keeps).dtype == DType::Bool;
    let is_once = program.stmt(scale).level == Level::All;
    (is_given_value(program, given) && is_bool && is_once).then_some([keeps, scale])
}

/// Whether a value of a program is what the kernel gives it. What is written nowhere is not rounded either.
pub fn is_given_value(program: &Kernel, value: StmtId) -> bool {
    match program.stmt(value).expr {
        Expr::Product(_) => true,
        Expr::Load(leaf) => is_given(program, leaf as usize),
        _ => false,
    }
}

/// Whether a leaf of a program is a value that the kernel gives it: it reads what is stored nowhere.
pub fn is_given(program: &Kernel, leaf: usize) -> bool {
    program.leaves[leaf].buf().is_some_and(|buf| program.writes(buf))
}
