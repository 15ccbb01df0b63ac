//! Results that take over the storage of arguments their function gives up, and those that must not.

use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;

/// A matrix of distinct whole numbers.
fn matrix(rows: usize, columns: usize) -> Tensor<f32, 2> {
    let values: Vec<f32> = (0..rows * columns).map(|k| k as f32).collect();
    Tensor::from_vec(values, [rows, columns], Device::cpu())
}

fn address<T: Element, const R: usize>(x: &Tensor<T, R>) -> u64 {
    x.raw().address()
}

#[compile(fullgraph)]
fn step(p: &mut Tensor<f32, 2>, g: &Tensor<f32, 2>, lr: f32) {
    *p -= g * lr;
}

#[compile(fullgraph)]
fn scaled(x: Tensor<f32, 2>) -> Tensor<f32, 2> {
    x * 2.0 + 1.0
}

#[compile(fullgraph)]
fn rebound(mut x: Tensor<f32, 2>) -> Tensor<f32, 2> {
    x = x * 2.0;
    x
}

/// The last kernel reads the sums and not the argument, whose storage has the size of the result.
#[compile(fullgraph)]
fn after_last_use(x: Tensor<f32, 2>, y: &Tensor<f32, 2>) -> Tensor<i32, 2> {
    (x.cumsum(1).sum_keepdim(0) * y).cast::<i32>()
}

#[test]
fn an_owned_or_exclusive_argument_gives_its_storage() {
    let (mut p, g) = (matrix(3, 4), matrix(3, 4));
    let before = address(&p);
    for _ in 0..3 {
        step(&mut p, &g, 0.5);
        assert_eq!(address(&p), before);
    }
    assert_eq!(p.to_vec(), (matrix(3, 4) * -0.5).to_vec());
    for function in [scaled, rebound] {
        let x = matrix(3, 4);
        let before = address(&x);
        assert_eq!(address(&function(x)), before);
    }
    let x = matrix(3, 4);
    let before = address(&x);
    let y = after_last_use(x, &g);
    assert_eq!((address(&y), y.to_vec()), (before, after_last_use::eager(matrix(3, 4), &g).to_vec()));
}

#[test]
fn storage_that_something_else_holds_is_left_alone() {
    let (mut p, g) = (matrix(3, 4), matrix(3, 4));
    let kept = p.clone();
    step(&mut p, &g, 0.5);
    assert_ne!(address(&p), address(&kept));
    let part = kept.narrow(0, 1, 2);
    drop(kept);
    let x = part.clone();
    drop(scaled(x));
    assert_eq!(part.to_vec(), matrix(3, 4).narrow(0, 1, 2).to_vec());
    // The rest of the storage belongs to nobody, and the part that is dense in it may be taken.
    assert_eq!(scaled(part).to_vec(), scaled::eager(matrix(3, 4).narrow(0, 1, 2)).to_vec());
}

#[compile(fullgraph)]
fn transposed(x: Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.t() * 2.0
}

#[compile(fullgraph)]
fn plus_transposed(p: &mut Tensor<f32, 2>) {
    *p += p.t();
}

#[compile(fullgraph)]
fn plus_first_row(p: &mut Tensor<f32, 2>) {
    *p += p.narrow(0, 0, 1);
}

#[compile(fullgraph)]
fn flipped(p: &mut Tensor<f32, 2>) {
    *p = p.flip([0, 1]);
}

#[compile(fullgraph)]
fn running(p: &mut Tensor<f32, 2>) {
    *p = p.cumsum(0);
}

#[compile(fullgraph)]
fn normalised(p: &mut Tensor<f32, 2>) {
    *p = &*p / p.sum_keepdim(1);
}

#[compile(fullgraph)]
fn two_results(x: Tensor<f32, 2>) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
    (&x * 2.0, x + 1.0)
}

#[compile(fullgraph)]
fn both(x: Tensor<f32, 2>) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
    let y = &x * 2.0;
    (y, x)
}

#[compile(fullgraph)]
fn old_and_new(p: &mut Tensor<f32, 2>) -> Tensor<f32, 2> {
    let old = p.clone();
    *p *= 2.0;
    old
}

#[compile(fullgraph)]
fn swapped(p: &mut Tensor<f32, 2>, q: &mut Tensor<f32, 2>) {
    let old = p.clone();
    *p = &*q + 1.0;
    *q = old * 2.0;
}

#[compile]
fn read_again(p: &mut Tensor<f32, 2>) -> f32 {
    *p *= 2.0;
    println!("{:?}", p.dims());
    *p += 1.0;
    p.sum_all().item()
}

#[compile]
fn in_a_loop(x: Tensor<f32, 2>, turns: usize) -> Tensor<f32, 2> {
    let mut sum: Tensor<f32, 2> = Tensor::zeros([3, 3], x.device());
    for _ in 0..turns {
        sum = sum + &x * 2.0;
    }
    sum
}

#[compile]
fn kept_by_host_code(x: Tensor<f32, 2>) -> (Tensor<f32, 2>, f32) {
    let held = [&x];
    let y = &x * 2.0;
    (y, held[0].to_vec()[1])
}

/// Compares a function of one `&mut` argument with its eager twin.
macro_rules! same_write {
    ($($function:ident)*) => {$({
        let (mut got, mut want) = (matrix(3, 3), matrix(3, 3));
        $function(&mut got);
        $function::eager(&mut want);
        assert_eq!(got.to_vec(), want.to_vec(), stringify!($function));
    })*};
}

#[test]
fn what_is_read_elsewhere_or_later_keeps_its_values() {
    same_write!(plus_transposed plus_first_row flipped running normalised);
    assert_eq!(transposed(matrix(3, 3)).to_vec(), transposed::eager(matrix(3, 3)).to_vec());
    let results = [
        (two_results(matrix(3, 3)), two_results::eager(matrix(3, 3))),
        (both(matrix(3, 3)), both::eager(matrix(3, 3))),
    ];
    for ((a, b), (c, d)) in results {
        assert_eq!((a.to_vec(), b.to_vec()), (c.to_vec(), d.to_vec()));
    }
    let mut p = matrix(3, 3);
    assert_eq!(old_and_new(&mut p).to_vec(), matrix(3, 3).to_vec());
    assert_eq!(p.to_vec(), (matrix(3, 3) * 2.0).to_vec());
    let (mut p, mut q) = (matrix(3, 3), matrix(3, 3) * 10.0);
    swapped(&mut p, &mut q);
    assert_eq!((p.to_vec(), q.to_vec()), ((matrix(3, 3) * 10.0 + 1.0).to_vec(), (matrix(3, 3) * 2.0).to_vec()));
    let (mut p, mut q) = (matrix(3, 3), matrix(3, 3));
    assert_eq!((read_again(&mut p), p.to_vec()), (read_again::eager(&mut q), q.to_vec()));
    assert_eq!(in_a_loop(matrix(3, 3), 3).to_vec(), (matrix(3, 3) * 6.0).to_vec());
    let (y, second) = kept_by_host_code(matrix(3, 3));
    assert_eq!((y.to_vec(), second), ((matrix(3, 3) * 2.0).to_vec(), 1.0));
}

#[compile(fullgraph)]
fn fails_late(p: &mut Tensor<f32, 2>, w: &Tensor<f32, 2>, rows: &Tensor<i64, 1>) -> Result<(), Error> {
    *p = &*p * 2.0 + w.embedding(rows).cumsum(1).sum_keepdim(0);
    Ok(())
}

#[test]
fn a_call_that_fails_has_overwritten_nothing() {
    let (mut p, w) = (matrix(3, 4), matrix(2, 4));
    let before = address(&p);
    let bad = Tensor::from_vec(vec![0i64, 2], [2], Device::cpu());
    assert_eq!(fails_late(&mut p, &w, &bad).expect_err("2 is out of range").kind(), ErrorKind::Index);
    assert_eq!((address(&p), p.to_vec()), (before, matrix(3, 4).to_vec()));
    fails_late(&mut p, &w, &Tensor::from_vec(vec![0i64, 1], [2], Device::cpu())).expect("both are in range");
    assert_eq!(address(&p), before);
}

#[test]
fn an_update_in_place_takes_no_memory() {
    let device = recorder::device();
    let (mut p, g) = (Tensor::<f32, 2>::zeros([1000, 1000], device), Tensor::<f32, 2>::ones([1000, 1000], device));
    // The tests of this binary that use the recorder are this one.
    device.reset_peak_memory_stats().expect("the device counts");
    let before = device.memory_allocated().expect("the device counts");
    step(&mut p, &g, 0.5);
    assert_eq!(device.max_memory_allocated().expect("the device counts"), before);
    let kept = p.clone();
    step(&mut p, &g, 0.5);
    assert_eq!(device.max_memory_allocated().expect("the device counts"), before + 4_000_000);
    drop(kept);
    a_row_is_written_without_memory_for_the_rest(device);
}

#[compile(fullgraph)]
fn grow(
    #[dims(C, D)] cache: &mut Tensor<f32, 2>,
    #[dims(1)] place: &Tensor<i64, 1>,
    #[dims(C, D)] table: &Tensor<f32, 2>,
) {
    let row: Tensor<f32, 2> = table.embedding(place);
    cache.index_copy_(0, place, &row);
}

fn a_row_is_written_without_memory_for_the_rest(device: Device) {
    let [mut cache, table] = [(); 2].map(|()| Tensor::<f32, 2>::zeros([1000, 1000], device));
    let place = Tensor::from_slice(&[3], [1], device);
    // The first call goes step by step, and another call may fail behind each step.
    grow(&mut cache, &place, &table);
    cache.index_copy_(0, &place, &table.narrow(0, 3, 1));
    let start = cache.raw().address();
    for _ in 0..3 {
        device.reset_peak_memory_stats().expect("the device counts");
        let before = device.memory_allocated().expect("the device counts");
        grow(&mut cache, &place, &table);
        cache.index_copy_(0, &place, &table.narrow(0, 3, 1));
        assert!(device.max_memory_allocated().expect("the device counts") < before + 10_000);
        assert_eq!(cache.raw().address(), start);
    }
}
