//! Makes random programs: every op of the table that a program may use, on values that fit, sizes that are known only when
//! it runs, and arguments in every layout.

use crate::common::{Lay, Rng};
use crate::program::{Operand, Param, Program, Ref, Size, Step, Trace};
use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::{Attr, Call, Class, Literal, Op, OpEffect, ParamKind, table};
use fuse_compiler::types::DType;
use fuse_runtime::{Device, RawTensor};

/// Extents to choose from: the sizes at which vectors and tails begin and end, in few elements.
const EXTENTS: [usize; 9] = [0, 1, 1, 2, 3, 4, 5, 17, 33];

/// What no value of a program has more elements than.
const LARGEST: usize = 6000;

/// Makes a step, if the values so far allow one.
type Make = fn(&mut Generator) -> Option<Step>;

/// Ops that need operands of special extents are made by their own functions.
const SPECIAL: [(&str, Make); 12] = [
    ("matmul", Generator::matmul),
    ("linear", Generator::linear),
    ("cat", Generator::cat),
    ("stack", Generator::stack),
    ("gather", Generator::gather),
    ("index_select", Generator::index_select),
    ("scatter_add", Generator::scatter_add),
    ("index_add", Generator::index_add),
    ("layer_norm", Generator::layer_norm),
    ("rms_norm", Generator::rms_norm),
    ("cast", Generator::cast),
    ("dropout", Generator::dropout),
];

/// A program in the making: its steps, and what they give.
pub struct Generator {
    rng: Rng,
    program: Program,
    trace: Trace,
}

/// The program of a seed. Its steps run on the processor, which tells what fits together, whatever device is under test.
pub fn program(seed: u64) -> Program {
    let rng = Rng::new(seed);
    let mut generator = Generator { rng, program: Program { steps: vec![], outs: vec![] }, trace: vec![] };
    for _ in 0..1 + generator.rng.below(3) {
        generator.input();
    }
    let wanted = 3 + generator.rng.below(24);
    for _ in 0..wanted {
        generator.step();
    }
    generator.finish()
}

impl Generator {
    /// Adds a step, if it works and is not too large.
    fn add(&mut self, step: Step) -> Option<Ref> {
        let results = step.eager(&self.trace, Device::cpu()).ok()?;
        if results.iter().any(|result| result.numel() > LARGEST || result.shape().len() > 5) {
            return None;
        }
        self.program.steps.push(step);
        self.trace.push(results);
        Some(Ref { step: self.trace.len() - 1, out: 0 })
    }

    fn input(&mut self) {
        let rank = [0, 1, 1, 2, 2, 2, 3, 3, 4][self.rng.below(9)];
        let mut dims: Vec<usize> = (0..rank).map(|_| *self.rng.pick(&EXTENTS)).collect();
        while dims.iter().product::<usize>() > LARGEST {
            dims.pop();
        }
        let dtype = self.dtype();
        self.argument(dtype, &dims).expect("an argument of few elements");
    }

    fn dtype(&mut self) -> DType {
        use DType::*;
        *self.rng.pick(&[F32, F32, F32, F64, F16, BF16, I64, I32, U8, Bool])
    }

    /// A new argument, if it is not too large.
    fn argument(&mut self, dtype: DType, dims: &[usize]) -> Option<Ref> {
        if dims.iter().product::<usize>() > LARGEST {
            return None;
        }
        let value = match self.rng.below(8) {
            0 => self.rng.special(dtype, dims),
            _ => self.rng.value(dtype, dims, (-4.0, 4.0)),
        };
        self.argument_of(value)
    }

    fn argument_of(&mut self, value: Value) -> Option<Ref> {
        let lay = *self.rng.pick(&Lay::ALL);
        let value = lay.adapt(value);
        self.add(Step::Input(value, lay))
    }

    fn step(&mut self) {
        let step = match self.rng.below(7) {
            0 | 1 => {
                let (_, make) = *self.rng.pick(&SPECIAL);
                make(self)
            }
            2 => self.view(),
            _ => self.any_row(),
        };
        if let Some(step) = step {
            self.add(step);
        }
    }

    /// Returns a few values; what none of them needs is left out.
    fn finish(mut self) -> Program {
        let last = self.trace.len() - 1;
        let mut outs = vec![Ref { step: last, out: 0 }];
        for _ in 0..self.rng.below(4) {
            let at = Ref { step: self.rng.below(self.trace.len()), out: 0 };
            if !outs.contains(&at) {
                outs.push(at);
            }
        }
        self.program.outs = outs;
        self.program.pruned()
    }

    fn tensor(&self, at: Ref) -> &RawTensor {
        &self.trace[at.step][at.out]
    }

    fn shape(&self, at: Ref) -> Vec<usize> {
        self.tensor(at).shape().to_vec()
    }

    /// An earlier value that a test holds for, later ones rather than earlier ones.
    fn find(&mut self, test: impl Fn(&RawTensor) -> bool) -> Option<Ref> {
        let all = self
            .trace
            .iter()
            .enumerate()
            .flat_map(|(step, results)| (0..results.len()).map(move |out| Ref { step, out }));
        let fit: Vec<Ref> = all.filter(|&at| test(self.tensor(at))).collect();
        let from = if self.rng.chance(75) { fit.len().saturating_sub(3) } else { 0 };
        (!fit.is_empty()).then(|| *self.rng.pick(&fit[from..]))
    }

    /// Any op whose row says enough about its parameters.
    fn any_row(&mut self) -> Option<Step> {
        let rows: Vec<Op> = table().iter().copied().filter(regular).collect();
        let op = *self.rng.pick(&rows);
        let receiver = self.find(|tensor| op.accepts.contains(tensor.dtype()))?;
        let (mut operands, mut params) = (vec![Operand::Value(receiver)], vec![]);
        let dtype = self.tensor(receiver).dtype();
        let branch = self.dtype();
        for param in op.params {
            match param.kind {
                ParamKind::Operand => operands.push(self.operand(op, receiver, dtype)?),
                ParamKind::Branch => operands.push(self.operand(op, receiver, branch)?),
                ParamKind::TensorOf(other) => operands.push(self.operand_tensor(receiver, other)?),
                ParamKind::Scalar => operands.push(self.scalar(dtype)),
                ParamKind::ScalarOf(_) => {
                    operands.push(Operand::Scalar(Literal::Int(self.rng.below(5) as i64 - 1), DType::I32));
                }
                ParamKind::Axis => params.push(self.axis(receiver)?),
                ParamKind::Dim => params.push(Param::Attr(Attr::Dim((self.rng.below(4) as i64 - 1).into()))),
                _ => return None,
            }
        }
        Some(Step::Call(op, operands, params))
    }

    fn axis(&mut self, receiver: Ref) -> Option<Param> {
        let rank = self.shape(receiver).len();
        (rank > 0).then(|| Param::Attr(Attr::Int(self.rng.below(2 * rank) as i64 - rank as i64)))
    }

    /// Something that broadcasts with the receiver: a tensor, or a scalar.
    fn operand(&mut self, op: Op, receiver: Ref, dtype: DType) -> Option<Operand> {
        // Dividing integers by zero is an error; how errors compare is seen elsewhere.
        let divides = op.scalar.as_ref().is_some_and(|scalar| scalar.zero_fault) && dtype.is_int();
        if divides || self.rng.chance(25) { Some(self.scalar(dtype)) } else { self.operand_tensor(receiver, dtype) }
    }

    fn operand_tensor(&mut self, receiver: Ref, dtype: DType) -> Option<Operand> {
        let shape = self.shape(receiver);
        let fits = |tensor: &RawTensor| tensor.dtype() == dtype && broadcasts(&shape, tensor.shape());
        let found = if self.rng.chance(70) { self.find(fits) } else { None };
        let at = match found {
            Some(at) => at,
            None => {
                // A part of the receiver's extents from the end, some of them 1.
                let from = self.rng.below(shape.len() + 1);
                let dims: Vec<usize> = shape[from..].iter().map(|&n| if self.rng.chance(20) { 1 } else { n }).collect();
                self.argument(dtype, &dims)?
            }
        };
        Some(Operand::Value(at))
    }

    fn scalar(&mut self, dtype: DType) -> Operand {
        let number = self.rng.below(9) as i64 + 1;
        match dtype {
            DType::Bool => Operand::Scalar(Literal::Bool(number > 4), dtype),
            dtype if dtype.is_int() => Operand::Scalar(Literal::Int(number), dtype),
            _ => Operand::Scalar(Literal::Float(number as f64 * 0.3 - 1.0), dtype.compute()),
        }
    }

    fn view(&mut self) -> Option<Step> {
        let x = self.find(|_| true)?;
        let shape = self.shape(x);
        let rank = shape.len();
        let attr = |attr: Attr| vec![Param::Attr(attr)];
        let position = |k: usize| Param::Attr(Attr::Dim((k as i64).into()));
        let (name, params) = match self.rng.below(9) {
            0 => ("permute", attr(Attr::Ints(self.shuffled(rank)))),
            1 => ("unsqueeze", attr(Attr::Int(self.rng.below(rank + 1) as i64))),
            2 => ("squeeze", attr(Attr::Int(shape.iter().position(|&n| n == 1)? as i64))),
            3 => ("reshape", vec![Param::Sizes(self.other_sizes(x))]),
            4 => {
                let own = (0..rank).map(|axis| Size::Extent(x, axis));
                ("expand", vec![Param::Sizes([Size::Known(self.rng.below(4))].into_iter().chain(own).collect())])
            }
            5 if rank > 0 => {
                let axis = self.rng.below(rank);
                let start = self.rng.below(shape[axis] + 1);
                let len = self.rng.below(shape[axis] - start + 1);
                ("narrow", vec![Param::Attr(Attr::Int(axis as i64)), position(start), position(len)])
            }
            6 if rank > 0 => {
                let axis = Param::Attr(Attr::Int(self.rng.below(rank) as i64));
                let bound = |k: usize| Param::Attr(Attr::Dim((k as i64 - 4).into()));
                let start = bound(self.rng.below(9));
                let whole = self.rng.chance(40);
                let end = if whole { Param::Size(Size::Extent(x, 0)) } else { bound(self.rng.below(12)) };
                ("slice", vec![axis, start, end])
            }
            7 => ("flip", attr(Attr::Ints(self.shuffled(rank).into_iter().take(rank.div_ceil(2)).collect()))),
            _ => ("repeat", vec![Param::Sizes((0..rank).map(|_| Size::Known(1 + self.rng.below(2))).collect())]),
        };
        Some(Step::Call(Op::named(name), vec![Operand::Value(x)], params))
    }

    fn shuffled(&mut self, rank: usize) -> Vec<i64> {
        let mut order: Vec<i64> = (0..rank as i64).collect();
        for at in (1..rank).rev() {
            order.swap(at, self.rng.below(at + 1));
        }
        order
    }

    /// Sizes for as many elements: flat, two axes as one, or one axis as two.
    fn other_sizes(&mut self, x: Ref) -> Vec<Size> {
        let shape = self.shape(x);
        let own = |axes: std::ops::Range<usize>| axes.map(|axis| Size::Extent(x, axis)).collect::<Vec<_>>();
        let even = shape.iter().position(|&n| n > 0 && n % 2 == 0);
        match (self.rng.below(3), even) {
            (0, Some(axis)) => {
                [own(0..axis), vec![Size::Known(2), Size::Known(shape[axis] / 2)], own(axis + 1..shape.len())].concat()
            }
            (1, _) if shape.len() > 1 => [vec![Size::Known(shape[0] * shape[1])], own(2..shape.len())].concat(),
            _ => vec![Size::Count(x)],
        }
    }

    fn cast(&mut self) -> Option<Step> {
        let x = self.find(|_| true)?;
        let dtype = self.dtype();
        Some(call("cast", &[x], vec![Attr::DType(dtype)]))
    }

    fn dropout(&mut self) -> Option<Step> {
        let x = self.find(|tensor| tensor.dtype().is_float())?;
        let p = Operand::Scalar(Literal::Float(0.4), DType::F64);
        let training = Param::Attr(Attr::Bool(self.rng.chance(70)));
        Some(Step::Call(Op::named("dropout"), vec![Operand::Value(x), p], vec![training]))
    }

    /// Halves of small odd numbers, whose products and sums are exact in any order: then a product of matrices has no freedom.
    /// None is zero, whose sign may be lost or kept.
    fn exact(&mut self, x: Ref) -> Option<Ref> {
        let dtype = self.tensor(x).dtype();
        if dtype.is_int() {
            return Some(x);
        }
        let bound = |k: f64| Operand::Scalar(Literal::Float(k), dtype.compute());
        let limited =
            self.add(Step::Call(Op::named("clamp"), vec![Operand::Value(x), bound(-2.0), bound(1.0)], vec![]))?;
        let whole = self.add(call("floor", &[limited], vec![]))?;
        self.add(Step::Call(Op::named("add"), vec![Operand::Value(whole), bound(0.5)], vec![]))
    }

    fn matmul(&mut self) -> Option<Step> {
        let x = self.find(|tensor| tensor.dtype() != DType::Bool && tensor.layout().rank() >= 1)?;
        let inner = *self.shape(x).last()?;
        let dtype = self.tensor(x).dtype();
        let fits = |tensor: &RawTensor| {
            let shape = tensor.shape();
            tensor.dtype() == dtype && shape.len() >= 2 && shape.len() <= 3 && shape[shape.len() - 2] == inner
        };
        let w = match self.find(fits) {
            Some(w) => w,
            None => {
                let columns = 1 + self.rng.below(7);
                self.argument(dtype, &[inner, columns])?
            }
        };
        let (x, w) = (self.exact(x)?, self.exact(w)?);
        Some(call("matmul", &[x, w], vec![]))
    }

    fn linear(&mut self) -> Option<Step> {
        let x = self.find(|tensor| tensor.dtype().is_float() && tensor.layout().rank() >= 1)?;
        let (inner, dtype) = (*self.shape(x).last()?, self.tensor(x).dtype());
        let outer = 1 + self.rng.below(6);
        let (w, b) = (self.argument(dtype, &[outer, inner])?, self.argument(dtype, &[outer])?);
        let (x, w) = (self.exact(x)?, self.exact(w)?);
        Some(call("linear", &[x, w, b], vec![]))
    }

    fn cat(&mut self) -> Option<Step> {
        let x = self.find(|tensor| tensor.layout().rank() > 0)?;
        let (mut shape, dtype) = (self.shape(x), self.tensor(x).dtype());
        let axis = self.rng.below(shape.len());
        shape[axis] = self.rng.below(4);
        let y = self.argument(dtype, &shape)?;
        Some(call("cat", &[x, y, x][..2 + self.rng.below(2)], vec![Attr::Int(axis as i64)]))
    }

    fn stack(&mut self) -> Option<Step> {
        let x = self.find(|tensor| tensor.layout().rank() < 4)?;
        let (shape, dtype) = (self.shape(x), self.tensor(x).dtype());
        let y = self.find(|tensor| tensor.shape() == shape && tensor.dtype() == dtype)?;
        Some(call("stack", &[x, y], vec![Attr::Int(self.rng.below(shape.len() + 1) as i64)]))
    }

    /// A value with an axis, the axis, and positions in it of these extents.
    fn with_index(&mut self, dims: impl Fn(&[usize], usize) -> Vec<usize>) -> Option<(Ref, usize, Ref)> {
        let x =
            self.find(|tensor| tensor.dtype() != DType::Bool && tensor.layout().rank() > 0 && tensor.numel() > 0)?;
        let shape = self.shape(x);
        let axis = self.rng.below(shape.len());
        let value = self.rng.index(&dims(&shape, axis), shape[axis]);
        Some((x, axis, self.argument_of(value)?))
    }

    fn gather(&mut self) -> Option<Step> {
        let (x, axis, index) = self.with_index(|shape, axis| {
            let mut dims: Vec<usize> = shape.iter().map(|&n| n - n / 4).collect();
            dims[axis] = 3;
            dims
        })?;
        Some(call("gather", &[x, index], vec![Attr::Int(axis as i64)]))
    }

    fn index_select(&mut self) -> Option<Step> {
        let (x, axis, index) = self.with_index(|_, _| vec![4])?;
        Some(call("index_select", &[x, index], vec![Attr::Int(axis as i64)]))
    }

    fn scatter_add(&mut self) -> Option<Step> {
        let (x, axis, index) = self.with_index(|shape, axis| {
            let mut dims = shape.to_vec();
            dims[axis] = 3;
            dims
        })?;
        let source = self.argument(self.tensor(x).dtype(), &self.shape(index))?;
        Some(call("scatter_add", &[x, index, source], vec![Attr::Int(axis as i64)]))
    }

    fn index_add(&mut self) -> Option<Step> {
        let (x, axis, index) = self.with_index(|_, _| vec![5])?;
        let mut dims = self.shape(x);
        dims[axis] = 5;
        let source = self.argument(self.tensor(x).dtype(), &dims)?;
        Some(call("index_add", &[x, index, source], vec![Attr::Int(axis as i64)]))
    }

    fn layer_norm(&mut self) -> Option<Step> {
        self.norm("layer_norm", 2)
    }

    fn rms_norm(&mut self) -> Option<Step> {
        self.norm("rms_norm", 1)
    }

    fn norm(&mut self, name: &str, weights: usize) -> Option<Step> {
        let x = self.find(|tensor| tensor.dtype().is_float() && tensor.layout().rank() > 0)?;
        let (width, dtype) = (*self.shape(x).last()?, self.tensor(x).dtype());
        let mut operands = vec![Operand::Value(x)];
        for _ in 0..weights {
            operands.push(Operand::Value(self.argument(dtype, &[width])?));
        }
        operands.push(Operand::Scalar(Literal::Float(1e-5), DType::F64));
        Some(Step::Call(Op::named(name), operands, vec![]))
    }
}

fn call(name: &str, args: &[Ref], attrs: Vec<Attr>) -> Step {
    let operands = args.iter().map(|&at| Operand::Value(at)).collect();
    Step::Call(Op::named(name), operands, attrs.into_iter().map(Param::Attr).collect())
}

/// Rows whose samples follow from the kinds of their parameters.
pub fn regular(op: &Op) -> bool {
    let by_itself = op.call == Call::Method
        && op.effect != OpEffect::Rng
        && !matches!(op.class, Class::Host | Class::View(_) | Class::Join)
        && SPECIAL.iter().all(|(name, _)| *name != op.name);
    let known = |kind: ParamKind| {
        use ParamKind::{Axis, Branch, Dim, Operand, Scalar, ScalarOf, TensorOf};
        matches!(kind, Operand | Branch | Scalar | Axis | Dim | ScalarOf(DType::I32) | TensorOf(DType::Bool))
    };
    by_itself
        && op.params.iter().all(|param| known(param.kind))
        && !op.name.ends_with("_correction")
        && !["slice", "detach", "transpose", "t", "unbind"].contains(&op.name)
}

fn broadcasts(a: &[usize], b: &[usize]) -> bool {
    a.iter().rev().zip(b.iter().rev()).all(|(&m, &n)| m == n || m == 1 || n == 1)
}
