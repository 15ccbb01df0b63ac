//! Calls of every op of the table, made from what its row says about its parameters.

use crate::by_hand;
use crate::common::Rng;
use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::{Attr, Class, Num, Op, ParamKind};
use fuse_compiler::types::{DType, Dim};

/// One call.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What becomes operands, receiver first.
    pub args: Vec<Operand>,
    /// What becomes attributes.
    pub attrs: Vec<Attr>,
}

/// An operand of a call.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor.
    Tensor(Value),
    /// A host scalar of this element type.
    Scalar(Num, DType),
}

/// Makes the samples of one op, receiver element type and receiver extents.
pub struct Maker<'a> {
    pub op: Op,
    pub dtype: DType,
    pub dims: &'a [usize],
    pub rng: Rng,
}

/// The calls of an op whose receiver has these extents; none where the op has no use for them.
pub fn samples(op: Op, dtype: DType, dims: &[usize]) -> Vec<Sample> {
    let rng = Rng::named(&format!("{} {dtype} {dims:?}", op.name));
    let mut maker = Maker { op, dtype, dims, rng };
    match by_hand::find(op.name) {
        Some(make) => make(&mut maker),
        None => maker.any_row(),
    }
}

impl Maker<'_> {
    /// As many calls as the parameter with most choices has, each with the next choice of every parameter.
    fn any_row(&mut self) -> Vec<Sample> {
        let choices: Vec<Vec<Choice>> = self.op.params.iter().map(|param| self.choices(param.kind)).collect();
        if choices.iter().any(Vec::is_empty) {
            return vec![];
        }
        let count = choices.iter().map(Vec::len).max().unwrap_or(1);
        let mut samples: Vec<Sample> = (0..count).map(|k| self.choose(&choices, k)).collect();
        if self.op.class == Class::Elementwise && !self.dims.is_empty() {
            samples.push(self.special());
        }
        samples
    }

    fn choose(&mut self, choices: &[Vec<Choice>], k: usize) -> Sample {
        let mut sample = Sample { args: vec![self.receiver()], attrs: vec![] };
        for list in choices {
            match &list[k % list.len()] {
                Choice::Operand(operand) => sample.args.push(operand.clone()),
                Choice::Attr(attr) => sample.attrs.push(attr.clone()),
            }
        }
        self.avoid_zero_divisors(&mut sample);
        sample
    }

    /// Operands of the numbers at which functions go wrong, in random company.
    fn special(&mut self) -> Sample {
        let choices: Vec<Vec<Choice>> = self.op.params.iter().map(|param| self.choices(param.kind)).collect();
        let mut sample = self.choose(&choices, 0);
        for arg in &mut sample.args {
            if let Operand::Tensor(value) = arg {
                *value = self.rng.special(value.dtype, &value.dims);
            }
        }
        self.avoid_zero_divisors(&mut sample);
        sample
    }

    fn avoid_zero_divisors(&self, sample: &mut Sample) {
        let faults = self.op.scalar.as_ref().is_some_and(|scalar| scalar.zero_fault) && self.dtype.is_int();
        match sample.args.get_mut(1) {
            Some(Operand::Tensor(divisor)) if faults => {
                divisor.data.iter_mut().filter(|x| **x == Num::I(0)).for_each(|x| *x = Num::I(7));
            }
            _ => {}
        }
    }

    fn choices(&mut self, kind: ParamKind) -> Vec<Choice> {
        let rank = self.dims.len() as i64;
        match kind {
            ParamKind::Operand => self.operands(self.dtype),
            ParamKind::Branch => DType::ALL.into_iter().map(|dtype| self.tensor(dtype, self.dims)).collect(),
            ParamKind::Tensor => vec![self.tensor(self.dtype, self.dims)],
            ParamKind::TensorOf(dtype) => vec![self.tensor(dtype, self.dims)],
            ParamKind::Scalar => vec![Choice::Operand(self.scalar(self.dtype))],
            ParamKind::ScalarOf(DType::I32) => [-2, 0, 1, 3, 5].map(|k| number(Num::I(k), DType::I32)).into(),
            ParamKind::ScalarOf(dtype) => vec![number(Num::F(0.25), dtype)],
            ParamKind::Axis => {
                (0..rank).chain([-1]).filter(|_| rank > 0).map(|axis| Choice::Attr(Attr::Int(axis))).collect()
            }
            ParamKind::Dim => [-1, 0, 2].map(|k| Choice::Attr(Attr::Dim(k.into()))).into(),
            ParamKind::Bool => vec![Choice::Attr(Attr::Bool(false))],
            ParamKind::DType => DType::ALL.map(|dtype| Choice::Attr(Attr::DType(dtype))).into(),
            other => panic!("`{}` has a parameter of kind {other:?}: write its samples by hand", self.op.name),
        }
    }

    /// What broadcasts with the receiver: the same extents, a row, a column, a scalar.
    fn operands(&mut self, dtype: DType) -> Vec<Choice> {
        let same = self.dims.to_vec();
        let row = same.iter().rev().take(1).copied().collect::<Vec<_>>();
        let mut column = same.clone();
        if let Some(last) = column.last_mut() {
            *last = 1;
        }
        let mut choices = vec![self.tensor(dtype, &same), self.tensor(dtype, &row), self.tensor(dtype, &column)];
        choices.push(Choice::Operand(self.scalar(dtype)));
        choices
    }

    fn tensor(&mut self, dtype: DType, dims: &[usize]) -> Choice {
        Choice::Operand(self.of(dtype, dims))
    }

    /// The receiver.
    pub fn receiver(&mut self) -> Operand {
        self.like(self.dims)
    }

    /// A tensor of the receiver's element type.
    pub fn like(&mut self, dims: &[usize]) -> Operand {
        self.of(self.dtype, dims)
    }

    /// A tensor of ordinary numbers.
    pub fn of(&mut self, dtype: DType, dims: &[usize]) -> Operand {
        // Small fp8 is 0, so where a product of many numbers has become infinite before it meets one depends on its order.
        let is_long_product = dtype == DType::F8E4M3 && self.op.name.starts_with("prod");
        let domain = if is_long_product { (-1.0, 1.0) } else { self.op.domain };
        Operand::Tensor(self.rng.value(dtype, dims, domain))
    }

    /// A tensor of positions below `end`.
    pub fn index(&mut self, dims: &[usize], end: usize) -> Operand {
        Operand::Tensor(self.rng.index(dims, end))
    }

    /// A scalar in the compute type, of few bits: rounding it to the element type would lose nothing.
    pub fn scalar(&mut self, dtype: DType) -> Operand {
        let quarters = self.rng.below(15) as i64 + 1;
        match dtype {
            DType::Bool => Operand::Scalar(Num::B(quarters & 1 == 1), dtype),
            dtype if dtype.is_int() => Operand::Scalar(Num::I(quarters), dtype),
            _ => Operand::Scalar(Num::F(quarters as f64 / 4.0), dtype.compute()),
        }
    }
}

/// One choice for a parameter.
enum Choice {
    Operand(Operand),
    Attr(Attr),
}

fn number(value: Num, dtype: DType) -> Choice {
    Choice::Operand(Operand::Scalar(value, dtype))
}

/// An attribute of sizes.
pub fn sizes(dims: &[usize]) -> Attr {
    Attr::Dims(dims.iter().map(|&n| Dim::Const(n as i64)).collect())
}

/// An attribute of a size.
pub fn size(n: usize) -> Attr {
    Attr::Dim(Dim::Const(n as i64))
}
