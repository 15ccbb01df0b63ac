//! Writes to `&mut` and owned tensors under `#[compile]`.

mod common;

use common::{device, turn};
use fuse_runtime::prelude::*;

fn row(values: &[f32]) -> Tensor<f32, 1> {
    Tensor::from_slice(values, [values.len()], device())
}

#[compile(fullgraph)]
fn update(p: &mut Tensor<f32, 1>, g: &Tensor<f32, 1>, lr: f32) -> Tensor<f32, 0> {
    let before = p.clone();
    *p -= g * lr;
    p.slice_assign(0, 0, 1, &before.slice(0, 1, 2));
    (&*p - &before).abs().sum_all()
}

#[test]
fn writes_through_a_reference_come_back() {
    let _turn = turn();
    let g = row(&[1.0, 2.0, 3.0]);
    let (mut a, mut b) = (row(&[1.0, 2.0, 3.0]), row(&[1.0, 2.0, 3.0]));
    let kept = a.clone();
    let (compiled, eager) = (update(&mut a, &g, 0.5), update::eager(&mut b, &g, 0.5));
    assert_eq!((compiled.item(), a.to_vec()), (eager.item(), b.to_vec()));
    assert_eq!(kept.to_vec(), [1.0, 2.0, 3.0]);
}

#[compile]
fn update_then_fail(p: &mut Tensor<f32, 1>, g: &Tensor<f32, 1>) -> Result<(), Error> {
    *p += 1.0;
    if p.size(0) == 2 {
        return Err(Error::shape("update", "two"));
    }
    *p += g;
    Ok(())
}

#[test]
fn a_write_before_an_early_return_is_done_and_a_failing_one_is_not() {
    let _turn = turn();
    let (mut a, mut b) = (row(&[1.0, 2.0]), row(&[1.0, 2.0]));
    assert!(update_then_fail(&mut a, &row(&[1.0])).is_err());
    assert!(update_then_fail::eager(&mut b, &row(&[1.0])).is_err());
    assert_eq!((a.to_vec(), b.to_vec()), (vec![2.0, 3.0], vec![2.0, 3.0]));
    let mut c = row(&[1.0, 2.0, 3.0]);
    assert!(update_then_fail(&mut c, &row(&[1.0, 2.0])).is_err());
    assert_eq!(c.to_vec(), [1.0, 2.0, 3.0]);
}

#[compile(backend = "eager")]
fn write_and_fail(
    p: &mut Tensor<f32, 1>,
    list: &mut Vec<Tensor<f32, 1>>,
    parts: &mut [Tensor<f32, 1>],
    g: &Tensor<f32, 1>,
) -> Result<(), Error> {
    *p += 1.0;
    p.slice_assign(0, 0, 1, &p.slice(0, 1, 2));
    list[0].copy_(p);
    list.push(p.clone());
    parts[1] *= 2.0;
    *p += g;
    Ok(())
}

#[compile]
fn write_between_graphs_and_fail(
    p: &mut Tensor<f32, 1>,
    list: &mut Vec<Tensor<f32, 1>>,
    parts: &mut [Tensor<f32, 1>],
    g: &Tensor<f32, 1>,
) -> Result<(), Error> {
    *p += 1.0;
    println!("{:?}", p.dims());
    list[0].copy_(p);
    list.push(p.clone());
    parts[1] *= 2.0;
    *p += g;
    Ok(())
}

#[test]
fn a_call_in_which_an_op_fails_has_changed_no_tensor() {
    let _turn = turn();
    for fail in [write_and_fail, write_between_graphs_and_fail] {
        let one = || row(&[1.0, 2.0, 3.0]);
        let (mut p, mut list, mut parts) = (one(), vec![one()], [one(), one()]);
        let kept = p.clone();
        assert!(fail(&mut p, &mut list, &mut parts, &row(&[1.0, 2.0])).is_err());
        let all = [&p, &kept, &list[0], &parts[0], &parts[1]];
        assert!(all.iter().all(|tensor| tensor.to_vec() == [1.0, 2.0, 3.0]), "{all:?}");
        assert_eq!(list.len(), 1);
        assert!(fail(&mut p, &mut list, &mut parts, &row(&[1.0, 2.0, 3.0])).is_ok());
        assert_eq!((list.len(), parts[1].to_vec()), (2, vec![2.0, 4.0, 6.0]));
        assert_eq!(kept.to_vec(), [1.0, 2.0, 3.0]);
    }
}

#[compile]
fn owned(mut x: Tensor<f32, 1>, y: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let old = x.clone();
    x.copy_(y);
    let n = x.size(0) as isize;
    x.slice_assign(0, n - 1, n, &Tensor::full([1], 9.0, x.device()));
    println!("{:?}", x.dims());
    x *= 2.0;
    (x, old)
}

#[test]
fn owned_tensors_are_values() {
    let _turn = turn();
    let (x, y) = (row(&[1.0, 2.0]), row(&[3.0, 4.0]));
    let (a, b) = owned(x.clone(), &y);
    let (c, d) = owned::eager(x, &y);
    assert_eq!((a.to_vec(), b.to_vec()), (c.to_vec(), d.to_vec()));
    assert_eq!(a.to_vec(), [6.0, 18.0]);
}

/// Two caches get a row each at a position on the device.
#[compile(fullgraph)]
fn grow(
    #[dims(C, D)] a: &mut Tensor<f32, 2>,
    #[dims(C, D)] b: &mut Tensor<f32, 2>,
    #[dims(1)] place: &Tensor<i64, 1>,
    #[dims(C, D)] table: &Tensor<f32, 2>,
) -> Tensor<f32, 1> {
    let row: Tensor<f32, 2> = table.embedding(place);
    a.index_copy_(0, place, &row);
    let sums = a.sum(0).unsqueeze(0);
    b.index_copy_(0, place, &sums);
    (&*a + &*b).sum(0)
}

/// The same at two positions, the second of which is looked at when the first row is written.
#[compile(fullgraph)]
fn grow_apart(
    a: &mut Tensor<f32, 2>,
    b: &mut Tensor<f32, 2>,
    place: &Tensor<i64, 1>,
    other: &Tensor<i64, 1>,
    rows: &Tensor<f32, 2>,
) -> Tensor<f32, 1> {
    a.index_copy_(0, place, rows);
    b.index_copy_(0, other, rows);
    (&*a + &*b).sum(0)
}

/// A row at a position that the host knows, of a table in which it is looked up at one that it does not.
#[compile(fullgraph)]
fn grow_at(a: &mut Tensor<f32, 2>, at: isize, table: &Tensor<f32, 2>, token: &Tensor<i64, 1>) -> Tensor<f32, 1> {
    let row: Tensor<f32, 2> = table.embedding(token);
    a.slice_assign(0, at, at + 1, &row.softmax(1));
    a.sum(0)
}

fn three_columns(rows: usize, of: impl Fn(usize) -> f32) -> Tensor<f32, 2> {
    Tensor::from_slice(&(0..rows * 3).map(of).collect::<Vec<_>>(), [rows, 3], device())
}

fn at(places: &[i64]) -> Tensor<i64, 1> {
    Tensor::from_slice(places, [places.len()], device())
}

/// Whether a call fails, at once or when what it gives is read.
fn fails(call: impl FnOnce() -> Tensor<f32, 1>) -> bool {
    fuse_runtime::error::catch(|| call().to_vec()).is_err()
}

#[test]
fn rows_written_into_caches_are_those_that_eager_writes() {
    let _turn = turn();
    let table = three_columns(4, |k| k as f32);
    let [mut a, mut b, mut c, mut d] = [0, 1, 0, 1].map(|k| three_columns(4, |_| k as f32));
    for k in [2, 0, 3, 3, 1] {
        let (compiled, eager) =
            (grow(&mut a, &mut b, &at(&[k]), &table), grow::eager(&mut c, &mut d, &at(&[k]), &table));
        assert_eq!(compiled.to_vec(), eager.to_vec(), "{k}");
        assert_eq!((a.to_vec(), b.to_vec()), (c.to_vec(), d.to_vec()), "{k}");
        let places = [at(&[k, 0]), at(&[1, k])];
        let rows = table.narrow(0, 1, 2);
        let compiled = grow_apart(&mut a, &mut b, &places[0], &places[1], &rows);
        let eager = grow_apart::eager(&mut c, &mut d, &places[0], &places[1], &rows);
        assert_eq!(compiled.to_vec(), eager.to_vec(), "{k}");
        let (compiled, eager) =
            (grow_at(&mut a, k as isize, &table, &at(&[2])), grow_at::eager(&mut c, k as isize, &table, &at(&[2])));
        assert_eq!(compiled.to_vec(), eager.to_vec(), "{k}");
        assert_eq!((a.to_vec(), b.to_vec()), (c.to_vec(), d.to_vec()), "{k}");
    }
}

#[test]
fn caches_of_a_call_that_fails_are_as_they_were() {
    let _turn = turn();
    let table = three_columns(4, |k| k as f32);
    let [mut a, mut b] = [0, 1].map(|k| three_columns(4, |_| k as f32));
    for bad in [-1, 4] {
        for k in 0..4 {
            drop(grow(&mut a, &mut b, &at(&[k]), &table));
            drop(grow_apart(&mut a, &mut b, &at(&[k]), &at(&[0]), &table.narrow(0, 2, 1)));
            drop(grow_at(&mut a, k as isize, &table, &at(&[1])));
            a.index_copy_(0, &at(&[0]), &table.narrow(0, 1, 1));
            let before = (a.to_vec(), b.to_vec());
            assert!(fails(|| grow(&mut a, &mut b, &at(&[bad]), &table)));
            assert_eq!((a.to_vec(), b.to_vec()), before, "at {bad}, after {k}");
            assert!(fails(|| grow_apart(&mut a, &mut b, &at(&[1]), &at(&[bad]), &table.narrow(0, 0, 1))));
            assert_eq!((a.to_vec(), b.to_vec()), before, "second at {bad}, after {k}");
            assert!(fails(|| grow_apart(&mut a, &mut b, &at(&[1, bad]), &at(&[0, 1]), &table.narrow(0, 0, 2))));
            assert_eq!((a.to_vec(), b.to_vec()), before, "one of two at {bad}, after {k}");
            assert!(fails(|| grow_at(&mut a, 1, &table, &at(&[bad]))));
            assert_eq!((a.to_vec(), b.to_vec()), before, "of row {bad}, after {k}");
            let index = at(&[2, bad]);
            assert!(fails(|| {
                a.index_copy_(0, &index, &table.narrow(0, 0, 2));
                a.sum(0)
            }));
            assert_eq!((a.to_vec(), b.to_vec()), before, "eager at {bad}, after {k}");
        }
    }
}

#[test]
fn caches_stay_where_they_are() {
    let _turn = turn();
    let table = three_columns(4, |k| k as f32);
    let [mut a, mut b] = [0, 1].map(|k| three_columns(4, |_| k as f32));
    // A GPU takes down the second call, the first one copies.
    let mut step = |k: i64| {
        drop(grow(&mut a, &mut b, &at(&[k]), &table));
        b.index_copy_(0, &at(&[k]), &table.narrow(0, 1, 1));
        // Every position is a call of its own, and a GPU copies where something is computed behind the write.
        if device().is_cpu() {
            drop(grow_at(&mut a, k as isize, &table, &at(&[1])));
        }
        [a.raw().address(), b.raw().address()]
    };
    let early = [step(0), step(1)];
    if device().is_cpu() {
        assert_eq!(early[0], early[1]);
    }
    assert_eq!([step(2), step(3)], [early[1]; 2]);
    let kept = a.clone();
    let before = a.to_vec();
    drop(grow(&mut a, &mut b, &at(&[0]), &table));
    assert_ne!(a.raw().address(), kept.raw().address());
    assert_eq!(kept.to_vec(), before);
}
