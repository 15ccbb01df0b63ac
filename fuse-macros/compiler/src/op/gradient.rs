//! The gradient column: how the cotangents of an op's results become those of its operands.
//!
//! A gradient is built in the compute type, as the op itself is computed, and rounded once to the operand's element type.
//! It has the extents that the operands broadcast to; who reads the column sums it to those of the operand.

use super::{Attr, Ops, Val};
use crate::types::{DType, Dim};

/// How an op is differentiated.
#[derive(Clone, Copy)]
pub enum Gradient {
    /// The cotangent of operand `k`, built from the call. Asked only for float operands that need it.
    Built(Pull),
    /// That of the graph the composite stands for.
    Opened,
    /// Zero: the op is constant almost everywhere, cut off on purpose, or has no tensor operands.
    Zero,
    /// There is none.
    Undefined,
}

/// Builds the cotangent of one operand of a call.
pub type Pull = fn(&mut Ops, &Pulled, usize) -> Val;

/// A call whose cotangents are asked for.
pub struct Pulled<'a> {
    /// The operands.
    pub args: &'a [Val],
    /// The operands in their compute types.
    pub x: Vec<Val>,
    /// The attributes.
    pub attrs: &'a [Attr],
    /// The results.
    pub outs: &'a [Val],
    /// The first result in its compute type.
    pub y: Val,
    /// The cotangent of each result that has one.
    pub ups: Vec<Option<Val>>,
    /// The cotangent of the first result that has one, in its compute type.
    pub g: Val,
}

impl Gradient {
    /// The cotangent of operand `k` of a call, in the operand's element type and extents.
    pub fn pull(pull: Pull, o: &mut Ops, call: &Pulled, k: usize) -> Val {
        let like = o.ty(call.args[k]).clone();
        let built = pull(o, call, k);
        let summed = o.sum_to(built, like.dims);
        o.cast(summed, like.dtype)
    }
}

impl<'a> Pulled<'a> {
    /// Reads a call with these results and their cotangents, of which there is at least one.
    pub fn new(o: &mut Ops, args: &'a [Val], attrs: &'a [Attr], outs: &'a [Val], ups: Vec<Option<Val>>) -> Self {
        let up = ups.iter().flatten().next().copied().expect("a result has a cotangent");
        let x = args.iter().map(|&arg| o.widen(arg)).collect();
        Pulled { args, x, attrs, outs, y: o.widen(outs[0]), g: o.widen(up), ups }
    }
}

/// What gradients are written in, beside what decompositions are.
impl Ops<'_> {
    /// `-x`.
    pub fn neg(&mut self, x: Val) -> Val {
        self.apply("neg", &[x])
    }

    /// `c x` for a known number.
    pub fn scale(&mut self, x: Val, c: f64) -> Val {
        let c = self.float(c, self.dtype(x));
        self.mul(x, c)
    }

    /// `x + c` for a known number.
    pub fn shift(&mut self, x: Val, c: f64) -> Val {
        let c = self.float(c, self.dtype(x));
        self.add(x, c)
    }

    /// The value where the condition holds and 0 elsewhere.
    pub fn only(&mut self, condition: Val, x: Val) -> Val {
        let zero = self.zero(self.dtype(x));
        self.choose(condition, x, zero)
    }

    /// 0 where the condition holds and the value elsewhere.
    pub fn except(&mut self, condition: Val, x: Val) -> Val {
        let zero = self.zero(self.dtype(x));
        self.choose(condition, zero, x)
    }

    /// A comparison with zero.
    pub fn against_zero(&mut self, compare: &str, x: Val) -> Val {
        let zero = self.zero(self.dtype(x));
        self.apply(compare, &[x, zero])
    }

    /// Zeros.
    pub fn zeros(&mut self, dims: Vec<Dim>, dtype: DType) -> Val {
        self.with("zeros", &[], vec![Attr::Dims(dims), Attr::DType(dtype)])
    }

    /// The sum over what was broadcast, so that the value has these extents; the value itself if it has them.
    pub fn sum_to(&mut self, x: Val, dims: Vec<Dim>) -> Val {
        if self.ty(x).dims == dims { x } else { self.with("sum_to", &[x], vec![Attr::Dims(dims)]) }
    }
}
