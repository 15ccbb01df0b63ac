//! A failure is an effect: what is computed and not used, or used in part, fails as it does op by op; what the original
//! does not compute fails nowhere.

mod common;

use common::device;
use fuse_runtime::prelude::*;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

type Ints = Tensor<i64, 1>;
type Row = Tensor<f32, 1>;

fn ints(values: &[i64]) -> Ints {
    Tensor::from_slice(values, [values.len()], device())
}

fn row(values: &[f32]) -> Row {
    Tensor::from_slice(values, [values.len()], device())
}

/// What an outcome is, as text, or the kind of its error. The original panics with an error where an op fails, on a GPU with
/// the read or the wait that comes next.
fn outcome<T: Debug>(call: impl FnOnce() -> Result<T, Error>) -> Result<String, ErrorKind> {
    // A GPU tells the next who waits of a fault, whoever called.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = || call().and_then(|value| device().synchronize().map(|()| value));
    let returned = catch_unwind(AssertUnwindSafe(waited)).unwrap_or_else(|panic| match panic.downcast::<Error>() {
        Ok(error) => Err(*error),
        Err(panic) => resume_unwind(panic),
    });
    returned.map(|value| format!("{value:?}")).map_err(|error| error.kind())
}

/// Calls the compiled function and the original: they must fail in the same way, or give the same.
macro_rules! both {
    ($function:ident($($arg:expr),*)) => {{
        let (compiled, eager) = (outcome(|| $function($($arg),*)), outcome(|| $function::eager($($arg),*)));
        assert_eq!(compiled, eager, stringify!($function));
        eager
    }};
}

#[compile]
fn unused(x: &Tensor<f32, 1>, at: &Tensor<i64, 1>) -> Result<Tensor<f32, 1>, Error> {
    let _ = x.index_select(0, at);
    Ok(x.exp())
}

#[compile]
fn unused_quotient(a: &Tensor<i64, 1>, b: &Tensor<i64, 1>) -> Result<Tensor<i64, 1>, Error> {
    let quotient = a / b;
    let rest = a.remainder(b);
    let unused = quotient + rest;
    let _ = unused + 1;
    Ok(a + b)
}

#[compile]
fn only_failing(x: &Tensor<f32, 1>, at: &Tensor<i64, 1>) -> Result<f32, Error> {
    let _ = x.gather(0, at);
    Ok(1.0)
}

#[compile]
fn unused_write(x: &Tensor<f32, 1>, at: &Tensor<i64, 1>) -> Result<Tensor<f32, 1>, Error> {
    let y = x.exp();
    let _ = y.scatter_add(0, at, x);
    Ok(y)
}

#[compile]
fn unused_loss(x: &Tensor<f32, 2>, at: &Tensor<i64, 1>) -> Result<Tensor<f32, 2>, Error> {
    let _ = x.cross_entropy(at);
    Ok(x * 2.0)
}

#[compile]
fn cut_away(a: &Tensor<i64, 1>, b: &Tensor<i64, 1>) -> Result<Tensor<i64, 1>, Error> {
    Ok((a / b).narrow(0, 0, 1) * 3)
}

#[compile]
fn cut_away_later(x: &Tensor<f32, 1>, at: &Tensor<i64, 1>) -> Result<Tensor<f32, 1>, Error> {
    let rows = x.index_select(0, at).relu() + 1.0;
    Ok(rows.narrow(0, 0, 1).exp())
}

#[compile]
fn cut_to_parts(x: &Tensor<f32, 1>, at: &Tensor<i64, 1>) -> Result<Tensor<f32, 1>, Error> {
    let [first, _] = x.index_select(0, at).chunk(0);
    Ok(first.sigmoid())
}

#[compile]
fn chosen(a: &Tensor<i64, 1>, b: &Tensor<i64, 1>) -> Result<Tensor<i64, 1>, Error> {
    Ok(b.ne(0).where_cond(a / b, a))
}

const BAD: [i64; 2] = [0, 7];
const GOOD: [i64; 2] = [1, 0];

#[test]
fn what_is_not_used_fails_all_the_same() {
    let (x, bad, good) = (row(&[1.0, 2.0]), ints(&BAD), ints(&GOOD));
    assert_eq!(both!(unused(&x, &bad)), Err(ErrorKind::Index));
    assert!(both!(unused(&x, &good)).is_ok());
    assert_eq!(both!(only_failing(&x, &bad)), Err(ErrorKind::Index));
    assert!(both!(only_failing(&x, &good)).is_ok());
    assert_eq!(both!(unused_write(&x, &bad)), Err(ErrorKind::Index));
    assert!(both!(unused_write(&x, &good)).is_ok());
    let logits = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0], [2, 2], device());
    assert_eq!(both!(unused_loss(&logits, &bad)), Err(ErrorKind::Index));
    assert!(both!(unused_loss(&logits, &good)).is_ok());
    assert!(both!(unused_quotient(&bad, &ints(&[1, 0]))).is_err());
    assert!(both!(unused_quotient(&bad, &ints(&[1, 2]))).is_ok());
}

#[test]
fn what_is_used_in_part_fails_as_a_whole() {
    let (x, bad, good) = (row(&[1.0, 2.0]), ints(&BAD), ints(&GOOD));
    assert!(both!(cut_away(&bad, &ints(&[1, 0]))).is_err());
    assert!(both!(cut_away(&bad, &ints(&[1, 2]))).is_ok());
    assert_eq!(both!(cut_away_later(&x, &bad)), Err(ErrorKind::Index));
    assert!(both!(cut_away_later(&x, &good)).is_ok());
    assert_eq!(both!(cut_to_parts(&x, &bad)), Err(ErrorKind::Index));
    assert!(both!(cut_to_parts(&x, &good)).is_ok());
    assert!(both!(chosen(&bad, &ints(&[1, 0]))).is_err());
}

#[compile]
fn one_arm_fails(a: &Tensor<i64, 1>, b: &Tensor<i64, 1>) -> Result<Tensor<i64, 1>, Error> {
    let first = a / b.maximum(1);
    Ok(if b.min_all().item() > 0 { first / b } else { first })
}

#[compile]
fn one_arm_draws(x: &Tensor<f32, 1>, seed: u64) -> Result<(Tensor<f32, 1>, Tensor<f32, 1>), Error> {
    device().manual_seed(seed);
    let first: Tensor<f32, 1> = Tensor::rand([2], device());
    let y = if x.sum_all().item() > 0.0 { x + Tensor::rand([2], device()) } else { x + &first };
    let last: Tensor<f32, 1> = Tensor::rand([2], device());
    Ok((y, last))
}

#[test]
fn an_arm_that_is_not_taken_has_no_effect() {
    let a = ints(&[4, 5]);
    assert!(both!(one_arm_fails(&a, &ints(&[1, 0]))).is_ok());
    assert!(both!(one_arm_fails(&a, &ints(&[1, 2]))).is_ok());
    for x in [row(&[1.0, 2.0]), row(&[-1.0, -2.0])] {
        assert!(both!(one_arm_draws(&x, 7)).is_ok());
    }
}
