//! How far a result in floats may lie from the reference, which is computed in f64.
//!
//! An op computes in its compute type (f32, or f64 for f64), every step with a relative error of at most `u`, half a unit in
//! the last place. What an op may be off is a number of such roundings, times the size of what is rounded, plus the one
//! rounding of the result to its element type. Ops that are exactly rounded, and all on integers and bools, have no room.

use crate::common::ulp;
use crate::samples::{Operand, Sample};
use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::{Fact, Num, Op};
use fuse_compiler::types::DType;

/// What the roundings are relative to.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    /// The result.
    Result,
    /// The result of the same op on the absolute values of its operands: the sum of |a| or |a||b|.
    Terms,
    /// 1 plus the largest absolute value of any operand, or the result where it is larger.
    Largest,
}

/// How many additions one after the other a term goes through.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    /// None.
    Point,
    /// Lanes, a tree over them, chunks.
    Tree,
    /// All.
    Line,
}

struct Bound {
    ops: &'static [&'static str],
    roundings: f64,
    depth: Depth,
    unit: Unit,
}

const BOUNDS: &[Bound] = &[
    Bound {
        ops: &["exp", "ln", "sin", "cos", "erf", "rsqrt", "recip"],
        roundings: 4.0,
        depth: Depth::Point,
        unit: Unit::Result,
    },
    Bound {
        ops: &["tanh", "sigmoid", "silu", "leaky_relu", "floor_divide", "remainder"],
        roundings: 6.0,
        depth: Depth::Point,
        unit: Unit::Result,
    },
    // 1 + erf(x / sqrt 2) and 1 + tanh(..) cancel for negative x.
    Bound { ops: &["gelu", "gelu_tanh"], roundings: 8.0, depth: Depth::Point, unit: Unit::Largest },
    Bound { ops: &["powi", "powf"], roundings: 16.0, depth: Depth::Point, unit: Unit::Result },
    Bound { ops: &["sum", "mean", "index_add", "scatter_add"], roundings: 4.0, depth: Depth::Tree, unit: Unit::Terms },
    Bound {
        ops: &["cumsum", "matmul", "linear", "addmm", "baddbmm"],
        roundings: 4.0,
        depth: Depth::Line,
        unit: Unit::Terms,
    },
    // 2^-9 of the terms: tensor cores keep few bits of sums of fp8.
    Bound { ops: &["scaled_matmul"], roundings: 32768.0, depth: Depth::Line, unit: Unit::Terms },
    // Equal factors all round the same way.
    Bound { ops: &["prod"], roundings: 8.0, depth: Depth::Line, unit: Unit::Result },
    Bound { ops: &["norm"], roundings: 8.0, depth: Depth::Tree, unit: Unit::Result },
    // Of equal numbers, the rounding of their mean is left.
    Bound {
        ops: &["var", "std", "var_correction", "std_correction"],
        roundings: 16.0,
        depth: Depth::Tree,
        unit: Unit::Largest,
    },
    Bound { ops: &["softmax"], roundings: 24.0, depth: Depth::Tree, unit: Unit::Result },
    Bound {
        ops: &["logsumexp", "log_softmax", "layer_norm", "rms_norm"],
        roundings: 16.0,
        depth: Depth::Tree,
        unit: Unit::Largest,
    },
    Bound { ops: &["cross_entropy", "cross_entropy_with"], roundings: 16.0, depth: Depth::Line, unit: Unit::Largest },
    Bound { ops: &["scaled_dot_product_attention"], roundings: 64.0, depth: Depth::Tree, unit: Unit::Largest },
];

/// How far every element of a result may lie from the reference; `None` where it must be the same to the bit.
pub struct Room {
    bound: &'static Bound,
    /// The most terms that go into one element.
    terms: f64,
    unit: UnitValue,
}

enum UnitValue {
    Result,
    Terms(Value),
    Constant(f64),
}

impl Room {
    /// The room of a call; `terms` evaluates the same op on other operands.
    pub fn of(op: Op, sample: &Sample, terms: impl Fn(&Sample) -> Value) -> Option<Room> {
        let base = op.name.trim_end_matches("_keepdim").trim_end_matches("_all");
        let Some(bound) = BOUNDS.iter().find(|bound| bound.ops.contains(&base)) else {
            let exact = op.scalar.as_ref().is_none_or(|scalar| scalar.facts.contains(&Fact::Exact) || !arithmetic(op));
            assert!(exact, "`{}` is not exact: say in BOUNDS how far it may be off", op.name);
            return None;
        };
        let longest = sample.args.iter().map(Operand::len).max().unwrap_or(0).max(2) as f64;
        let unit = match bound.unit {
            Unit::Result => UnitValue::Result,
            Unit::Terms => UnitValue::Terms(terms(&sample.absolute())),
            Unit::Largest => UnitValue::Constant(1.0 + sample.largest()),
        };
        Some(Room { bound, terms: longest, unit })
    }

    /// Whether an element at a position is near enough to the reference.
    pub fn holds(&self, at: usize, got: f64, want: f64, dtype: DType) -> bool {
        let rounded = Num::F(want).round(dtype).f();
        if got == rounded || (got.is_nan() && want.is_nan()) {
            return true;
        }
        let unit = match &self.unit {
            UnitValue::Result => want.abs(),
            UnitValue::Terms(terms) => terms.data[at].f(),
            UnitValue::Constant(unit) => unit.max(want.abs()),
        };
        let room = (self.bound.roundings + self.depth(dtype)) * ulp(unit, dtype.compute()) / 2.0;
        // A composite's reference ends with a cast, so of the halves both sides are rounded.
        (got - want).abs() <= room + ulp(want.abs().max(got.abs()), dtype)
    }

    /// How many additions one after the other a term goes through. The reference adds in f64, one after the other.
    fn depth(&self, dtype: DType) -> f64 {
        match self.bound.depth {
            // The reference is not rounded correctly in f64 either.
            Depth::Point if dtype == DType::F64 => 32.0,
            Depth::Point => 0.0,
            Depth::Tree if dtype != DType::F64 => self.terms.min(64.0) + self.terms.log2(),
            _ => self.terms,
        }
    }
}

/// Whether the results of an op are new numbers, and not true, false or one of its operands.
fn arithmetic(op: Op) -> bool {
    !["eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "where_cond", "masked_fill"].contains(&op.name)
        && !op.name.starts_with("logical_")
        && !op.name.starts_with("bitwise_")
}

impl Operand {
    fn len(&self) -> usize {
        match self {
            Operand::Tensor(value) => value.data.len(),
            Operand::Scalar(..) => 1,
        }
    }
}

impl Sample {
    /// The same call on absolute values.
    fn absolute(&self) -> Sample {
        let absolute = |x: &Num| match x {
            Num::F(x) => Num::F(x.abs()),
            other => *other,
        };
        let operand = |arg: &Operand| match arg {
            Operand::Tensor(value) => {
                Operand::Tensor(Value::new(value.dtype, value.dims.clone(), value.data.iter().map(absolute).collect()))
            }
            Operand::Scalar(number, dtype) => Operand::Scalar(absolute(number), *dtype),
        };
        Sample { args: self.args.iter().map(operand).collect(), attrs: self.attrs.clone() }
    }

    /// The largest finite absolute value of any float operand.
    fn largest(&self) -> f64 {
        let floats = self.args.iter().flat_map(|arg| match arg {
            Operand::Tensor(value) => value.data.clone(),
            Operand::Scalar(number, _) => vec![*number],
        });
        let size = |x: Num| match x {
            Num::F(x) if x.is_finite() => x.abs(),
            _ => 0.0,
        };
        floats.map(size).fold(0.0, f64::max)
    }
}
