//! Calls whose launches are replayed as a CUDA graph on a GPU; elsewhere they run as any call.

use crate::cases::*;
use crate::common::turn;
use fuse_runtime::Generator;
use fuse_runtime::rt::recorder::{self, Launch};
use std::thread;
use std::time::Duration;

#[compile(mode = "reduce-overhead")]
fn squared(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let y = x.matmul(x);
    &y * 1.0 + 0.0 * &y
}

#[compile(mode = "reduce-overhead")]
fn doubled_sum(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x * 2.0).sum_all()
}

#[compile(mode = "reduce-overhead")]
fn scaled(x: &Tensor<f32, 1>, scale: f32) -> Tensor<f32, 1> {
    let total = x.sum_all();
    x * scale + (&total - &total) + 1.0
}

#[compile(mode = "reduce-overhead")]
fn two_layers(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let h = x.matmul(w).relu();
    let centred = &h - &h.mean_keepdim(-1);
    centred.matmul(&w.t()).softmax(-1)
}

#[compile(mode = "reduce-overhead")]
fn dropped(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = x.dropout(0.2, true);
    &y * (y.sum_all() * 0.0 + 1.0)
}

#[compile(mode = "reduce-overhead")]
fn grown(x: &mut Tensor<f32, 1>) -> Tensor<f32, 0> {
    *x += 1.0;
    x.sum_all()
}

#[compile(mode = "reduce-overhead")]
fn halved(x: &Tensor<f32, 2>, limit: f32) -> Tensor<f32, 2> {
    let mut x: Tensor<f32, 2> = x.clone();
    while x.abs().max_all().item() > limit {
        x = x * 0.5;
    }
    x.gelu()
}

/// The state is read along rows and columns, and two of three tensors change.
#[compile(mode = "reduce-overhead")]
fn powers(
    #[dims(N, N)] x: &Tensor<f32, 2>,
    #[dims(N, N)] w: &Tensor<f32, 2>,
    limit: f32,
) -> (Tensor<f32, 2>, Tensor<f32, 0>) {
    let mut y = x.softmax(-1);
    let mut turns = y.sum_all() * 0.0;
    while y.abs().max_all().item() < limit {
        let next = y.matmul(w) + &y.t();
        turns = turns + 1.0;
        y = next * 1.5;
    }
    (y, turns)
}

/// What is new of either is made of both, and of like extents, so it may come to lie where the other one was.
#[compile]
fn crossed(a: &Tensor<f32, 1>, b: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let mut a: Tensor<f32, 1> = a.clone();
    let mut b: Tensor<f32, 1> = b.clone();
    while a.abs().max_all().item() > 1.0 {
        let next = &b * 0.5 + &a * 0.25;
        b = &a * 0.25 - &b * 0.5;
        a = next;
    }
    (a, b)
}

/// The arms are too much to compute both, and change a variable each.
#[compile(mode = "reduce-overhead")]
fn chosen(
    #[dims(N, N)] x: &Tensor<f32, 2>,
    #[dims(N, N)] w: &Tensor<f32, 2>,
    limit: f32,
) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
    let mut y = x.abs();
    let z = if y.mean_all().item() > limit {
        y = y.softmax(-1) * limit;
        y.t().softmax(0)
    } else {
        w.softmax(-1).cumsum(0) + x
    };
    if z.max_all().item() > 2.0 {
        y = y.softmax(0).cumsum(1);
    }
    (y + 1.0, z)
}

fn filled(n: usize, value: f32) -> Tensor<f32, 1> {
    Tensor::full([n], value, device())
}

fn matrix(values: [f32; 4]) -> Tensor<f32, 2> {
    Tensor::from_vec(values.to_vec(), [2, 2], device())
}

#[test]
fn case_120_results_are_not_overwritten_by_later_calls() {
    let first = matrix([1.0, 2.0, 3.0, 4.0]);
    (0..3).for_each(|_| drop(squared(&first)));
    let (y1, y2) = (squared(&first), squared(&matrix([0.0, 1.0, 1.0, 0.0])));
    let kept: Vec<_> = (0..10).map(|k| squared(&matrix([k as f32, 0.0, 0.0, 1.0]))).collect();
    assert_eq!((y1.to_vec(), y2.to_vec()), (vec![7.0, 10.0, 15.0, 22.0], vec![1.0, 0.0, 0.0, 1.0]));
    for (k, kept) in kept.iter().enumerate() {
        assert_eq!(kept.to_vec(), [(k * k) as f32, 0.0, 0.0, 1.0]);
    }
}

#[test]
fn case_122_arguments_at_other_addresses() {
    for k in 1..=5 {
        assert_eq!(doubled_sum(&filled(1000, k as f32)).item(), 2000.0 * k as f32);
    }
    let mut x = filled(1000, 1.0);
    assert_eq!(doubled_sum(&x).item(), 2000.0);
    x.copy_(&filled(1000, 7.0));
    assert_eq!(doubled_sum(&x).item(), 14000.0);
    // At an odd offset, where other accesses are chosen.
    let y = filled(1001, 3.0);
    for _ in 0..3 {
        assert_eq!(doubled_sum(&y.narrow(0, 1, 1000)).item(), 6000.0);
        assert_eq!(doubled_sum(&x).item(), 14000.0);
    }
}

#[test]
fn case_122_scalars_that_change() {
    let x = filled(1000, 3.0);
    for k in 0..6 {
        let scale = k as f32 * 0.5;
        assert_eq!(scaled(&x, scale).to_vec(), vec![3.0 * scale + 1.0; 1000]);
    }
}

#[test]
fn case_123_two_thousand_extents() {
    let in_use = || device().memory_allocated().unwrap();
    let warm = |n: usize| assert_eq!(scaled(&filled(n, 2.0), 2.0).to_vec(), vec![5.0; n], "{n}");
    (1..10).for_each(warm);
    let before = in_use();
    // Each extent twice in a row, so that there is something to replay.
    (1..=2000).flat_map(|n| [n, n]).for_each(warm);
    assert!(in_use() <= before + (200 << 20), "{before} bytes in use before, {} after", in_use());
}

#[test]
fn extents_and_addresses_alternate() {
    let (d, dims) = (device(), [(4, 8), (16, 8), (4, 32), (1, 8)]);
    let weights: Vec<Tensor<f32, 2>> = dims.iter().map(|&(_, k)| Tensor::randn([k, 24], d)).collect();
    for round in 0..6 {
        for (&(m, k), w) in dims.iter().zip(&weights) {
            let x = Tensor::<f32, 2>::randn([m, k], d);
            let (got, want) = (two_layers(&x, w).to_vec(), two_layers::eager(&x, w).to_vec());
            let near = got.iter().zip(&want).all(|(got, want)| (got - want).abs() <= 1e-5);
            assert!(near, "round {round}, {m} x {k}: {got:?} and not {want:?}");
        }
    }
}

#[test]
fn replayed_masks_are_fresh_and_repeat_with_the_seed() {
    let x = filled(4096, 1.0);
    (0..3).for_each(|_| drop(dropped(&x)));
    let five = |run: &dyn Fn(&Tensor<f32, 1>) -> Tensor<f32, 1>| {
        Generator::new(3).scope(|| (0..5).map(|_| run(&x).to_vec()).collect::<Vec<_>>())
    };
    let masks = five(&dropped);
    for (k, mask) in masks.iter().enumerate() {
        assert!(!masks[..k].contains(mask), "mask {k} was there before");
    }
    assert_eq!(five(&dropped), masks);
    assert_eq!(five(&dropped::eager), masks);
}

#[test]
fn replayed_writes_happen_once_a_call() {
    let mut x = filled(1000, 0.0);
    for k in 1..=6 {
        assert_eq!(grown(&mut x).item(), 1000.0 * k as f32);
    }
    let kept = x.clone();
    grown(&mut x);
    assert_eq!((kept.to_vec(), x.to_vec()), (vec![6.0; 1000], vec![7.0; 1000]));
}

#[test]
fn a_loop_on_the_device_is_that_of_the_host() {
    for (n, scale) in [(3, 0.1), (256, 30.0), (64, 1e4), (256, 1.0)] {
        let x = Tensor::<f32, 2>::randn([n, n], device()) * scale;
        for limit in [1.0, 0.25, 40.0] {
            assert_eq!(halved(&x, limit).to_vec(), halved::eager(&x, limit).to_vec(), "{n}, {scale}, {limit}");
        }
        let turned = x.t();
        assert_eq!(halved(&turned, 1.0).to_vec(), halved::eager(&turned, 1.0).to_vec(), "{n}, {scale}");
    }
    let [a, b] = [3.0, 50.0].map(|scale| Tensor::<f32, 1>::randn([1000], device()) * scale);
    let of_both = |(a, b): (Tensor<f32, 1>, Tensor<f32, 1>)| (a.to_vec(), b.to_vec());
    for _ in 0..3 {
        assert_eq!(of_both(crossed(&a, &b)), of_both(crossed::eager(&a, &b)));
    }
    let w = Tensor::<f32, 2>::full([16, 16], 0.0625, device());
    let x = Tensor::<f32, 2>::randn([16, 16], device());
    for limit in [0.0, 2.0, 100.0, 2.0] {
        let ((got, turns), (want, of_eager)) = (powers(&x, &w, limit), powers::eager(&x, &w, limit));
        assert_eq!(turns.item(), of_eager.item(), "turns up to {limit}");
        let near = |(got, want): (f32, f32)| (got - want).abs() <= 1e-4 * want.abs().max(1e-3);
        assert!(got.to_vec().into_iter().zip(want.to_vec()).all(near), "up to {limit}");
    }
}

#[test]
fn a_loop_is_one_graph() {
    if std::env::var_os("FUSE_MODE").is_some() {
        return println!("skipped: FUSE_MODE says how functions are called");
    }
    let _turn = turn();
    let device = recorder::device();
    let (x, w) = (Tensor::zeros([64, 64], device), Tensor::zeros([64, 64], device));
    let loops = |run: &dyn Fn()| {
        run();
        recorder::launches();
        run();
        let all = recorder::launches().into_iter();
        all.filter(|launch| launch.inside.iter().any(|inside| inside.kernel == "while")).collect::<Vec<_>>()
    };
    let kernels =
        |launches: &[Launch]| launches[0].inside.iter().map(|launch| launch.kernel.clone()).collect::<Vec<_>>();
    let of_halved = loops(&|| drop(halved(&x, 1.0)));
    assert_eq!(kernels(&of_halved).iter().filter(|kernel| *kernel == "while").count(), 1, "{of_halved:?}");
    // A turn is one launch, and there are several before the device is asked for more.
    let turns = &kernels(&of_halved)[2..];
    assert!(of_halved.len() == 1 && turns.len() == 4 && turns.iter().all(|turn| *turn == turns[0]), "{of_halved:?}");
    let state = Tensor::zeros([1000], device);
    let _ = loops(&|| drop(crossed(&state, &state)));
    let of_powers = loops(&|| drop(powers(&x, &w, 1.0)));
    assert!(kernels(&of_powers).iter().any(|kernel| kernel == "matmul"), "{of_powers:?}");
}

#[test]
fn a_branch_on_the_device_is_that_of_the_host() {
    let w = Tensor::<f32, 2>::randn([64, 64], device());
    for round in 0..4 {
        for scale in [0.1, 30.0, 1.0] {
            let x = Tensor::<f32, 2>::randn([64, 64], device()) * scale;
            for (x, limit) in [(&x, 0.8), (&x.t(), 0.8), (&x, 0.0)] {
                let ((y, z), (of_eager, other)) = (chosen(x, &w, limit), chosen::eager(x, &w, limit));
                assert_eq!(y.to_vec(), of_eager.to_vec(), "round {round}, {scale}, {limit}");
                assert_eq!(z.to_vec(), other.to_vec(), "round {round}, {scale}, {limit}");
            }
        }
    }
}

#[test]
fn a_branch_is_part_of_a_graph() {
    if std::env::var_os("FUSE_MODE").is_some() {
        return println!("skipped: FUSE_MODE says how functions are called");
    }
    let _turn = turn();
    let device = recorder::device();
    let (x, w) = (Tensor::zeros([48, 48], device), Tensor::zeros([48, 48], device));
    drop(chosen(&x, &w, 1.0));
    recorder::launches();
    drop(chosen(&x, &w, 1.0));
    let all = recorder::launches().into_iter();
    let branches = all.filter(|launch| launch.inside.first().is_some_and(|inside| inside.kernel == "if"));
    assert_eq!(branches.map(|launch| launch.inside.len() > 2).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn eight_threads_replay_the_same_and_different_functions() {
    let work = |thread: usize| {
        let x = filled(1000 + 8 * (thread % 3), thread as f32);
        let w = Tensor::<f32, 2>::full([8, 8], 0.5, device());
        for call in 0..50 {
            let n = x.numel() as f32;
            assert_eq!(doubled_sum(&x).item(), 2.0 * n * thread as f32, "thread {thread}, call {call}");
            assert_eq!(scaled(&x, call as f32).to_vec()[0], (thread * call) as f32 + 1.0);
            let rows = two_layers(&Tensor::full([thread + 1, 8], 1.0, device()), &w).to_vec();
            assert!(rows.iter().all(|value| (value - 0.125).abs() < 1e-6), "thread {thread}, call {call}: {rows:?}");
        }
    };
    thread::scope(|scope| (0..8).for_each(|thread| drop(scope.spawn(move || work(thread)))));
}

#[test]
fn case_132_ten_thousand_calls_in_constant_memory() {
    let x = filled(65536, 1.0);
    let in_use = || (device().memory_allocated().unwrap(), resident_bytes());
    let calls = |count: usize| (0..count).for_each(|_| drop((scaled(&x, 2.0), doubled_sum(&x))));
    calls(100);
    device().synchronize().unwrap();
    let before = in_use();
    calls(10_000);
    device().synchronize().unwrap();
    // Tests beside this one take memory for a while.
    let after = (0..1000)
        .map(|_| (thread::sleep(Duration::from_millis(10)), in_use()).1)
        .find(|after| after.0 <= before.0 + (1 << 20))
        .unwrap_or_else(in_use);
    assert!(after.0 <= before.0 + (1 << 20), "{} bytes of the device in use before, {} after", before.0, after.0);
    // Tests beside this one take memory of the host too.
    assert!(after.1 <= before.1 + (256 << 20), "{} bytes of the host in use before, {} after", before.1, after.1);
}

/// The memory of this process that is in RAM; 0 where there is no `/proc`.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok()).map_or(0, |kb| kb << 10)
}
