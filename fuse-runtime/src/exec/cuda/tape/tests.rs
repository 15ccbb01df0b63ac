//! A tape launches what the steps of its call launch, byte for byte but for where things lie.

use super::Tape;
use crate::cuda::{Context, Matmul, Matrix, RECORDER, Recorded};
use crate::device::Device;
use crate::exec::cuda::run::{make_ready_again, run, run_steps};
use crate::exec::random::{check_arms, program_of};
use crate::exec::{Call, Program};
use crate::raw::RawTensor;
use crate::rt::Scalar;
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::graph::Graph;
use fuse_compiler::op::{Attr, Build, Literal, Op, Val};
use fuse_compiler::options::Mode;
use fuse_compiler::types::DType;
use fuse_compiler::{optimise, schedule};
use std::sync::{Arc, Mutex, MutexGuard};

/// There is one recorder, and tests run side by side.
fn recorder() -> (MutexGuard<'static, ()>, Device) {
    static TURN: Mutex<()> = Mutex::new(());
    (TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()), Device::recorder())
}

/// What a run launches, the number of its call, and what it gives.
struct Run {
    launches: Vec<Recorded>,
    number: u64,
    results: Vec<RawTensor>,
}

fn watch(device: Device, run: impl FnOnce() -> Vec<RawTensor>) -> Run {
    let context = Context::get(RECORDER).unwrap();
    device.manual_seed(5);
    context.recorded();
    let number = context.next_call() + 1;
    let results = run();
    Run { launches: context.recorded(), number, results }
}

/// Runs a call step by step and by its tape, and compares.
fn check(program: &Program, tensors: &[RawTensor], given: bool, scalars: &[Scalar]) {
    let device = Device::recorder();
    let refs: Vec<&RawTensor> = tensors.iter().collect();
    let given = vec![given; refs.len()];
    let call = Call { program, tensors: &refs, given: &given, scalars, host_ints: &[], device, bodies: &[] };
    let tape = Arc::new(Tape::take_down(&call, RECORDER).unwrap());
    let storage = |result: &RawTensor| refs.iter().position(|x| x.storage().address() == result.storage().address());
    let facts = |run: &Run| {
        let fact = |result: &RawTensor| {
            let taken = storage(result).filter(|_| result.numel() > 0);
            let start = result.address() - result.storage().address();
            (result.dtype(), result.layout().with_offset(0), taken, start)
        };
        run.results.iter().map(fact).collect::<Vec<_>>()
    };
    let by_steps = watch(device, || run_steps(&call, RECORDER).unwrap());
    let (expected, mut launches, number) = (facts(&by_steps), by_steps.launches, by_steps.number);
    drop(by_steps.results);
    for _ in 0..2 {
        let by_tape = watch(device, || tape.run(&call).unwrap());
        assert_eq!(facts(&by_tape), expected);
        assert_eq!(names(&by_tape.launches), names(&launches));
        let numbers = [number, by_tape.number];
        for (steps, tape) in launches.iter_mut().zip(&by_tape.launches) {
            assert_alike(steps, tape, numbers, tensors);
        }
    }
}

fn names(launches: &[Recorded]) -> Vec<&str> {
    let mut names = Vec::new();
    for launch in launches {
        names.push(match launch {
            Recorded::Launch { entry, .. } => &**entry,
            Recorded::Matmul(_) => "matmul",
            Recorded::Graph { .. } => "graph",
            Recorded::Loop => "while",
            Recorded::Branch => "if",
            Recorded::On(_) | Recorded::Wait { .. } => "stream",
        });
    }
    names
}

fn assert_alike(steps: &Recorded, tape: &Recorded, numbers: [u64; 2], tensors: &[RawTensor]) {
    let alike = |a: u64, b: u64| a == b || [a, b] == numbers || both_fresh(a, b, tensors);
    match (steps, tape) {
        (
            Recorded::Launch { entry, grid, block, shared, args },
            Recorded::Launch { entry: entry_2, grid: grid_2, block: block_2, shared: shared_2, args: args_2 },
        ) => {
            assert_eq!((entry, grid, block, shared), (entry_2, grid_2, block_2, shared_2));
            assert_eq!(args.len(), args_2.len());
            for (at, (a, b)) in args.chunks(8).zip(args_2.chunks(8)).enumerate() {
                let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
                assert!(a == b || alike(word(a), word(b)), "word {at} of `{entry}`: {a:02x?}, by tape {b:02x?}");
            }
        }
        (Recorded::Matmul(a), Recorded::Matmul(b)) => {
            let pairs = [(a.a, b.a), (a.b, b.b), (a.c, b.c)];
            assert!(pairs.iter().all(|(a, b)| alike(a.address, b.address)), "{a:?} {b:?}");
            assert!(alike(a.bias.unwrap_or(0), b.bias.unwrap_or(0)), "{a:?} {b:?}");
            assert_eq!(nowhere(*a), nowhere(*b));
        }
        other => panic!("{other:?}"),
    }
}

/// Whether both are addresses outside of the arguments, which may be anywhere but have to be aligned alike.
fn both_fresh(a: u64, b: u64, tensors: &[RawTensor]) -> bool {
    let fresh = |at: u64| {
        let in_argument = tensors.iter().any(|x| {
            let start = x.storage().address();
            (start..start + x.storage().bytes() as u64).contains(&at)
        });
        (0x7000_0000_0000..1 << 48).contains(&at) && !in_argument
    };
    fresh(a) && fresh(b) && a % 256 == b % 256
}

/// The product without addresses.
fn nowhere(matmul: Matmul) -> Matmul {
    let nowhere = |matrix: Matrix| Matrix { address: 0, ..matrix };
    let (a, b, c) = (nowhere(matmul.a), nowhere(matmul.b), nowhere(matmul.c));
    Matmul { a, b, c, bias: matmul.bias.map(|_| 0), ..matmul }
}

#[test]
fn random_programs_launch_the_same_by_tape() {
    let (_turn, device) = recorder();
    for seed in 0..150 {
        for named in [false, true] {
            let (program, inputs) = program_of(seed, named, device);
            check(&program, &inputs, false, &[]);
            // Storage of their own, for results to take over.
            let own: Vec<RawTensor> = inputs.iter().map(|x| x.copied().unwrap()).collect();
            drop(inputs);
            if !writes_over_on_a_tape(&program) {
                check(&program, &own, true, &[]);
            }
        }
    }
}

/// Whether a tape writes a part of what the caller gives up in place, of which steps make a copy: what follows might ask for memory.
fn writes_over_on_a_tape(program: &Program) -> bool {
    program.plan.writes.iter().any(|write| write.on_gpu && !write.comes_last(&program.plan))
}

/// A graph of f32 inputs of these extents.
fn graph(inputs: &[&[usize]], build: impl FnOnce(&mut Graph, &[Val]) -> Vec<Val>) -> (Program, Vec<RawTensor>) {
    let mut graph = Graph::new("case");
    let vals: Vec<Val> =
        inputs.iter().enumerate().map(|(k, dims)| graph.input(&format!("x{k}"), DType::F32, dims.len())).collect();
    graph.outs = build(&mut graph, &vals);
    let graph = optimise::run(graph, optimise::Options::default());
    let tensors = inputs.iter().map(|dims| RawTensor::empty(DType::F32, dims, Device::recorder()).unwrap());
    (Program::new(&schedule::run(&graph, schedule::Options::default()), &[]), tensors.collect())
}

fn op(graph: &mut Graph, name: &str, args: &[Val], attrs: &[Attr]) -> Val {
    graph.push(Op::named(name), args, attrs.to_vec())
}

/// Three products with an activation behind each, the last of them a temporary of a reduction.
fn layers() -> (Program, Vec<RawTensor>) {
    graph(&[&[64, 64], &[64, 64], &[64, 64], &[64]], |g, x| {
        let mut h = x[0];
        for weight in [x[1], x[2], x[1]] {
            h = op(g, "matmul", &[h, weight], &[]);
            h = op(g, "tanh", &[h], &[]);
        }
        let biased = op(g, "linear", &[h, x[2], x[3]], &[]);
        vec![op(g, "softmax", &[biased], &[Attr::Int(-1)]), op(g, "sum_all", &[h], &[])]
    })
}

#[test]
fn products_launch_the_same_by_tape() {
    let (_turn, _device) = recorder();
    let (program, tensors) = layers();
    check(&program, &tensors, false, &[]);
    let turned: Vec<RawTensor> = tensors
        .iter()
        .map(|x| if x.shape().len() == 2 { x.with_layout(x.layout().transpose(0, 1).unwrap()) } else { x.clone() })
        .collect();
    check(&program, &turned, false, &[]);
}

/// Attention with dropout and its gradients, over heads of 64 halves.
fn attention_in_training(cotangent: RawTensor) -> (Program, Vec<RawTensor>) {
    let mut graph = Graph::new("case");
    let x: Vec<Val> = ["q", "k", "v"].map(|name| graph.input(name, DType::BF16, 4)).into();
    let turned = op(&mut graph, "transpose", &[x[1]], &[Attr::Int(-2), Attr::Int(-1)]);
    let scores = op(&mut graph, "matmul", &[x[0], turned], &[]);
    let weights = op(&mut graph, "softmax", &[scores], &[Attr::Int(-1)]);
    let p = graph.push(Op::named("constant"), &[], vec![Attr::Lit(Literal::Float(0.1)), Attr::DType(DType::F64)]);
    let dropped = op(&mut graph, "dropout", &[weights, p], &[Attr::Bool(true)]);
    graph.outs = vec![op(&mut graph, "matmul", &[dropped, x[2]], &[])];
    let graph = autodiff::run(graph, &Request { wrt: vec![0, 1, 2], seeds: vec![Seed::Input] });
    let graph = optimise::run(optimise::assume(&graph).unwrap(), optimise::Options::default());
    let program = Program::new(&schedule::run(&graph, schedule::Options::default()), &[]);
    let heads = || RawTensor::empty(DType::BF16, &[2, 3, 256, 64], Device::recorder()).unwrap();
    (program, vec![heads(), heads(), heads(), cotangent])
}

#[test]
fn attention_in_training_has_no_matrices_of_weights() {
    let (_turn, device) = recorder();
    let cotangent = RawTensor::empty(DType::BF16, &[2, 3, 256, 64], device).unwrap();
    let (program, tensors) = attention_in_training(cotangent);
    check(&program, &tensors, false, &[]);
    let refs: Vec<&RawTensor> = tensors.iter().collect();
    let call =
        Call { program: &program, tensors: &refs, given: &[], scalars: &[], host_ints: &[], device, bodies: &[] };
    let run = watch(device, || run_steps(&call, RECORDER).unwrap());
    let expected = ["s0_attention_drops", "s0_attention", "s0_attention_queries", "s0_attention_keys"];
    assert_eq!(names(&run.launches), expected);
}

#[test]
fn weights_that_the_way_back_needs_after_all_are_made_again() {
    let (_turn, device) = recorder();
    let crosswise = RawTensor::empty(DType::BF16, &[2, 3, 64, 256], device).unwrap();
    let crosswise = crosswise.with_layout(crosswise.layout().transpose(2, 3).unwrap());
    let (program, tensors) = attention_in_training(crosswise);
    check(&program, &tensors, false, &[]);
    let refs: Vec<&RawTensor> = tensors.iter().collect();
    let call =
        Call { program: &program, tensors: &refs, given: &[], scalars: &[], host_ints: &[], device, bodies: &[] };
    let run = watch(device, || run_steps(&call, RECORDER).unwrap());
    let names = names(&run.launches);
    assert_eq!(names[..2], ["s0_attention_drops", "s0_attention"]);
    assert!(names.iter().filter(|name| name.starts_with("s1_")).count() == 1, "{names:?}");
    assert!(!names[2..].iter().any(|name| name.contains("attention_")), "{names:?}");
    assert_eq!(names.iter().filter(|name| **name == "matmul").count(), 5, "{names:?}");
}

#[test]
fn scalars_and_random_numbers_are_those_of_the_call() {
    let (_turn, device) = recorder();
    let (program, tensors) = graph(&[&[5, 300]], |g, x| {
        let factor = g.scalar("factor", DType::F32);
        let scaled = op(g, "mul", &[x[0], factor], &[]);
        let p = g.scalar("p", DType::F64);
        let dropped = op(g, "dropout", &[scaled, p], &[Attr::Bool(true)]);
        vec![dropped, op(g, "dropout", &[dropped, p], &[Attr::Bool(true)])]
    });
    check(&program, &tensors, false, &[Scalar::Float(2.0), Scalar::Float(0.5)]);
    // Through the map of the program, as calls go: each finds the tape of the second and has its own scalar and numbers.
    let refs: Vec<&RawTensor> = tensors.iter().collect();
    let mut launches = Vec::new();
    for k in 0..4 {
        let scalars = [Scalar::Float(f64::from(k)), Scalar::Float(0.5)];
        let call = Call {
            program: &program,
            tensors: &refs,
            given: &[],
            scalars: &scalars,
            host_ints: &[],
            device,
            bodies: &[],
        };
        let by_map = watch(device, || {
            device.draw_blocks(10 * k as u64);
            run(&call, RECORDER).unwrap()
        });
        let by_steps = watch(device, || {
            device.draw_blocks(10 * k as u64);
            run_steps(&call, RECORDER).unwrap()
        });
        for (a, b) in by_steps.launches.iter().zip(&by_map.launches) {
            assert_alike(a, b, [by_steps.number, by_map.number], &tensors);
        }
        launches.push(by_map.launches);
    }
    assert!(launches.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn calls_of_changing_layout_find_their_own_tapes() {
    let (_turn, device) = recorder();
    let (program, tensors) = graph(&[&[64, 64], &[64, 64]], |g, x| {
        let sum = op(g, "add", &[x[0], x[1]], &[]);
        vec![op(g, "softmax", &[sum], &[Attr::Int(-1)])]
    });
    let x = &tensors[0];
    let odd = RawTensor::empty(DType::F32, &[64 * 64 + 1], device).unwrap();
    let odd = odd.with_layout(odd.layout().narrow(0, 1, 64 * 64).unwrap());
    let odd = odd.with_layout(odd.layout().reshape(&[64, 64]).unwrap().unwrap());
    let kinds = [
        [x.clone(), tensors[1].clone()],
        [x.with_layout(x.layout().transpose(0, 1).unwrap()), x.clone()],
        [odd.clone(), x.clone()],
        [x.clone(), x.clone()],
        [x.with_layout(x.layout().narrow(0, 0, 10).unwrap()), odd.with_layout(odd.layout().narrow(0, 3, 10).unwrap())],
    ];
    for _ in 0..4 {
        for kind in &kinds {
            let refs: Vec<&RawTensor> = kind.iter().collect();
            let call = Call {
                program: &program,
                tensors: &refs,
                given: &[],
                scalars: &[],
                host_ints: &[],
                device,
                bodies: &[],
            };
            let by_map = watch(device, || run(&call, RECORDER).unwrap());
            let by_steps = watch(device, || run_steps(&call, RECORDER).unwrap());
            assert_eq!(names(&by_map.launches), names(&by_steps.launches));
            for (a, b) in by_steps.launches.iter().zip(&by_map.launches) {
                assert_alike(a, b, [by_steps.number, by_map.number], kind);
            }
        }
    }
}

#[test]
fn what_layouts_that_come_again_get_is_compiled_before_they_are_taken_down() {
    let (_turn, device) = recorder();
    // A reduction of rows, and one of columns of what it gives.
    let (program, first) = graph(&[&[512, 64]], |g, x| {
        let rows = op(g, "softmax", &[x[0]], &[Attr::Int(-1)]);
        vec![rows, op(g, "sum", &[rows], &[Attr::Int(0)])]
    });
    let other = RawTensor::empty(DType::F32, &[512, 1000], device).unwrap();
    let of = |tensor| Call {
        program: &program,
        tensors: tensor,
        given: &[],
        scalars: &[],
        host_ints: &[],
        device,
        bodies: &[],
    };
    let (first, other) = ([&first[0]], [&other]);
    for call in [of(&first), of(&other)] {
        run_steps(&call, RECORDER).unwrap();
    }
    let shared = program.functions.count();
    make_ready_again(&of(&other), RECORDER).unwrap();
    let own = program.functions.count();
    assert!(own > shared);
    Tape::take_down(&of(&other), RECORDER).unwrap();
    assert_eq!(program.functions.count(), own);
}

/// The launches inside of graphs in the place of the graphs.
fn unfolded(launches: Vec<Recorded>) -> Vec<Recorded> {
    let unfold = |launch| match launch {
        Recorded::Graph { launches, .. } => launches,
        other => vec![other],
    };
    launches.into_iter().flat_map(unfold).collect()
}

/// Runs a call as its program does and step by step, and compares. Says how many launches, graphs counting as one, it was.
fn check_run(program: &Program, tensors: &[RawTensor], scalars: &[Scalar]) -> usize {
    let device = Device::recorder();
    let refs: Vec<&RawTensor> = tensors.iter().collect();
    let call = Call { program, tensors: &refs, given: &[], scalars, host_ints: &[], device, bodies: &[] };
    // The first call of all looks for what to compile, and copies what kernels cannot walk once more while it does.
    drop(run_steps(&call, RECORDER).unwrap());
    let by_steps = watch(device, || run_steps(&call, RECORDER).unwrap());
    let by_map = watch(device, || run(&call, RECORDER).unwrap());
    let launches = by_map.launches.len();
    let unfolded = unfolded(by_map.launches);
    assert_eq!(names(&unfolded), names(&by_steps.launches));
    for (a, b) in by_steps.launches.iter().zip(&unfolded) {
        assert_alike(a, b, [by_steps.number, by_map.number], tensors);
    }
    launches
}

#[test]
fn from_its_second_call_on_a_layout_is_one_graph() {
    let (_turn, _device) = recorder();
    let (program, tensors) = layers();
    let program = program.with_mode(Mode::ReduceOverhead);
    let plain = check_run(&program, &tensors, &[]);
    assert!(plain > 5);
    let others: Vec<RawTensor> = tensors.iter().map(|x| x.copied().unwrap()).collect();
    for tensors in [&tensors, &others, &tensors, &others] {
        assert_eq!(check_run(&program, tensors, &[]), 1);
    }
}

#[test]
fn random_programs_launch_the_same_as_graphs() {
    let (_turn, device) = recorder();
    for seed in 0..60 {
        let (program, inputs) = program_of(seed, true, device);
        let program = program.with_mode(Mode::ReduceOverhead);
        let others: Vec<RawTensor> = inputs
            .iter()
            .map(|x| {
                let all = RawTensor::empty(x.dtype(), &[x.storage().bytes() / x.dtype().bytes()], device).unwrap();
                all.with_layout(*x.layout())
            })
            .collect();
        for tensors in [&inputs, &inputs, &others, &inputs] {
            check_run(&program, tensors, &[]);
        }
    }
}

#[test]
fn random_programs_are_taken_down_as_the_arms_of_branches() {
    let (_turn, device) = recorder();
    check_arms(device);
}

#[test]
fn independent_launches_of_a_graph_do_not_wait_for_each_other() {
    let (_turn, _device) = recorder();
    let (program, tensors) = graph(&[&[64, 64], &[64, 64]], |g, x| {
        let products = [op(g, "matmul", &[x[0], x[1]], &[]), op(g, "matmul", &[x[1], x[0]], &[])];
        vec![op(g, "matmul", &products, &[])]
    });
    let program = program.with_mode(Mode::ReduceOverhead);
    check_run(&program, &tensors, &[]);
    check_run(&program, &tensors, &[]);
    let refs: Vec<&RawTensor> = tensors.iter().collect();
    let device = Device::recorder();
    let call =
        Call { program: &program, tensors: &refs, given: &[], scalars: &[], host_ints: &[], device, bodies: &[] };
    let again = watch(device, || run(&call, RECORDER).unwrap());
    let [Recorded::Graph { after, .. }] = &again.launches[..] else { panic!("{:?}", again.launches) };
    assert_eq!(after[..], [vec![], vec![], vec![0, 1]]);
}

#[test]
fn graphs_of_many_layouts_are_bounded() {
    let (_turn, device) = recorder();
    let (program, _) = graph(&[&[4, 4]], |g, x| {
        let down = op(g, "softmax", &[x[0]], &[Attr::Int(0)]);
        vec![op(g, "softmax", &[down], &[Attr::Int(1)])]
    });
    let program = program.with_mode(Mode::ReduceOverhead);
    let before = crate::cuda::graphs();
    for round in 0..3 {
        for n in 1..100 {
            let x = RawTensor::empty(DType::F32, &[n, 8], device).unwrap();
            check_run(&program, std::slice::from_ref(&x), &[]);
            // Other tests have a graph or two at the same time.
            assert!(crate::cuda::graphs() <= before + 20, "round {round}, {n}");
        }
    }
}

#[test]
fn results_of_a_graph_are_its_own() {
    let (_turn, device) = recorder();
    let (program, tensors) = layers();
    let program = program.with_mode(Mode::ReduceOverhead);
    let refs: Vec<&RawTensor> = tensors.iter().collect();
    let call =
        Call { program: &program, tensors: &refs, given: &[], scalars: &[], host_ints: &[], device, bodies: &[] };
    let kept: Vec<RawTensor> = (0..6).flat_map(|_| run(&call, RECORDER).unwrap()).collect();
    for (k, a) in kept.iter().enumerate() {
        let end = a.address() + a.storage().bytes() as u64;
        let apart = |b: &RawTensor| b.address() >= end || b.address() + b.storage().bytes() as u64 <= a.address();
        assert!(kept.iter().skip(k + 1).all(apart));
    }
}

#[test]
fn threads_share_the_graph_of_a_function() {
    let (_turn, device) = recorder();
    let (program, tensors) = layers();
    let program = program.with_mode(Mode::ReduceOverhead);
    let context = Context::get(RECORDER).unwrap();
    let refs: Vec<&RawTensor> = tensors.iter().collect();
    let call =
        Call { program: &program, tensors: &refs, given: &[], scalars: &[], host_ints: &[], device, bodies: &[] };
    run(&call, RECORDER).unwrap();
    run(&call, RECORDER).unwrap();
    context.recorded();
    let repeat = || {
        (0..100).for_each(|_| drop(run(&call, RECORDER).unwrap()));
    };
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(repeat))));
    let launches = context.recorded();
    assert_eq!(launches.len(), 800);
    // A result that is written in one launch of the graph is in no other: no two calls mixed their addresses.
    let last = |launch: &Recorded| match launch {
        Recorded::Graph { launches, .. } => launches.last().cloned(),
        other => panic!("{other:?}"),
    };
    let mut written: Vec<_> = launches.iter().filter_map(last).map(|launch| format!("{launch:?}")).collect();
    written.sort_unstable();
    written.dedup();
    assert_eq!(written.len(), 800);
}
