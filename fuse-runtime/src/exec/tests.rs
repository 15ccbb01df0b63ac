//! Whole plans against the reference evaluator: fused, over every layout, on the processor and, where there is one, on a GPU.

mod attention;
mod fused_attention;
mod order;
mod products;
mod several_products;
mod small;

use super::{Call, Program, run};
use crate::device::Device;
use crate::dtype::f8e4m3;
use crate::error::Result;
use crate::layout::Layout;
use crate::math::cast;
use crate::raw::RawTensor;
use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::{Host, Rounding, Value, eval};
use fuse_compiler::op::{Attr, Build, Literal, Num, Op, Val};
use fuse_compiler::types::DType::{self, BF16, Bool, F16, F32, F64, I32, I64};
use fuse_compiler::types::Dim;
use fuse_compiler::{optimise, schedule};
use half::{bf16, f16};

/// A graph with a result each, made of inputs of these types.
struct Case {
    graph: Graph,
    inputs: Vec<(DType, Vec<usize>)>,
    scalars: Vec<f64>,
}

impl Case {
    fn new(inputs: &[(DType, &[usize])], build: impl FnOnce(&mut Graph, &[Val]) -> Vec<Val>) -> Case {
        let mut graph = Graph::new("case");
        let names = ["x", "y", "z", "w", "u", "v"];
        let vals: Vec<Val> =
            inputs.iter().zip(names).map(|((dtype, dims), name)| graph.input(name, *dtype, dims.len())).collect();
        graph.outs = build(&mut graph, &vals);
        let inputs = inputs.iter().map(|(dtype, dims)| (*dtype, dims.to_vec())).collect();
        Case { graph, inputs, scalars: vec![] }
    }

    fn scalars(self, scalars: &[f64]) -> Case {
        Case { scalars: scalars.to_vec(), ..self }
    }

    fn program(&self) -> Program {
        let graph = optimise::run(self.graph.clone(), optimise::Options::default());
        Program::new(&schedule::run(&graph, schedule::Options::default()), &[])
    }
}

fn op(graph: &mut Graph, name: &str, args: &[Val], attrs: &[Attr]) -> Val {
    graph.push(Op::named(name), args, attrs.to_vec())
}

/// Values between -2 and 2 that halves hold exactly; small indices for i64.
fn sample(dtype: DType, dims: &[usize], seed: u64) -> RawTensor {
    let n: usize = dims.iter().product();
    let bits = |i: u64| crate::philox::bits(seed, 0, i);
    let float = |i: u64| f64::from(bits(i) % 257) / 64.0 - 2.0;
    let all = 0..n as u64;
    match dtype {
        DType::F32 => RawTensor::from_slice(&all.map(|i| float(i) as f32).collect::<Vec<_>>(), dims),
        DType::F64 => RawTensor::from_slice(&all.map(float).collect::<Vec<_>>(), dims),
        DType::F16 => RawTensor::from_slice(&all.map(|i| f16::from_f64(float(i))).collect::<Vec<_>>(), dims),
        DType::BF16 => RawTensor::from_slice(&all.map(|i| bf16::from_f64(float(i))).collect::<Vec<_>>(), dims),
        DType::I64 => RawTensor::from_slice(&all.map(|i| i64::from(bits(i) % 3)).collect::<Vec<_>>(), dims),
        DType::I32 => RawTensor::from_slice(&all.map(|i| bits(i) as i32 % 100 - 50).collect::<Vec<_>>(), dims),
        DType::U8 => RawTensor::from_slice(&all.map(|i| bits(i) as u8).collect::<Vec<_>>(), dims),
        _ => RawTensor::from_slice(&all.map(|i| bits(i) % 2 == 0).collect::<Vec<_>>(), dims),
    }
    .unwrap()
}

/// The same values under layouts that kernels must not mind: as they are, transposed in memory, every other element of a
/// larger block from an odd offset on, and backwards.
fn layouts(x: &RawTensor) -> Vec<RawTensor> {
    let rank = x.shape().len() as isize;
    let mut all = vec![x.clone()];
    if rank == 0 {
        return all;
    }
    let turned: Vec<isize> = (0..rank).rev().collect();
    let turn = |x: &RawTensor| x.with_layout(x.layout().permute(&turned).unwrap());
    all.push(turn(&turn(x).copied().unwrap()));
    let flipped = |x: &RawTensor| x.with_layout(x.layout().flip(&[-1]).unwrap());
    all.push(flipped(&flipped(x).copied().unwrap()));
    all.push(in_odd_window(x));
    all
}

/// The values in the middle of a larger tensor.
fn in_odd_window(x: &RawTensor) -> RawTensor {
    let dims = x.shape();
    let bigger: Vec<usize> = dims.iter().map(|n| n + 3).collect();
    let mut around = RawTensor::empty(x.dtype(), &bigger, x.device()).unwrap();
    let mut window = *around.layout();
    for (axis, &extent) in dims.iter().enumerate() {
        window = window.narrow(axis as isize, 1, extent).unwrap();
    }
    around.overwrite(&window, x).unwrap();
    around.with_layout(window)
}

/// The same on another device, in the same places of memory: a copy of a view alone would be dense.
fn moved(x: &RawTensor, device: Device) -> RawTensor {
    if x.device() == device {
        return x.clone();
    }
    let all = Layout::contiguous(&[x.layout().span().map_or(0, |(_, last)| last as usize + 1)]);
    x.with_layout(all).to_device(device).unwrap().with_layout(*x.layout())
}

fn call(case: &Case, program: &Program, inputs: &[RawTensor], device: Device) -> Result<Vec<RawTensor>> {
    let inputs: Vec<RawTensor> = inputs.iter().map(|x| moved(x, device)).collect();
    let tensors: Vec<&RawTensor> = inputs.iter().collect();
    let scalars: Vec<Literal> = case.scalars.iter().map(|&x| Literal::Float(x)).collect();
    let given = vec![false; tensors.len()];
    let bodies = if device.is_cpu() { program.interpreted() } else { vec![] };
    let call =
        Call { program, tensors: &tensors, given: &given, scalars: &scalars, host_ints: &[], device, bodies: &bodies };
    run(&call)
}

/// The values of a tensor as f64.
fn values(x: &RawTensor) -> Vec<f64> {
    match x.dtype() {
        DType::F32 => x.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        DType::F64 => x.to_vec::<f64>().unwrap(),
        DType::F16 => x.to_vec::<f16>().unwrap().into_iter().map(f64::from).collect(),
        DType::BF16 => x.to_vec::<bf16>().unwrap().into_iter().map(f64::from).collect(),
        DType::F8E4M3 => x.to_vec::<f8e4m3>().unwrap().into_iter().map(f64::from).collect(),
        DType::I64 => x.to_vec::<i64>().unwrap().into_iter().map(|v| v as f64).collect(),
        DType::I32 => x.to_vec::<i32>().unwrap().into_iter().map(f64::from).collect(),
        DType::U8 => x.to_vec::<u8>().unwrap().into_iter().map(f64::from).collect(),
        _ => x.to_vec::<bool>().unwrap().into_iter().map(cast::<bool, f64>).collect(),
    }
}

fn reference(case: &Case, inputs: &[RawTensor]) -> Vec<Value> {
    let value = |x: &RawTensor| {
        let number = |v: f64| match x.dtype() {
            Bool => Num::B(v != 0.0),
            dtype if dtype.compute().is_float() => Num::F(v),
            _ => Num::I(v as i64),
        };
        Value::new(x.dtype(), x.shape().to_vec(), values(x).into_iter().map(number).collect())
    };
    let inputs: Vec<Value> = inputs.iter().map(value).collect();
    let scalars: Vec<Num> = case.scalars.iter().map(|&x| Num::F(x)).collect();
    // Halves are compared with what rounding after every op gives, wider types with the exact values.
    let half = case.inputs.iter().any(|(dtype, _)| dtype.is_half());
    let rounding = if half { Rounding::EveryOp } else { Rounding::OnlyCasts };
    eval(&case.graph, &inputs, &Host { scalars: &scalars, rounding, ..Host::default() }).unwrap()
}

/// What a result may differ by, for values around 1: a few hundred roundings of its type, one or two of a half.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 2e-5,
        DType::F64 => 1e-12,
        DType::F16 => 2f64.powi(-9),
        DType::BF16 => 2f64.powi(-6),
        _ => 0.0,
    }
}

fn number(x: &Num) -> f64 {
    match *x {
        Num::F(x) => x,
        Num::I(k) => k as f64,
        Num::B(b) => f64::from(u8::from(b)),
    }
}

fn expect_close(name: &str, got: &RawTensor, want: &Value) {
    assert_eq!(got.shape(), want.dims, "{name}");
    let tolerance = tolerance(got.dtype());
    for (i, (got, want)) in values(got).into_iter().zip(want.data.iter().map(number)).enumerate() {
        let same = got == want || got.is_nan() && want.is_nan();
        let close = (got - want).abs() <= tolerance * want.abs().max(1.0);
        assert!(same || close, "{name}: element {i} is {got}, not {want}");
    }
}

/// Runs a case over every layout on every device, and with other numbers of threads, where it must not change a bit.
fn check(name: &str, case: &Case) {
    let program = case.program();
    let inputs: Vec<RawTensor> =
        case.inputs.iter().enumerate().map(|(k, (dtype, dims))| sample(*dtype, dims, k as u64)).collect();
    let want = reference(case, &inputs);
    let first = call(case, &program, &inputs, Device::cpu()).unwrap();
    let variants: Vec<Vec<RawTensor>> = inputs.iter().map(layouts).collect();
    for device in devices() {
        for layout in 0..4 {
            let inputs: Vec<RawTensor> = variants.iter().map(|all| all[layout % all.len()].clone()).collect();
            let got = call(case, &program, &inputs, device).unwrap();
            for (k, want) in want.iter().enumerate() {
                expect_close(
                    &format!("{name} {:?}, result {k}, layout {layout}, {device}", case.inputs),
                    &got[k],
                    want,
                );
            }
        }
    }
    for threads in [1, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let again = pool.install(|| call(case, &program, &inputs, Device::cpu())).unwrap();
        for (a, b) in first.iter().zip(&again) {
            let bits = |x: &RawTensor| values(x).into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(a), bits(b), "{name} with {threads} threads");
        }
    }
}

fn devices() -> Vec<Device> {
    match Device::cuda(0) {
        Ok(cuda) => vec![Device::cpu(), cuda],
        Err(_) => vec![Device::cpu()],
    }
}

const SHAPES: [[usize; 2]; 8] = [[0, 3], [3, 0], [1, 1], [2, 3], [5, 17], [33, 257], [300, 8], [2, 40_000]];

#[test]
fn elementwise_chains_with_a_bias() {
    for [n, d] in SHAPES {
        for dtype in [F32, F64, F16, BF16] {
            let case = Case::new(&[(dtype, &[n, d]), (dtype, &[d])], |g, x| {
                let sum = op(g, "add", &[x[0], x[1]], &[]);
                let gelu = op(g, "gelu", &[sum], &[]);
                vec![op(g, "mul", &[gelu, x[0]], &[]), op(g, "tanh", &[sum], &[])]
            });
            check("bias_gelu", &case);
        }
    }
}

#[test]
fn softmax_over_rows_and_columns() {
    for [n, d] in SHAPES {
        for axis in [0, 1] {
            let case = Case::new(&[(F32, &[n, d])], |g, x| {
                let y = op(g, "softmax", &[x[0]], &[Attr::Int(axis)]);
                vec![y, op(g, "log_softmax", &[x[0]], &[Attr::Int(axis)])]
            });
            check("softmax", &case);
        }
    }
}

#[test]
fn norms_of_rows() {
    for [n, d] in SHAPES {
        for dtype in [F32, BF16] {
            let case = Case::new(&[(dtype, &[n, d]), (dtype, &[d]), (dtype, &[d])], |g, x| {
                let eps = g.scalar("eps", F64);
                vec![op(g, "layer_norm", &[x[0], x[1], x[2], eps], &[])]
            });
            check("layer_norm", &case.scalars(&[1e-5]));
        }
    }
}

#[test]
fn reductions_of_permuted_views() {
    for dims in [[2, 2, 3], [2, 2, 256], [3, 1, 5], [2, 0, 3]] {
        let case = Case::new(&[(F32, &dims)], |g, x| {
            let turned = op(g, "permute", &[x[0]], &[Attr::Ints(vec![2, 0, 1])]);
            let sum = op(g, "sum", &[turned], &[Attr::Int(2)]);
            let all = op(g, "sum_all", &[turned], &[]);
            vec![sum, all, op(g, "sum", &[turned], &[Attr::Int(0)])]
        });
        check("permuted sums", &case);
    }
}

#[test]
fn one_element_repeated_along_a_long_row() {
    let case = Case::new(&[(F32, &[1])], |g, x| {
        let long = op(g, "expand", &[x[0]], &[Attr::Dims(vec![Dim::Const(5000)])]);
        let scaled = op(g, "exp", &[long], &[]);
        vec![op(g, "max_all", &[scaled], &[]), op(g, "sum_all", &[long], &[])]
    });
    check("repeated", &case);
}

#[test]
fn transposed_operands_are_walked_in_tiles() {
    for [n, m] in [[64, 64], [96, 100], [97, 101], [8, 2048], [1, 64], [128, 512]] {
        for dtype in [F32, BF16] {
            let case = Case::new(&[(dtype, &[n, m]), (dtype, &[m, n])], |g, x| {
                let turned = op(g, "permute", &[x[1]], &[Attr::Ints(vec![1, 0])]);
                vec![op(g, "add", &[x[0], turned], &[]), op(g, "neg", &[turned], &[])]
            });
            check("transposed", &case);
        }
    }
}

#[test]
fn integer_reductions_are_exact() {
    for [n, d] in [[2, 3], [33, 257], [300, 8]] {
        for dtype in [I32, I64, DType::U8] {
            let case = Case::new(&[(dtype, &[n, d])], |g, x| {
                let sum = op(g, "sum", &[x[0]], &[Attr::Int(0)]);
                let largest = op(g, "max", &[x[0]], &[Attr::Int(1)]);
                let place = op(g, "argmin", &[x[0]], &[Attr::Int(1)]);
                vec![sum, largest, place, op(g, "cumsum", &[x[0]], &[Attr::Int(1)])]
            });
            check("integers", &case);
        }
    }
}

#[test]
fn products_with_bias_and_relu() {
    for (b, m, n, k) in [(1, 1, 1, 1), (2, 3, 4, 5), (3, 70, 33, 17), (1, 5, 300, 64), (2, 4, 3, 0), (0, 2, 2, 2)] {
        for dtype in [F32, F64, F16, I64] {
            let case = Case::new(&[(dtype, &[b, m, k]), (dtype, &[k, n]), (dtype, &[n])], |g, x| {
                let product = op(g, "matmul", &[x[0], x[1]], &[]);
                let sum = op(g, "add", &[product, x[2]], &[]);
                vec![op(g, "relu", &[sum], &[])]
            });
            check("matmul", &case);
        }
    }
}

#[test]
fn losses_gather_and_average() {
    for [n, c] in [[1, 3], [5, 17], [300, 8]] {
        let case = Case::new(&[(F32, &[n, c]), (I64, &[n])], |g, x| vec![op(g, "cross_entropy", &[x[0], x[1]], &[])]);
        check("cross_entropy", &case);
    }
}

#[test]
fn embeddings_are_read_and_summed() {
    let case = Case::new(&[(F32, &[3, 65]), (I64, &[4, 7])], |g, x| {
        let rows = op(g, "embedding", &[x[0], x[1]], &[]);
        let scaled = op(g, "mul", &[rows, rows], &[]);
        vec![op(g, "sum", &[scaled], &[Attr::Int(1)]), rows]
    });
    check("embedding", &case);
}

#[test]
fn scatters_keep_what_they_do_not_write() {
    let case = Case::new(&[(F32, &[3, 5]), (I64, &[4]), (F32, &[4, 5])], |g, x| {
        let sum = op(g, "index_add", &[x[0], x[1], x[2]], &[Attr::Int(0)]);
        vec![sum, op(g, "index_select", &[x[2], x[1]], &[Attr::Int(1)])]
    });
    check("index_add", &case);
}

#[test]
fn joins_and_slices() {
    let case = Case::new(&[(F32, &[3, 5]), (F32, &[3, 2])], |g, x| {
        let joined = op(g, "cat", &[x[0], x[1]], &[Attr::Int(1)]);
        let (start, end) = (Attr::Dim(Dim::Const(1)), Attr::Dim(Dim::Const(3)));
        let assigned = op(g, "slice_assign", &[x[0], x[1]], &[Attr::Int(1), start, end]);
        vec![op(g, "neg", &[joined], &[]), assigned]
    });
    check("joins", &case);
}

#[test]
fn attention_over_heads() {
    let dims: [&[usize]; 3] = [&[2, 3, 7, 8], &[2, 3, 5, 8], &[2, 3, 5, 4]];
    for causal in [false, true] {
        let case = Case::new(&dims.map(|d| (F32, d)), |g, x| {
            vec![op(g, "scaled_dot_product_attention", &[x[0], x[1], x[2]], &[Attr::Bool(causal)])]
        });
        check("attention", &case);
    }
}

#[test]
fn a_symmetric_sum_is_not_done_in_place() {
    for n in [3, 70] {
        let case = Case::new(&[(F32, &[n, n])], |g, x| {
            let double = op(g, "add", &[x[0], x[0]], &[]);
            let turned = op(g, "permute", &[double], &[Attr::Ints(vec![1, 0])]);
            let sum = op(g, "add", &[double, turned], &[]);
            vec![op(g, "softmax", &[sum], &[Attr::Int(0)])]
        });
        check("symmetric", &case);
    }
}

#[test]
fn faults_are_errors_on_every_device_and_leave_it_usable() {
    let case = Case::new(&[(F32, &[4, 2]), (I64, &[3])], |g, x| vec![op(g, "embedding", &[x[0], x[1]], &[])]);
    let program = case.program();
    let table = sample(F32, &[4, 2], 0);
    let index = |values: [i64; 3]| RawTensor::from_slice(&values, &[3]).unwrap();
    for device in devices() {
        for bad in [[1, -3, 3], [4, 0, 0]] {
            let outcome = call(&case, &program, &[table.clone(), index(bad)], device)
                .and_then(|results| results[0].to_vec::<f32>().map(|_| ()));
            assert_eq!(outcome.unwrap_err().kind(), crate::ErrorKind::Index, "{device}");
        }
        let good = call(&case, &program, &[table.clone(), index([0, 3, 0])], device).unwrap();
        let rows = table.to_vec::<f32>().unwrap();
        assert_eq!(good[0].to_vec::<f32>().unwrap(), [&rows[..2], &rows[6..], &rows[..2]].concat(), "{device}");
    }
}
