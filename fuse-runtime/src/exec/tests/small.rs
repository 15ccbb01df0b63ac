//! Small kernels that do not depend on one another, in one launch where the device has one.

use super::{Call, Case, Program, call, check, moved, op, run, sample};
use crate::device::Device;
use crate::exec::random::Random;
use crate::raw::RawTensor;
use fuse_compiler::graph::Graph;
use fuse_compiler::op::{Attr, Build, Val};
use fuse_compiler::options::Mode;
use fuse_compiler::types::DType::{self, BF16, F16, F32, F64, I64};
use fuse_compiler::{optimise, schedule};
use std::time::Instant;

/// A kernel of each input for itself: chains, sums of what is transposed, and rows.
fn kernels(g: &mut Graph, x: &[Val], dtype: DType) -> Vec<Val> {
    let each = |(n, &x): (usize, &Val)| match n % 5 {
        3 if dtype.is_float() && g.ty(x).rank() > 0 => op(g, "softmax", &[x], &[Attr::Int(-1)]),
        4 if g.ty(x).rank() > 0 => op(g, "sum", &[x], &[Attr::Int(-1)]),
        0 if dtype.is_float() => {
            let bent = op(g, "tanh", &[x], &[]);
            op(g, "mul", &[bent, x], &[])
        }
        1 if g.ty(x).rank() == 2 => {
            let turned = op(g, "transpose", &[x], &[Attr::Int(0), Attr::Int(1)]);
            op(g, "add", &[turned, turned], &[])
        }
        _ => op(g, "mul", &[x, x], &[]),
    };
    x.iter().enumerate().map(each).collect()
}

fn check_small(dtype: DType, shapes: &[Vec<usize>], what: &str) {
    let inputs: Vec<(DType, &[usize])> = shapes.iter().map(|dims| (dtype, dims.as_slice())).collect();
    let case = Case::new(&inputs, |g, x| kernels(g, x, dtype));
    let program = case.program();
    let plan = &program.plan;
    let listed: Vec<u32> = plan.small.iter().map(|small| small.count).collect();
    assert_eq!(listed, [shapes.len() as u32], "{what}: {}", fuse_compiler::plan::print::plan(plan));
    check(what, &case);
}

#[test]
fn kernels_of_every_type_and_size() {
    for dtype in [F32, F64, F16, BF16, I64] {
        let shapes = [vec![5], vec![33, 17], vec![1025], vec![2, 3, 4], vec![], vec![64, 80]];
        check_small(dtype, &shapes, &format!("kernels of {dtype:?}"));
        let empty = [vec![0], vec![7, 0], vec![0, 3]];
        check_small(dtype, &empty, &format!("empty kernels of {dtype:?}"));
        check_small(dtype, &[vec![0], vec![300_000], vec![4, 4]], &format!("a large one of {dtype:?} among others"));
    }
}

#[test]
fn kernels_of_random_sizes() {
    for seed in 0..std::env::var("FUSE_SEEDS").map_or(4, |seeds| seeds.parse().expect("FUSE_SEEDS is a number")) {
        let random = &mut Random(seed);
        let dtype = [F32, BF16, F16, F64, I64][random.below(5)];
        let count = 2 + random.below(5);
        let shapes = (0..count).map(|_| {
            let rank = 1 + random.below(2);
            (0..rank).map(|_| random.below(90)).collect::<Vec<usize>>()
        });
        let shapes: Vec<Vec<usize>> = shapes.collect();
        check_small(dtype, &shapes, &format!("seed {seed}: kernels of {dtype:?} {shapes:?}"));
    }
}

/// More layouts than a kernel has texts for: from then on one text runs any.
#[test]
fn many_layouts_share_a_text() {
    let Ok(cuda) = Device::cuda(0) else { return };
    let case = Case::new(&[(F32, &[64, 64]), (F32, &[100])], |g, x| kernels(g, x, F32));
    let program = case.program();
    let (mut most, square) = (0, sample(F32, &[80, 80], 1));
    for n in 1..24 {
        let layout = square.layout().narrow(0, n % 3, 1 + n * 3).unwrap().narrow(1, n % 5, 64 - n).unwrap();
        let inputs = [square.with_layout(layout), sample(F32, &[n * 7], 2)];
        let want = call(&case, &program, &inputs, Device::cpu()).unwrap();
        let got = call(&case, &program, &inputs, cuda).unwrap();
        for (got, want) in got.iter().zip(&want) {
            let close = |(got, want): (f64, f64)| (got - want).abs() <= 2e-5 * want.abs().max(1.0);
            assert!(super::values(got).into_iter().zip(super::values(want)).all(close), "layout {n}");
        }
        most = most.max(program.functions.count());
    }
    assert!(program.functions.has_loaded("small") && most <= 9, "{most} texts");
}

/// Kernels of so many inputs, each of its own size.
fn many(count: usize) -> (Program, Vec<usize>) {
    let mut graph = Graph::new("many");
    let inputs: Vec<Val> = (0..count).map(|n| graph.input(&format!("x{n}"), F32, 1)).collect();
    graph.outs = kernels(&mut graph, &inputs, F32);
    let graph = optimise::run(graph, optimise::Options::default());
    let sizes = (0..count).map(|n| 1000 + 97 * n).collect();
    (Program::new(&schedule::run(&graph, schedule::Options::default()), &[]), sizes)
}

#[test]
fn one_launch_runs_many_kernels() {
    let Ok(cuda) = Device::cuda(0) else { return };
    let (program, sizes) = many(25);
    let inputs: Vec<RawTensor> = sizes.iter().map(|n| sample(F32, &[*n], 3)).collect();
    let run_on = |device: Device| {
        let moved: Vec<RawTensor> = inputs.iter().map(|x| moved(x, device)).collect();
        let tensors: Vec<&RawTensor> = moved.iter().collect();
        let bodies = if device.is_cpu() { program.interpreted() } else { vec![] };
        let given = vec![false; 25];
        let (program, bodies) = (&program, bodies.as_slice());
        let call = Call { program, tensors: &tensors, given: &given, scalars: &[], host_ints: &[], device, bodies };
        // The second call is by its tape.
        (run(&call).unwrap(), run(&call).unwrap())
    };
    let ((want, _), (first, again)) = (run_on(Device::cpu()), run_on(cuda));
    for (want, (first, again)) in want.iter().zip(first.iter().zip(&again)) {
        let (want, first) = (super::values(want), super::values(first));
        assert_eq!(first, super::values(again));
        assert!(first.iter().zip(&want).all(|(got, want)| (got - want).abs() <= 2e-5 * want.abs().max(1.0)));
    }
    // A softmax of one row is three kernels, which wait for one another.
    assert!(
        program.functions.has_loaded("small") && program.functions.count() == program.plan.launches_where_together()
    );
}

#[test]
#[ignore = "prints speeds, and with FUSE_WITHOUT=small those of one after the other: cargo test -p fuse-runtime --lib speed_of_small_kernels -- --ignored --nocapture"]
fn speed_of_small_kernels() {
    let Ok(cuda) = Device::cuda(0) else { return eprintln!("skipped: there is no CUDA device") };
    for (count, factor) in [(3, 1), (10, 1), (25, 1), (25, 30), (10, 100)] {
        for mode in [Mode::Default, Mode::ReduceOverhead] {
            let (program, sizes) = many(count);
            let program = program.with_mode(mode);
            let inputs: Vec<RawTensor> = sizes.iter().map(|n| moved(&sample(F32, &[*n * factor], 3), cuda)).collect();
            let tensors: Vec<&RawTensor> = inputs.iter().collect();
            let (program, given) = (&program, vec![false; count]);
            let call = Call {
                program,
                tensors: &tensors,
                given: &given,
                scalars: &[],
                host_ints: &[],
                device: cuda,
                bodies: &[],
            };
            let calls = |count: usize| (0..count).for_each(|_| drop(run(&call).unwrap()));
            calls(5);
            let once = || {
                cuda.synchronize().unwrap();
                let start = Instant::now();
                calls(500);
                cuda.synchronize().unwrap();
                start.elapsed().as_secs_f64() * 1e6 / 500.0
            };
            let best = (0..5).map(|_| once()).fold(f64::INFINITY, f64::min);
            println!("{count} kernels of about {} floats, {mode:?}: {best:.1} us", sizes[count / 2] * factor);
        }
    }
}
