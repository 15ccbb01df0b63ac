//! Random graphs give the same bits as one plan and op by op.
//!
//! An eager op is a plan of one node, so a difference is a mistake of the optimiser, of fusion or of the plan runner. A
//! failing program is cut down to the steps it needs before it is shown.

use super::{Call, Program, run, run_branch};
use crate::device::Device;
use crate::eager::{self, Arg};
use crate::raw::RawTensor;
use crate::rt::Joined;
use fuse_compiler::graph::Graph;
use fuse_compiler::op::{Attr, Check, Literal, Op, Relation, Val};
use fuse_compiler::options::Mode;
use fuse_compiler::types::{DType, Dim, Sym};
use fuse_compiler::{optimise, schedule};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

const UNARY: [&str; 14] = [
    "relu",
    "neg",
    "abs",
    "exp",
    "sigmoid",
    "floor",
    "recip",
    "sqrt",
    "gelu",
    "tanh",
    "isnan",
    "silu",
    "round",
    "logical_not",
];
const BINARY: [&str; 12] =
    ["add", "sub", "mul", "div", "maximum", "minimum", "remainder", "floor_divide", "lt", "eq", "logical_or", "powf"];
const ALONG: [&str; 16] = [
    "sum",
    "sum_keepdim",
    "max_keepdim",
    "mean_keepdim",
    "softmax",
    "log_softmax",
    "cumsum",
    "var",
    "argmax",
    "logsumexp",
    "prod",
    "min",
    "std_keepdim",
    "norm",
    "mean",
    "argmin_keepdim",
];
const ALL: [&str; 5] = ["sum_all", "max_all", "mean_all", "var_all", "argmin_all"];
const DTYPES: [DType; 8] =
    [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F64, DType::I64, DType::U8, DType::Bool];

/// Numbers at which algebra goes wrong, among ordinary ones.
const HARD: [f32; 12] = [0.0, -0.0, 1.0, -1.0, 2.5, -0.5, 3.0, -2.0, 0.1, f32::INFINITY, f32::NAN, 1e30];

/// One op and what chooses its operands.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: u64,
    which: u64,
    a: u64,
    b: u64,
    c: u64,
}

/// A small generator: the same programs on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0 ^ (self.0 >> 33);
        x.wrapping_mul(0xff51afd7ed558ccd) >> 16
    }

    /// A number below another one.
    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn step(&mut self) -> Step {
        Step { kind: self.next(), which: self.next(), a: self.next(), b: self.next(), c: self.next() }
    }
}

/// A program while it is built: the graph, and every value computed op by op.
struct Pair {
    graph: Graph,
    inputs: Vec<RawTensor>,
    values: Vec<(Val, RawTensor)>,
}

/// A fault would be told to whichever test reads from the device next.
fn may_divide_by_zero(op: &str, dtype: DType) -> bool {
    Op::named(op).may_fault(dtype)
}

impl Pair {
    fn new(inputs: Vec<RawTensor>) -> Pair {
        let mut graph = Graph::new("random");
        let value = |(k, tensor): (usize, &RawTensor)| {
            (graph.input(&format!("x{k}"), tensor.dtype(), tensor.shape().len()), tensor.clone())
        };
        let values = inputs.iter().enumerate().map(value).collect();
        Pair { graph, inputs, values }
    }

    /// Says that axes of the inputs which are equal by design are equal, as named dims would: only then do kernels fuse.
    fn name_dims(&mut self) {
        let dims: Vec<Vec<Dim>> = self.values.iter().map(|(val, _)| self.dims(*val)).collect();
        for of_one in &dims {
            for (own, named) in of_one.iter().rev().zip(dims[3].iter().rev()) {
                let check =
                    Check { left: own.clone(), right: named.clone(), relation: Relation::Equal, text: String::new() };
                self.graph.checks.push((0, check));
            }
        }
    }

    fn pick(&self, choice: u64) -> (Val, RawTensor) {
        self.values[(choice % self.values.len() as u64) as usize].clone()
    }

    /// Adds an op, unless it does not fit its operands.
    fn push(&mut self, name: &str, operands: &[(Val, Arg)], attrs: Vec<Attr>) -> Option<(Val, RawTensor)> {
        let args: Vec<Arg> = operands.iter().map(|(_, arg)| arg.clone()).collect();
        let known: Vec<Attr> = attrs.iter().map(|attr| self.known(attr)).collect();
        let tensor = eager::run(self.inputs[0].device(), name, &args, &known).ok()?.into_iter().next()?;
        let vals: Vec<Val> = operands.iter().map(|(val, _)| *val).collect();
        let val = self.graph.try_push(Op::named(name), &vals, attrs).ok()?;
        self.values.push((val, tensor.clone()));
        Some((val, tensor))
    }

    fn tensors(&mut self, name: &str, operands: &[(Val, RawTensor)], attrs: Vec<Attr>) -> Option<(Val, RawTensor)> {
        let operands: Vec<_> = operands.iter().map(|(val, tensor)| (*val, Arg::Tensor(tensor.clone()))).collect();
        self.push(name, &operands, attrs)
    }

    fn cast(&mut self, (val, tensor): (Val, RawTensor), dtype: DType) -> Option<(Val, RawTensor)> {
        match tensor.dtype() == dtype {
            true => Some((val, tensor)),
            false => self.tensors("cast", &[(val, tensor)], vec![Attr::DType(dtype)]),
        }
    }

    /// An attribute with the extents of the inputs in the place of symbols.
    fn known(&self, attr: &Attr) -> Attr {
        let extent = |dim: &Dim| Dim::Const(dim.eval(&|Sym(n)| self.symbol(n)));
        match attr {
            Attr::Dim(dim) => Attr::Dim(extent(dim)),
            Attr::Dims(dims) => Attr::Dims(dims.iter().map(extent).collect()),
            other => other.clone(),
        }
    }

    /// Symbols are the extents of the inputs, in order.
    fn symbol(&self, n: u32) -> i64 {
        self.inputs.iter().flat_map(|tensor| tensor.shape()).nth(n as usize).copied().unwrap_or(0) as i64
    }

    fn dims(&self, val: Val) -> Vec<Dim> {
        self.graph.node(val).outs[val.out as usize].dims.clone()
    }

    fn add(&mut self, step: Step) -> Option<(Val, RawTensor)> {
        let (x, y) = (self.pick(step.a), self.pick(step.b));
        let of = |names: &[&'static str]| names[(step.which % names.len() as u64) as usize];
        let axis = |choice: u64| vec![Attr::Int((choice % 3) as i64 - 1)];
        match step.kind % 16 {
            0 | 1 => self.tensors(of(&UNARY), &[x], vec![]),
            2..=4 => {
                let name = of(&BINARY);
                let y = self.cast(y, x.1.dtype())?;
                let y = if may_divide_by_zero(name, x.1.dtype()) { self.odd(y)? } else { y };
                self.tensors(name, &[x, y], vec![])
            }
            5 => self.with_constant(of(&BINARY), x, step.c),
            6..=8 => self.tensors(of(&ALONG), &[x], axis(step.c)),
            9 => self.tensors(of(&ALL), &[x], vec![]),
            10 => self.cast(x, DTYPES[(step.which % DTYPES.len() as u64) as usize]),
            11 => {
                let condition = self.pick(step.c);
                let (condition, y) = (self.cast(condition, DType::Bool)?, self.cast(y, x.1.dtype())?);
                self.tensors("where_cond", &[condition, x, y], vec![])
            }
            12..=13 => self.view(x, step),
            14 => self.index(x, y, step),
            _ => {
                let y = self.cast(y, x.1.dtype())?;
                let attrs = axis(step.c);
                self.tensors(of(&["cat", "stack"]), &[x, y], attrs)
            }
        }
    }

    /// Integers without zeros.
    fn odd(&mut self, (val, tensor): (Val, RawTensor)) -> Option<(Val, RawTensor)> {
        let (one, dtype) = (Literal::Int(1), tensor.dtype());
        let constant =
            self.graph.try_push(Op::named("constant"), &[], vec![Attr::Lit(one), Attr::DType(dtype)]).ok()?;
        self.push("bitwise_or", &[(val, Arg::Tensor(tensor)), (constant, Arg::Scalar(one, dtype))], vec![])
    }

    fn with_constant(&mut self, name: &str, x: (Val, RawTensor), choice: u64) -> Option<(Val, RawTensor)> {
        let dtype = x.1.dtype().compute();
        let value = match HARD[(choice % HARD.len() as u64) as usize] {
            value if may_divide_by_zero(name, dtype) && value as u8 == 0 => 1.0,
            value => value,
        };
        let literal = match dtype {
            DType::Bool => Literal::Bool(value > 0.0),
            int if int.is_int() => Literal::Int(i64::from(value as u8)),
            _ => Literal::Float(f64::from(value)),
        };
        let constant = self.graph.try_push(Op::named("constant"), &[], vec![Attr::Lit(literal), Attr::DType(dtype)]);
        let scalar = (constant.ok()?, Arg::Scalar(literal, dtype));
        self.push(name, &[(x.0, Arg::Tensor(x.1)), scalar], vec![])
    }

    fn view(&mut self, x: (Val, RawTensor), step: Step) -> Option<(Val, RawTensor)> {
        let dims = self.dims(x.0);
        let rank = dims.len() as i64;
        let at = (step.c % rank.max(1) as u64) as i64;
        let (name, attrs) = match step.which % 9 {
            0 => ("transpose", vec![Attr::Int(0), Attr::Int(-1)]),
            1 => ("flip", vec![Attr::Ints(vec![at])]),
            2 if rank < 4 => ("unsqueeze", vec![Attr::Int(at)]),
            3 => {
                let numel = dims.iter().cloned().fold(Dim::Const(1), Dim::mul);
                ("reshape", vec![Attr::Dims(vec![numel])])
            }
            4 => ("slice", vec![Attr::Int(at), Attr::Dim(Dim::Const(1)), Attr::Dim(Dim::Const(-1))]),
            5 => ("slice", vec![Attr::Int(at), Attr::Dim(Dim::Const(-2)), Attr::Dim(Dim::Const(100))]),
            6 if rank > 0 => {
                ("repeat", vec![Attr::Dims((0..rank).map(|k| Dim::Const(1 + i64::from(k == at))).collect())])
            }
            7 => ("tril", vec![Attr::Dim(Dim::Const(step.b as i64 % 3 - 1))]),
            _ => ("squeeze", vec![Attr::Int(at)]),
        };
        self.tensors(name, &[x], attrs)
    }

    /// Reads and writes at positions that are always inside.
    fn index(&mut self, x: (Val, RawTensor), y: (Val, RawTensor), step: Step) -> Option<(Val, RawTensor)> {
        let axis = vec![Attr::Int((step.c % 3) as i64 - 1)];
        let dtype = x.1.dtype();
        let positions = self.tensors("argmax", std::slice::from_ref(&x), axis.clone())?;
        let flat = vec![Attr::Dims(vec![self.dims(positions.0).into_iter().fold(Dim::Const(1), Dim::mul)])];
        let flat = self.tensors("reshape", &[positions], flat)?;
        match step.which % 4 {
            0 => self.tensors("index_select", &[x, flat], axis),
            1 => {
                let kept = self.tensors("argmin_keepdim", std::slice::from_ref(&x), axis.clone())?;
                self.tensors("gather", &[x, kept], axis)
            }
            2 => {
                let src = self.tensors("index_select", &[x.clone(), flat.clone()], axis.clone())?;
                self.tensors(if step.b.is_multiple_of(2) { "index_add" } else { "index_copy" }, &[x, flat, src], axis)
            }
            _ => {
                let y = self.cast(y, dtype)?;
                let range = [Attr::Dim(Dim::Const(0)), Attr::Dim(Dim::Const(1))];
                self.tensors("slice_assign", &[x, y], [&axis[..], &range].concat())
            }
        }
    }
}

/// Inputs of ranks 2, 1, 2 and 3, some of them strided.
fn inputs(random: &mut Random, device: Device) -> Vec<RawTensor> {
    let extents = [1 + random.below(4), 1 + random.below(5), 1 + random.below(3)];
    let mut floats = |shape: &[usize]| {
        let data: Vec<f32> = (0..shape.iter().product()).map(|_| HARD[random.below(HARD.len())]).collect();
        RawTensor::from_slice_on(&data, shape, device).expect("values fill the shape")
    };
    let [rows, columns, depth] = extents;
    let turned = floats(&[columns, rows]);
    let cut = floats(&[rows, columns + 2]);
    let turned = turned.with_layout(turned.layout().transpose(0, 1).expect("two axes"));
    let cut = cut.with_layout(cut.layout().narrow(1, 1, columns).expect("inside"));
    vec![turned, floats(&[columns]), cut, floats(&[depth, rows, columns])]
}

/// The bits of every element, with one pattern for NaN.
fn bits(tensor: &RawTensor) -> Vec<u64> {
    fn list<T: crate::dtype::Element>(tensor: &RawTensor, bits: impl Fn(T) -> u64) -> Vec<u64> {
        tensor.to_vec::<T>().expect("readable").into_iter().map(bits).collect()
    }
    let float = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    match tensor.dtype() {
        DType::F32 => list(tensor, |x: f32| float(x.into())),
        DType::F64 => list(tensor, float),
        DType::F16 => list(tensor, |x: half::f16| float(x.into())),
        DType::BF16 => list(tensor, |x: half::bf16| float(x.into())),
        DType::F8E4M3 => list(tensor, |x: crate::dtype::f8e4m3| float(x.into())),
        DType::I64 => list(tensor, |x: i64| x as u64),
        DType::I32 => list(tensor, |x: i32| x as u64),
        DType::U8 => list(tensor, |x: u8| x.into()),
        DType::Bool => list(tensor, |x: bool| x.into()),
        DType::Param(_) | DType::Compute(_) => unreachable!("values are concrete"),
    }
}

/// How the results of one plan and of op by op differ; a panic is a difference too.
fn difference(inputs: &[RawTensor], steps: &[Step], named: bool) -> Option<String> {
    let both = AssertUnwindSafe(|| compare(inputs, steps, named));
    catch_unwind(both).unwrap_or_else(|_| Some(format!("panics for\n{}", TEXT.take())))
}

/// A random graph of some inputs as a program, with its graph and what its results are op by op.
fn program(inputs: &[RawTensor], steps: &[Step], named: bool) -> (Program, Graph, Vec<(Val, RawTensor)>) {
    let mut pair = Pair::new(inputs.to_vec());
    if named {
        pair.name_dims();
    }
    for &step in steps {
        pair.add(step);
    }
    let results: Vec<(Val, RawTensor)> = pair.values.iter().skip(inputs.len()).rev().take(3).cloned().collect();
    pair.graph.outs = results.iter().map(|(val, _)| *val).collect();
    let graph = optimise::run(pair.graph.clone(), optimise::Options::default());
    TEXT.set(pair.graph.to_string());
    let plan = schedule::run(&graph, schedule::Options::default());
    TEXT.set(format!("{graph}{:#?}", plan.steps));
    (Program::new(&plan, &[]), graph, results)
}

/// The random program with this number and what it is called with.
pub(super) fn program_of(seed: u64, named: bool, device: Device) -> (Program, Vec<RawTensor>) {
    let mut random = Random(seed);
    let inputs = inputs(&mut random, device);
    let steps: Vec<Step> = (0..3 + random.below(12)).map(|_| random.step()).collect();
    (program(&inputs, &steps, named).0, inputs)
}

/// Runs the steps as one plan and op by op, and says how the results differ.
fn compare(inputs: &[RawTensor], steps: &[Step], named: bool) -> Option<String> {
    let (program, graph, results) = program(inputs, steps, named);
    let tensors: Vec<&RawTensor> = inputs.iter().collect();
    let device = inputs[0].device();
    let bodies = if device.is_cpu() { program.interpreted() } else { vec![] };
    let given = vec![false; inputs.len()];
    let call = Call {
        program: &program,
        tensors: &tensors,
        given: &given,
        scalars: &[],
        host_ints: &[],
        device,
        bodies: &bodies,
    };
    let show = |what: String| Some(format!("{what}\n{}\n{:#?}", graph, program.plan.steps));
    match run(&call) {
        Err(error) => show(format!("the plan fails: {error}")),
        Ok(found) => results.iter().zip(&found).enumerate().find_map(|(k, ((_, expected), found))| {
            let same = expected.shape() == found.shape() && bits(expected) == bits(found);
            let sides = || format!("{:?} {:?}, op by op {:?}", found.shape(), bits(found), bits(expected));
            if same { None } else { show(format!("result {k} is {}", sides())) }
        }),
    }
}

thread_local! {
    /// The graph that is being run, to be shown if that panics.
    static TEXT: Cell<String> = const { Cell::new(String::new()) };
}

/// Leaves out steps as long as the results still differ.
fn shrink(inputs: &[RawTensor], mut steps: Vec<Step>, named: bool) -> String {
    let mut at = 0;
    while at < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        if difference(inputs, &fewer, named).is_some() { steps = fewer } else { at += 1 }
    }
    difference(inputs, &steps, named).expect("the steps that are left differ")
}

/// Checks this many programs, or as many as `FUSE_RANDOM_PROGRAMS` says.
fn check(device: Device, programs: u64) {
    let asked_for = std::env::var("FUSE_RANDOM_PROGRAMS").ok().and_then(|text| text.parse().ok());
    for seed in 0..asked_for.unwrap_or(programs) {
        let mut random = Random(seed);
        let inputs = inputs(&mut random, device);
        let steps: Vec<Step> = (0..3 + random.below(12)).map(|_| random.step()).collect();
        for named in [false, true] {
            if difference(&inputs, &steps, named).is_some() {
                panic!("program {seed}: {}", shrink(&inputs, steps, named));
            }
        }
    }
}

#[test]
fn random_graphs_give_the_same_bits_fused_and_op_by_op() {
    check(Device::cpu(), 400);
}

#[test]
fn random_arms_of_a_branch_give_what_they_give_alone() {
    match Device::cuda(0) {
        Ok(device) => check_arms(device),
        Err(_) => eprintln!("skipped: there is no CUDA device"),
    }
}

/// Runs random programs as the arms of branches. An arm takes what it needs from the memory that the other would have, and from
/// that of the results.
pub(super) fn check_arms(device: Device) {
    let flag = |holds: bool| RawTensor::from_slice_on(&[holds], &[], device).expect("one bool");
    let (flags, mut on_device) = ([flag(true), flag(false)], 0);
    for seed in 0..60 {
        let (program, inputs) = program_of(seed, true, device);
        let (other, _) = program_of(seed, true, device);
        let flipped = |x: &RawTensor| {
            let axes: Vec<isize> = (0..x.layout().rank() as isize).collect();
            x.with_layout(x.layout().flip(&axes).expect("axes of its own")).copied().expect("there is memory")
        };
        let others: Vec<RawTensor> = inputs.iter().map(flipped).collect();
        let programs = [program, other].map(|program| program.with_mode(Mode::ReduceOverhead));
        let tensors = [&inputs, &others].map(|inputs| inputs.iter().collect::<Vec<_>>());
        let call = |arm: usize| Call {
            program: &programs[arm],
            tensors: &tensors[arm],
            given: &[],
            scalars: &[],
            host_ints: &[],
            device,
            bodies: &[],
        };
        let calls = [call(0), call(1)];
        let want = [0, 1].map(|arm| run(&calls[arm]).expect("the program runs"));
        let all = |old: bool| -> Vec<[Joined<'_>; 2]> {
            let joined = |(k, old_value)| match old {
                true => [Joined::Result(k), Joined::Old(old_value)],
                false => [Joined::Result(k); 2],
            };
            want[1].iter().enumerate().map(joined).collect()
        };
        for (arm, old) in [(0, false), (1, false), (0, false), (0, true), (1, true)] {
            let arms = [Some(&calls[0]), (!old).then_some(&calls[1])];
            let Some(got) = run_branch(&flags[arm], arms, &all(old)).expect("the branch runs") else { continue };
            on_device += 1;
            for (got, want) in got.iter().zip(&want[arm]) {
                assert_eq!(bits(got), bits(want), "program {seed}, arm {arm}\n{:#?}", programs[0].plan.steps);
            }
        }
    }
    assert!(on_device > 100, "{on_device} branches were the device's");
}
