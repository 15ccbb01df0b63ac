//! Attention in one kernel of a GPU, against a softmax in f64 on the processor.

mod random;

use super::order::noise;
use super::{Case, call, op, sample, values};
use crate::cuda::Context;
use crate::device::Device;
use crate::env::is_without;
use crate::exec::Program;
use crate::generator::Generator;
use crate::raw::RawTensor;
use fuse_compiler::autodiff::split::{self, Derivative, Kept};
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::graph::Graph;
use fuse_compiler::op::{Attr, Build, Literal, Op};
use fuse_compiler::types::DType::{self, BF16, Bool, F16, F32, F64};
use fuse_compiler::{optimise, schedule};
use half::bf16;
use std::process::Command;

/// Batches, heads, queries, keys, depth, columns of values.
type Extents = [usize; 6];

/// Single tiles and many, ragged ones, every way heads are padded, more keys than queries and fewer.
const EXTENTS: [Extents; 12] = [
    [1, 1, 1, 1, 8, 8],
    [2, 3, 64, 128, 64, 64],
    [1, 2, 200, 333, 64, 64],
    [2, 2, 300, 150, 32, 32],
    [1, 3, 129, 257, 128, 128],
    [2, 5, 513, 513, 64, 64],
    [1, 2, 70, 300, 80, 80],
    [1, 2, 130, 200, 96, 64],
    [1, 2, 130, 200, 128, 40],
    [1, 1, 200, 200, 192, 192],
    [1, 2, 150, 170, 256, 256],
    [22, 12, 384, 70, 24, 24],
];

/// What a score may be masked with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    None,
    /// Of queries and keys, the same for all heads; the first query attends to nothing.
    Pairs,
    /// Of keys, another in every batch.
    Keys,
    /// Added to every score.
    Bias,
    /// Added, too: what is not to be attended to has the least number there is, in some rows all.
    Least,
    /// The same with a number that is large enough for all else.
    Far,
}

impl Mask {
    fn is_added(self) -> bool {
        matches!(self, Mask::Bias | Mask::Least | Mask::Far)
    }
}

/// How queries, keys and values lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    Dense,
    /// Heads of one projection `[b, s, h, d]`, as a linear layer writes it.
    Projected,
    /// All heads have the same keys and values.
    Shared,
}

/// How attention is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// As one op, causal or not.
    Op(bool),
    /// As products and a softmax, scaled in between.
    Written,
    /// With a score that depends on the distance of the positions and is bent by a function.
    Bent,
    /// With the root of a product of sizes, whose derivative is infinite where there is none.
    Rooted,
}

fn view(x: &RawTensor, axes: [isize; 4]) -> RawTensor {
    x.with_layout(x.layout().permute(&axes).unwrap())
}

/// `[b, h, s, d]`
fn heads(dtype: DType, dims: [usize; 4], lie: Lie) -> RawTensor {
    heads_of(|dims| noise(dtype, dims), dims, lie)
}

fn heads_of(values: impl Fn(&[usize]) -> RawTensor, [b, h, s, d]: [usize; 4], lie: Lie) -> RawTensor {
    match lie {
        Lie::Dense => values(&[b, h, s, d]),
        Lie::Projected => view(&values(&[b, s, h, d]), [0, 2, 1, 3]),
        Lie::Shared => {
            let one = values(&[b, 1, s, d]);
            one.with_layout(one.layout().broadcast_to(&[b, h, s, d]).unwrap())
        }
    }
}

fn mask(dtype: DType, mask: Mask, [b, h, m, n, ..]: Extents) -> Option<RawTensor> {
    let spread = |x: RawTensor| x.with_layout(x.layout().broadcast_to(&[b, h, m, n]).unwrap());
    let bools = |dims: &[usize], passes: &dyn Fn(usize) -> bool| {
        let all: Vec<bool> = (0..dims.iter().product()).map(passes).collect();
        RawTensor::from_slice(&all, dims).unwrap()
    };
    match mask {
        Mask::None => None,
        Mask::Pairs => Some(spread(bools(&[m, n], &|i| i % 3 != 0 && i >= n))),
        Mask::Keys => Some(spread(bools(&[b, 1, 1, n], &|i| i % n <= n / 2))),
        Mask::Bias => Some(noise(dtype, &[b, h, m, n])),
        Mask::Least | Mask::Far => {
            let is_masked = |i: usize| i / n % 3 == 1 || i % n > n / 2;
            let far = if mask == Mask::Far { -1e9 } else { f32::MIN };
            let bias = (0..m * n).map(|i| if is_masked(i) { far } else { 0.0 });
            Some(spread(
                match dtype {
                    // Rounded to the nearest it would be -inf.
                    BF16 => RawTensor::from_slice(
                        &bias.map(|x| bf16::from_f32(x).max(bf16::MIN)).collect::<Vec<_>>(),
                        &[m, n],
                    ),
                    _ => RawTensor::from_slice(&bias.collect::<Vec<_>>(), &[m, n]),
                }
                .unwrap(),
            ))
        }
    }
}

fn case(dtype: DType, extents: Extents, mask: Mask, form: Form) -> Case {
    let [b, h, m, n, depth, columns] = extents;
    let mut inputs =
        vec![(dtype, vec![b, h, m, depth]), (dtype, vec![b, h, n, depth]), (dtype, vec![b, h, n, columns])];
    let masked = (mask != Mask::None).then(|| (if mask.is_added() { dtype } else { Bool }, vec![b, h, m, n]));
    inputs.extend(masked);
    let inputs: Vec<(DType, &[usize])> = inputs.iter().map(|(dtype, dims)| (*dtype, dims.as_slice())).collect();
    Case::new(&inputs, |g, x| {
        if let Form::Op(causal) = form {
            return vec![op(g, "scaled_dot_product_attention", x, &[Attr::Bool(causal)])];
        }
        let [queries, keys] = [x[0], x[1]].map(|x| if form == Form::Rooted { op(g, "abs", &[x], &[]) } else { x });
        let turned = op(g, "transpose", &[keys], &[Attr::Int(-2), Attr::Int(-1)]);
        let mut scores = op(g, "matmul", &[queries, turned], &[]);
        let attrs = [Attr::Lit(Literal::Float(0.125)), Attr::DType(dtype)];
        let scale = g.push(Op::named("constant"), &[], attrs.to_vec());
        scores = op(g, "mul", &[scores, scale], &[]);
        if form == Form::Bent {
            scores = op(g, "tanh", &[scores], &[]);
            scores = op(g, "add", &[scores, scores], &[]);
        }
        if form == Form::Rooted {
            scores = op(g, "sqrt", &[scores], &[]);
        }
        if let Some(mask) = x.get(3).filter(|_| mask.is_added()) {
            scores = op(g, "add", &[scores, *mask], &[]);
        }
        let weights = op(g, "softmax", &[scores], &[Attr::Int(-1)]);
        vec![op(g, "matmul", &[weights, x[2]], &[])]
    })
}

fn program(case: &Case) -> Program {
    program_of(&case.graph)
}

fn program_of(graph: &Graph) -> Program {
    let guessed = optimise::assume(graph).unwrap_or_else(|| graph.clone());
    let graph = optimise::run(guessed, optimise::Options::default());
    let plan = schedule::run(&graph, schedule::Options::default());
    assert_eq!(plan.fused.len(), 1, "{}", fuse_compiler::plan::print::plan(&plan));
    Program::new(&plan, &[])
}

/// The result, and the sum of the weighted values' sizes, which errors are measured by.
fn reference(inputs: &[RawTensor], extents: Extents, mask: Mask, form: Form) -> Vec<(f64, f64)> {
    let [b, h, m, n, depth, columns] = extents;
    let all: Vec<Vec<f64>> = inputs.iter().map(values).collect();
    let mut out = Vec::new();
    for head in 0..b * h {
        for query in 0..m {
            let score = |key: usize| {
                let (q, k) = (&all[0][(head * m + query) * depth..], &all[1][(head * n + key) * depth..]);
                let sized = |x: f64| if form == Form::Rooted { x.abs() } else { x };
                let product: f64 = (0..depth).map(|d| sized(q[d]) * sized(k[d])).sum();
                let scaled = match form {
                    Form::Op(_) => product / (depth as f64).sqrt(),
                    Form::Written => product * 0.125,
                    Form::Bent => 2.0 * (product * 0.125).tanh(),
                    Form::Rooted => (product * 0.125).sqrt(),
                };
                let masked = |key: usize| all[3][(head * m + query) * n + key];
                match mask {
                    _ if form == Form::Op(true) && key > query => f64::NEG_INFINITY,
                    Mask::None => scaled,
                    // Beside such a number nothing of the score is left in a float.
                    Mask::Far => f64::from((scaled + masked(key)) as f32),
                    _ if mask.is_added() => scaled + masked(key),
                    Mask::Pairs | Mask::Keys if masked(key) == 0.0 => f64::NEG_INFINITY,
                    _ => scaled,
                }
            };
            let scores: Vec<f64> = (0..n).map(score).collect();
            // What is no number is in all of a row.
            let nan = scores.iter().any(|score| score.is_nan());
            let largest = if nan { f64::NAN } else { scores.iter().copied().fold(f64::NEG_INFINITY, f64::max) };
            let exps: Vec<f64> =
                scores.iter().map(|s| if largest == f64::NEG_INFINITY { 0.0 } else { (s - largest).exp() }).collect();
            let sum: f64 = exps.iter().sum::<f64>().max(1e-300);
            for column in 0..columns {
                let weighted = |key: usize| exps[key] / sum * all[2][(head * n + key) * columns + column];
                let (result, size) = (0..n).map(weighted).fold((0.0, 0.0), |(r, s), x: f64| (r + x, s + x.abs()));
                out.push((result, size));
            }
        }
    }
    out
}

fn check(dtype: DType, extents: Extents, masked: Mask, form: Form, lie: Lie) {
    let [b, h, m, n, depth, columns] = extents;
    let shared = |lie| if lie == Lie::Shared { Lie::Dense } else { lie };
    let mut inputs = vec![
        heads(dtype, [b, h, m, depth], shared(lie)),
        heads(dtype, [b, h, n, depth], lie),
        heads(dtype, [b, h, n, columns], lie),
    ];
    inputs.extend(mask(dtype, masked, extents));
    compare(dtype, extents, (masked, form), &inputs, &format!("{dtype:?} {extents:?} {masked:?} {form:?} {lie:?}"));
}

fn compare(dtype: DType, extents: Extents, written: (Mask, Form), inputs: &[RawTensor], what: &str) {
    let case = case(dtype, extents, written.0, written.1);
    let program = program(&case);
    // The first call runs step by step, the next ones by a tape.
    compare_calls(3, (&case, &program), (dtype, extents), written, inputs, what);
}

fn compare_calls(
    calls: usize,
    (case, program): (&Case, &Program),
    (dtype, extents): (DType, Extents),
    (masked, form): (Mask, Form),
    inputs: &[RawTensor],
    what: &str,
) {
    let [b, h, m, _, _, columns] = extents;
    let Ok(cuda) = Device::cuda(0) else { return };
    let want = reference(inputs, extents, masked, form);
    // One rounding of the weights, one of the result; where it is written out, scores are rounded too, which are at most 3
    // and rounded three times. Floats are not rounded in between, but their sums are.
    let (unit, rounded) = match (dtype, form) {
        (BF16, Form::Op(_)) => (2f64.powi(-8), 1.0),
        (F16, Form::Op(_)) => (2f64.powi(-11), 1.0),
        (BF16, _) => (2f64.powi(-8), 12.0),
        (F16, _) => (2f64.powi(-11), 12.0),
        _ => (2f64.powi(-24), 32.0),
    };
    let least = if dtype == F32 { 1e-42 } else { 1e-6 };
    // Where blocks share the keys of a tile, counters that do not go back to 0 are seen in a later call.
    let mut first: Option<Vec<u64>> = None;
    for _ in 0..calls {
        let got = call(case, program, inputs, cuda).unwrap().remove(0);
        assert_eq!(got.shape(), [b, h, m, columns], "{what}");
        let bits: Vec<u64> = values(&got).into_iter().map(f64::to_bits).collect();
        assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{what}: results differ from call to call");
        for (i, (got, (want, size))) in values(&got).into_iter().zip(&want).enumerate() {
            let room = unit * (rounded * size + want.abs()) + least;
            let is_same = got == *want || (got.is_nan() && want.is_nan());
            assert!(
                is_same || want.is_finite() && (got - want).abs() <= room,
                "{what}: element {i} is {got}, not {want}, with room for {room:e}"
            );
        }
    }
    assert_eq!(program.functions.has_loaded("attention"), has_wgmma() || has_warps(dtype), "{what}");
}

fn capability() -> u32 {
    Context::get(0).unwrap().facts().target().capability
}

fn has_wgmma() -> bool {
    capability() == 90 && !is_without("wgmma")
}

fn has_warps(dtype: DType) -> bool {
    capability() >= 80 && dtype.is_half()
}

#[test]
fn one_op_over_sizes_and_masks() {
    for (k, extents) in EXTENTS.into_iter().enumerate() {
        // Compiling a kernel takes longer than all it is called for.
        let (dtype, lie) = ([BF16, F16][k / 2 % 2], [Lie::Dense, Lie::Projected, Lie::Shared][k % 3]);
        check(dtype, extents, Mask::None, Form::Op(k % 2 == 1), lie);
        check(dtype, extents, [Mask::Pairs, Mask::Keys, Mask::Bias][k % 3], Form::Op(k % 2 == 0), lie);
    }
}

#[test]
fn floats_over_sizes_and_masks() {
    let narrow = |[.., depth, columns]: &Extents| *depth <= 128 && *columns <= 128;
    for (k, extents) in EXTENTS.into_iter().filter(narrow).enumerate() {
        let lie = [Lie::Dense, Lie::Projected, Lie::Shared][k % 3];
        check(F32, extents, Mask::None, Form::Op(k % 2 == 1), lie);
        check(F32, extents, [Mask::Pairs, Mask::Keys, Mask::Bias][k % 3], Form::Op(k % 2 == 0), lie);
    }
    check(F32, [1, 2, 65, 100, 36, 20], Mask::None, Form::Op(false), Lie::Dense);
    check(F32, [2, 3, 140, 270, 64, 64], Mask::Bias, Form::Bent, Lie::Projected);
}

/// One text runs other numbers of queries than it was made for.
#[test]
fn numbers_of_queries_share_a_text() {
    // Of these the best texts have two, one, one and three warpgroups.
    let all = [[2, 3, 200, 333, 64, 64], [2, 3, 50, 70, 64, 64], [2, 3, 64, 40, 64, 64], [22, 24, 100, 10, 64, 64]];
    for (dtype, causal) in [(BF16, false), (F16, true), (F32, false)] {
        let written = (Mask::None, Form::Op(causal));
        let case = case(dtype, all[0], written.0, written.1);
        let program = program(&case);
        for extents @ [b, h, m, n, depth, columns] in all {
            let inputs = [[b, h, m, depth], [b, h, n, depth], [b, h, n, columns]].map(|dims| noise(dtype, &dims));
            let what = format!("{dtype:?} {extents:?}");
            compare_calls(1, (&case, &program), (dtype, extents), written, &inputs, &what);
        }
        let kernels = program.functions.count();
        assert!(Device::cuda(0).is_err() || !has_wgmma() || kernels == 1, "{dtype:?}: {kernels} kernels");
    }
}

/// Values below and above what three bfloat16 hold, and such as are no numbers.
/// Heads whose last queries are small tiles, as the last round of whole ones would be a third of the device: with a block of keys
/// for one warpgroup alone, and for all three of them.
#[test]
fn small_tiles_end_the_work() {
    for (n, masked) in [(70, Mask::None), (300, Mask::Keys), (530, Mask::None)] {
        check(BF16, [16, 12, 500, n, 32, 32], masked, Form::Op(false), Lie::Projected);
    }
    check(F16, [16, 12, 460, 140, 64, 64], Mask::Bias, Form::Written, Lie::Dense);
    check_training(BF16, [16, 12, 500, 70, 32, 32], Mask::None, (Form::Written, 0.1), Lie::Dense);
}

#[test]
fn floats_that_parts_do_not_hold() {
    let extents @ [b, h, m, n, depth, columns] = [1, 4, 70, 150, 64, 64];
    let changed = |dims: [usize; 4], change: &dyn Fn(usize, usize, usize, f32) -> f32| {
        let [_, _, rows, wide] = dims;
        let all = values(&noise(F32, &dims)).into_iter().enumerate();
        let all: Vec<f32> = all.map(|(i, x)| change(i / wide / rows, i / wide % rows, i % wide, x as f32)).collect();
        RawTensor::from_slice(&all, &dims).unwrap()
    };
    let queries = changed([b, h, m, depth], &|head, row, column, x| match (head, row, column) {
        (0, 3, 5) => f32::INFINITY,
        (0, 66, 1) => f32::NAN,
        (1, ..) => x * 1e-35,
        (2, _, 0) => 1e25,
        _ => x,
    });
    let keys = changed([b, h, n, depth], &|head, row, column, x| match (head, row, column) {
        (0, 7, 2) => f32::NEG_INFINITY,
        (2, _, 0) => x * 1e-25,
        _ => x,
    });
    let of_values = changed([b, h, n, columns], &|head, row, column, x| match (head, row, column) {
        (0, 9, 1) | (3, 149, 63) => f32::INFINITY,
        (3, 140, 2) => f32::NAN,
        (1, ..) => x * 1e-36,
        (2, ..) => x * 1e30,
        _ => x,
    });
    let inputs = [queries, keys, of_values];
    compare(F32, extents, (Mask::None, Form::Op(false)), &inputs, "values that parts do not hold");
}

#[test]
fn every_mask_over_every_layout() {
    for masked in [Mask::None, Mask::Pairs, Mask::Keys, Mask::Bias] {
        for lie in [Lie::Dense, Lie::Projected, Lie::Shared] {
            for causal in [false, true] {
                check(BF16, [2, 3, 140, 270, 64, 64], masked, Form::Op(causal), lie);
            }
        }
    }
}

/// What other libraries mask with: rows of it attend to all alike.
#[test]
fn masks_of_the_least_number() {
    for dtype in [BF16, F32] {
        for causal in [false, true] {
            check(dtype, [2, 3, 140, 270, 64, 64], Mask::Least, Form::Op(causal), Lie::Dense);
            check(dtype, [2, 3, 140, 270, 64, 64], Mask::Far, Form::Op(causal), Lie::Dense);
        }
        check(dtype, [1, 2, 3, 300, 64, 64], Mask::Far, Form::Op(false), Lie::Dense);
        check(dtype, [1, 2, 129, 300, 128, 128], Mask::Least, Form::Op(false), Lie::Projected);
    }
}

#[test]
fn written_out_with_scores_of_ones_own() {
    for dtype in [BF16, F16] {
        for extents in [[2, 3, 200, 130, 64, 64], [1, 2, 129, 300, 128, 128]] {
            for masked in [Mask::None, Mask::Bias] {
                check(dtype, extents, masked, Form::Written, Lie::Projected);
                check(dtype, extents, masked, Form::Bent, Lie::Dense);
            }
        }
    }
}

/// Blocks share the keys of a tile, and heads that read the same keys are rows of one.
#[test]
fn few_queries_of_many_keys() {
    let sizes: [Extents; 8] = [
        [2, 4, 1, 2048, 64, 64],
        [1, 8, 1, 4097, 128, 128],
        [1, 2, 5, 3000, 80, 80],
        [1, 3, 16, 1111, 40, 56],
        [1, 4, 17, 2500, 128, 96],
        [1, 2, 64, 3001, 64, 64],
        [1, 1, 200, 4100, 64, 64],
        [1, 2, 3, 900, 256, 256],
    ];
    for (k, extents) in sizes.into_iter().enumerate() {
        let (dtype, lie) = ([BF16, F16][k % 2], [Lie::Shared, Lie::Projected, Lie::Dense][k % 3]);
        check(dtype, extents, Mask::None, Form::Op(k % 4 == 3), lie);
        check(dtype, extents, [Mask::Keys, Mask::Bias, Mask::Pairs][k % 3], Form::Op(k % 4 == 1), Lie::Shared);
    }
    check(BF16, [2, 4, 3, 1500, 64, 64], Mask::Bias, Form::Bent, Lie::Shared);
    check(F16, [1, 2, 40, 2100, 128, 128], Mask::None, Form::Written, Lie::Projected);
}

/// The same tests with what other devices have in the place of Hopper's kernels.
#[test]
fn all_of_it_without_wgmma() {
    if Device::cuda(0).is_err() || !has_wgmma() {
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let status = again.arg("fused_attention").env("FUSE_WITHOUT", "wgmma").status().unwrap();
    assert!(status.success(), "{status}");
}

/// What is trained: how it is written, and with which share of the weights dropped.
type Trained = (Form, f64);

/// Attention from queries, keys, values and perhaps a mask; the last of its inputs is the gradient of its result.
fn in_training(dtype: DType, extents: Extents, masked: Mask, (form, rate): Trained) -> Case {
    let mut case = case(dtype, extents, masked, form);
    if rate > 0.0 {
        let weights = case.graph.node(case.graph.outs[0]).args[0];
        let values = case.graph.inputs[2];
        let attrs = [Attr::Lit(Literal::Float(rate)), Attr::DType(F64)];
        let rate = case.graph.push(Op::named("constant"), &[], attrs.to_vec());
        let dropped = op(&mut case.graph, "dropout", &[weights, rate], &[Attr::Bool(true)]);
        case.graph.outs = vec![op(&mut case.graph, "matmul", &[dropped, values], &[])];
    }
    let [b, h, m, .., columns] = extents;
    case.inputs.push((dtype, vec![b, h, m, columns]));
    case
}

/// The same with its gradients in one graph.
fn differentiated(case: Case) -> Case {
    let request = Request { wrt: vec![0, 1, 2], seeds: vec![Seed::Input] };
    Case { graph: autodiff::run(case.graph, &request), ..case }
}

/// The same with its gradients in two graphs, as a tape has it.
struct Apart {
    case: Case,
    derivative: Derivative,
    forward: Program,
    backward: Program,
}

impl Apart {
    fn new(case: Case) -> Apart {
        let all = |graph: &Graph| (0..graph.places.len() as u32).collect();
        let pair = split::run(&case.graph, &[0, 1, 2], &[0], 0.0, &all).expect("gradients go through it");
        let [forward, backward] = [pair.forward, pair.backward].map(|graph| program_of(&graph));
        Apart { case, derivative: pair.derivative, forward, backward }
    }

    /// The result and the gradients, with the same draws in both.
    fn call(&self, inputs: &[RawTensor], device: Device) -> Vec<RawTensor> {
        let (cotangent, own) = inputs.split_last().expect("there is a cotangent");
        let run = |program: &Program, inputs: &[RawTensor]| {
            Generator::new(7).scope(|| call(&self.case, program, inputs, device).unwrap())
        };
        let mut forward = run(&self.forward, own);
        let kept = self.derivative.kept.iter().map(|kept| match *kept {
            Kept::Input(k) => own[k as usize].clone(),
            Kept::Result(k) => forward[k as usize].clone(),
        });
        let inputs: Vec<RawTensor> = kept.chain([cotangent.clone()]).collect();
        let backward = run(&self.backward, &inputs);
        forward.truncate(self.derivative.results);
        [forward, backward].concat()
    }
}

/// Compares the result and the gradients with what steps in f32 give on the processor, with the same draws.
fn check_training(dtype: DType, extents: Extents, masked: Mask, trained: Trained, lie: Lie) {
    let [b, h, m, n, depth, columns] = extents;
    let shared = if lie == Lie::Shared { Lie::Dense } else { lie };
    let matrices =
        [([b, h, m, depth], shared), ([b, h, n, depth], lie), ([b, h, n, columns], lie), ([b, h, m, columns], shared)];
    let mut inputs: Vec<RawTensor> =
        (0..).zip(matrices).map(|(k, (dims, lie))| heads_of(|dims| sample(dtype, dims, k), dims, lie)).collect();
    inputs.splice(3..3, mask(dtype, masked, extents));
    let what = format!("{dtype:?} {extents:?} {masked:?} {trained:?} {lie:?}");
    compare_gradients(dtype, |dtype| in_training(dtype, extents, masked, trained), &inputs, &what);
}

/// Compares with as much room as the largest elements of a result leave.
fn compare_gradients(dtype: DType, case_of: impl Fn(DType) -> Case, inputs: &[RawTensor], what: &str) {
    compare_training(dtype, case_of, inputs, what, |want| room_of_largest(dtype, want));
}

fn room_of_largest(dtype: DType, want: &[RawTensor]) -> Room {
    // What cancels (one key: the gradient of its score is 0) is as exact as what it is the difference of.
    let most: Vec<f64> = want.iter().map(|x| largest(&values(x))).collect();
    let least = most.iter().copied().fold(0.0, f64::max) / 32.0;
    Box::new(move |result, _| match dtype {
        F32 => 64.0 * 2f64.powi(-24) * most[result].max(least),
        BF16 => 6.0 * 2f64.powi(-8) * most[result].max(least) + 1e-6,
        _ => 6.0 * 2f64.powi(-11) * most[result].max(least) + 1e-6,
    })
}

/// How far from what is wanted an element of a result may be, by their numbers.
type Room = Box<dyn Fn(usize, usize) -> f64>;

fn compare_training(
    dtype: DType,
    case_of: impl Fn(DType) -> Case,
    inputs: &[RawTensor],
    what: &str,
    room: impl Fn(&[RawTensor]) -> Room,
) {
    let case = differentiated(case_of(dtype));
    let program = program(&case);
    let apart = Apart::new(case_of(dtype));
    let Ok(cuda) = Device::cuda(0) else { return };
    let want = wanted(case_of, inputs);
    let room = room(&want);
    // The first call runs step by step, the next ones by a tape.
    for _ in 0..3 {
        compare_results(&with_draws(&|| call(&case, &program, inputs, cuda).unwrap()), &want, &room, what);
        compare_results(&apart.call(inputs, cuda), &want, &room, &format!("{what} as two graphs"));
    }
    let has_kernels = has_wgmma() || has_warps(dtype);
    for kernel in KERNELS {
        assert_eq!(program.functions.has_loaded(kernel), has_kernels, "{what}: {kernel}");
        assert_eq!(apart.backward.functions.has_loaded(kernel), has_kernels, "{what} as two graphs: {kernel}");
    }
}

const KERNELS: [&str; 3] = ["attention", "attention_queries", "attention_keys"];

/// The same draws in every run.
fn with_draws(run: &dyn Fn() -> Vec<RawTensor>) -> Vec<RawTensor> {
    Generator::new(7).scope(run)
}

/// What steps in f32 give on the processor.
fn wanted(case_of: impl Fn(DType) -> Case, inputs: &[RawTensor]) -> Vec<RawTensor> {
    let wide = |x: &RawTensor| if x.dtype() == Bool { x.clone() } else { widened(x) };
    let wide: Vec<RawTensor> = inputs.iter().map(wide).collect();
    let exact = differentiated(case_of(F32));
    with_draws(&|| call(&exact, &exact.program(), &wide, Device::cpu()).unwrap())
}

fn compare_results(got: &[RawTensor], want: &[RawTensor], room: &Room, what: &str) {
    for (k, (got, want)) in std::iter::zip(got, want).enumerate() {
        for (i, (got, want)) in std::iter::zip(values(got), values(want)).enumerate() {
            let room = room(k, i);
            let is_same = got == want || (got.is_nan() && want.is_nan());
            assert!(
                is_same || want.is_finite() && (got - want).abs() <= room,
                "{what}: {i} of result {k} is {got}, not {want}, with room for {room:e}"
            );
        }
    }
}

/// The largest of finite values by size.
fn largest(of: &[f64]) -> f64 {
    of.iter().filter(|x| x.is_finite()).fold(0.0f64, |most, x| most.max(x.abs()))
}

/// Halves as floats, in the same places.
fn widened(x: &RawTensor) -> RawTensor {
    let all: Vec<f32> = values(x).into_iter().map(|x| x as f32).collect();
    RawTensor::from_slice(&all, x.shape()).unwrap()
}

#[test]
fn gradients_over_sizes_and_drops() {
    let sizes: [Extents; 7] = [
        [1, 1, 1, 1, 8, 8],
        [2, 3, 64, 128, 64, 64],
        [1, 2, 200, 333, 64, 64],
        [2, 2, 300, 150, 32, 32],
        [1, 3, 129, 257, 128, 128],
        [1, 2, 130, 200, 96, 64],
        [2, 5, 513, 513, 64, 64],
    ];
    for (k, extents) in sizes.into_iter().enumerate() {
        let (dtype, lie) = ([BF16, F16][k % 2], [Lie::Dense, Lie::Projected][k % 2]);
        check_training(dtype, extents, Mask::None, (Form::Written, [0.1, 0.0][k / 2 % 2]), lie);
    }
}

/// Heads that are too wide for the way back by warpgroups: two warps share the sums of keys and values, and queries leave registers.
#[test]
fn gradients_of_wide_heads() {
    let sizes: [Extents; 4] =
        [[1, 2, 150, 170, 256, 256], [1, 2, 130, 70, 192, 64], [2, 1, 65, 100, 160, 224], [1, 1, 40, 33, 136, 136]];
    for (k, extents @ [b, h, m, n, depth, columns]) in sizes.into_iter().enumerate() {
        let (dtype, trained) = ([BF16, F16][k % 2], (Form::Written, [0.1, 0.0][k / 2 % 2]));
        let case_of = |dtype| in_training(dtype, extents, Mask::None, trained);
        let case = differentiated(case_of(dtype));
        let program = program(&case);
        let Ok(cuda) = Device::cuda(0) else { return };
        let dims = [[b, h, m, depth], [b, h, n, depth], [b, h, n, columns], [b, h, m, columns]];
        let inputs: Vec<RawTensor> = (0..).zip(&dims).map(|(k, dims)| sample(dtype, dims, k)).collect();
        let want = wanted(case_of, &inputs);
        let (room, what) = (room_of_largest(dtype, &want), format!("{dtype:?} {extents:?}"));
        let run = || with_draws(&|| call(&case, &program, &inputs, cuda).unwrap());
        let first = run();
        compare_results(&first, &want, &room, &what);
        std::iter::zip(&first, run()).for_each(|(a, b)| assert_eq!(values(a), values(&b), "{what}: not alike"));
        for kernel in KERNELS {
            assert_eq!(program.functions.has_loaded(kernel), has_warps(dtype) && !has_wgmma(), "{what}: {kernel}");
        }
    }
}

/// Attention in which all heads have the same keys and values.
fn grouped(dtype: DType, [b, h, m, n, depth, columns]: Extents, causal: bool) -> Case {
    let inputs: [(DType, &[usize]); 3] =
        [(dtype, &[b, h, m, depth]), (dtype, &[b, n, depth]), (dtype, &[b, n, columns])];
    let mut case = Case::new(&inputs, |g, x| {
        let [k, v] = [x[1], x[2]].map(|x| op(g, "unsqueeze", &[x], &[Attr::Int(1)]));
        vec![op(g, "scaled_dot_product_attention", &[x[0], k, v], &[Attr::Bool(causal)])]
    });
    case.inputs.push((dtype, vec![b, h, m, columns]));
    case
}

#[test]
fn gradients_of_heads_that_share_keys() {
    let rows = [[2, 4, 140, 270, 64, 64], [1, 3, 65, 65, 128, 128], [3, 2, 200, 64, 32, 64]];
    for ((k, extents), dtype) in rows.into_iter().enumerate().zip([BF16, F16, F32]) {
        let (case_of, what) = (|dtype| grouped(dtype, extents, k < 2), format!("{dtype:?} {extents:?}"));
        let inputs = case_of(dtype).inputs;
        let inputs: Vec<RawTensor> = (0..).zip(&inputs).map(|(k, (dtype, dims))| sample(*dtype, dims, k)).collect();
        compare_gradients(dtype, case_of, &inputs, &what);
    }
}

#[test]
fn gradients_behind_masks() {
    let extents = [2, 3, 140, 270, 64, 64];
    for (masked, causal, lie) in
        [(Mask::None, true, Lie::Projected), (Mask::Pairs, false, Lie::Dense), (Mask::Keys, true, Lie::Shared)]
    {
        check_training(BF16, extents, masked, (Form::Op(causal), 0.0), lie);
    }
    check_training(BF16, extents, Mask::Bias, (Form::Op(true), 0.0), Lie::Dense);
    // Weights of rows that are masked as a whole are alike, which a logarithm beside -1e9 does not tell.
    check_training(BF16, extents, Mask::Far, (Form::Op(false), 0.0), Lie::Dense);
    check_training(F16, extents, Mask::None, (Form::Written, 0.2), Lie::Projected);
}

/// Places behind the last query and key have no gradient, whatever the derivative of a score is there.
#[test]
fn gradients_of_scores_that_are_steep_at_zero() {
    for dtype in [BF16, F16, F32] {
        for (extents, rate) in [([2, 3, 70, 150, 64, 64], 0.0), ([1, 2, 129, 33, 32, 48], 0.1)] {
            check_training(dtype, extents, Mask::None, (Form::Rooted, rate), Lie::Dense);
        }
    }
}

#[test]
fn gradients_of_floats_over_sizes_and_drops() {
    let sizes: [Extents; 7] = [
        [1, 1, 1, 1, 8, 8],
        [2, 3, 64, 128, 64, 64],
        [1, 2, 200, 333, 64, 36],
        [2, 2, 300, 150, 32, 32],
        [1, 3, 129, 257, 128, 128],
        [1, 2, 130, 200, 96, 64],
        [2, 5, 513, 513, 64, 64],
    ];
    for (k, extents) in sizes.into_iter().enumerate() {
        let lie = [Lie::Dense, Lie::Projected][k % 2];
        check_training(F32, extents, Mask::None, (Form::Written, [0.1, 0.0][k / 2 % 2]), lie);
    }
}

#[test]
fn gradients_of_floats_behind_masks() {
    let extents = [2, 3, 140, 270, 64, 64];
    for (masked, causal, lie) in
        [(Mask::None, true, Lie::Projected), (Mask::Pairs, false, Lie::Dense), (Mask::Keys, true, Lie::Shared)]
    {
        check_training(F32, extents, masked, (Form::Op(causal), 0.0), lie);
    }
    check_training(F32, extents, Mask::Far, (Form::Op(false), 0.0), Lie::Dense);
    check_training(F32, [1, 2, 200, 150, 128, 128], Mask::Bias, (Form::Op(true), 0.0), Lie::Dense);
    check_training(F32, extents, Mask::None, (Form::Written, 0.2), Lie::Projected);
}

/// Values below and above what three bfloat16 hold, and such as are no numbers, in the head of a number, a row and a column.
#[test]
fn gradients_of_floats_that_parts_do_not_hold() {
    let extents @ [b, h, m, n, depth, columns] = [1, 4, 70, 150, 64, 64];
    let changed = |rows: usize, wide: usize, seed: u64, change: &dyn Fn(usize, usize, usize, f32) -> f32| {
        let all = values(&sample(F32, &[b, h, rows, wide], seed)).into_iter().enumerate();
        let all: Vec<f32> = all.map(|(i, x)| change(i / wide / rows, i / wide % rows, i % wide, x as f32)).collect();
        RawTensor::from_slice(&all, &[b, h, rows, wide]).unwrap()
    };
    let queries = changed(m, depth, 0, &|head, row, column, x| match (head, row, column) {
        (0, 66, 1) => f32::NAN,
        (1, ..) => x * 1e-35,
        _ => x,
    });
    let keys = changed(n, depth, 1, &|head, row, column, x| match (head, row, column) {
        (0, 7, 2) => f32::NEG_INFINITY,
        _ => x,
    });
    let of_values = changed(n, columns, 2, &|head, row, column, x| match (head, row, column) {
        (0, 9, 1) => f32::INFINITY,
        (2, ..) => x * 1e20,
        _ => x,
    });
    let gradient = changed(m, columns, 3, &|head, row, _, x| match (head, row) {
        (0, 3) => f32::INFINITY,
        (3, ..) => x * 1e-34,
        _ => x,
    });
    let inputs = [queries, keys, of_values, gradient];
    let trained = (Form::Written, 0.0);
    compare_training(
        F32,
        |dtype| in_training(dtype, extents, Mask::None, trained),
        &inputs,
        "values that parts do not hold",
        move |want| {
            let most: Vec<Vec<f64>> =
                want.iter().map(|x| values(x).chunks(x.numel() / h).map(largest).collect()).collect();
            let lengths: Vec<usize> = want.iter().map(|x| x.numel() / h).collect();
            Box::new(move |result, i| 256.0 * 2f64.powi(-24) * most[result][i / lengths[result]] + 1e-42)
        },
    );
}

/// Scores that are rounded to hundredths are rounded alike on both ways, so the largest one's weight is 1.
#[test]
fn gradients_of_values_under_large_scores() {
    for dtype in [BF16, F32] {
        let extents @ [b, h, m, n, depth, columns] = [1, 2, 70, 150, 96, 96];
        let large = heads_of(|dims| sample(dtype, dims, 0), [b, h, m, depth], Lie::Dense);
        let large: Vec<f32> = values(&large).into_iter().map(|x| x as f32 * 65536.0).collect();
        let large = match dtype {
            BF16 => {
                RawTensor::from_slice(&large.into_iter().map(bf16::from_f32).collect::<Vec<_>>(), &[b, h, m, depth])
            }
            _ => RawTensor::from_slice(&large, &[b, h, m, depth]),
        };
        let [keys, of_values, gradient] = [(n, depth), (n, columns), (m, columns)]
            .map(|(rows, wide)| sample(dtype, &[b, h, rows, wide], wide as u64));
        let inputs = [large.unwrap(), keys, of_values, gradient];
        let trained = (Form::Op(false), 0.0);
        compare_training(
            dtype,
            |dtype| in_training(dtype, extents, Mask::None, trained),
            &inputs,
            "large scores",
            move |want| {
                let unit = if dtype == F32 { 2f64.powi(-18) } else { 2f64.powi(-6) };
                let most = [largest(&values(&want[0])), f64::INFINITY, f64::INFINITY, largest(&values(&want[3]))];
                Box::new(move |result, _| unit * most[result])
            },
        );
    }
}

#[test]
fn weights_are_computed_again_where_a_gradient_lies_crosswise() {
    let Ok(cuda) = Device::cuda(0) else { return };
    let extents = [1, 2, 80, 96, 64, 64];
    let case = differentiated(in_training(BF16, extents, Mask::None, (Form::Written, 0.1)));
    let program = program(&case);
    let matrix = |rows: usize, seed: u64| sample(BF16, &[1, 2, rows, 64], seed);
    let straight = matrix(80, 3);
    let crosswise = view(&view(&straight, [0, 1, 3, 2]).copied().unwrap(), [0, 1, 3, 2]);
    let [by_kernels, by_steps] = [straight, crosswise].map(|gradient| {
        let inputs = [matrix(80, 0), matrix(96, 1), matrix(96, 2), gradient];
        let run = || Generator::new(7).scope(|| call(&case, &program, &inputs, cuda).unwrap());
        let first = run();
        let again = run();
        std::iter::zip(&first, &again).for_each(|(a, b)| assert_eq!(values(a), values(b)));
        first
    });
    for (a, b) in std::iter::zip(&by_kernels, &by_steps) {
        let (a, b) = (values(a), values(b));
        let most = b.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        std::iter::zip(a, b).for_each(|(a, b)| assert!((a - b).abs() <= 0.03 * most, "{a} {b}"));
    }
}
