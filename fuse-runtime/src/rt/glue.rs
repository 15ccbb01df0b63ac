//! What the host side of a compiled function needs: checks on entry, scalars, results of launches.

use super::{Scalar, scalar};
use crate::dtype::Element;
use crate::error::{self, Error, ErrorKind, OrRaise, Result};
use crate::raw::RawTensor;
use crate::tensor::Tensor;
use half::{bf16, f16};

/// The results of a launch; panics at the op's line with the error as payload.
#[track_caller]
pub fn launched<const N: usize>(results: Result<Vec<RawTensor>>) -> [RawTensor; N] {
    let results = results.or_raise();
    results
        .try_into()
        .unwrap_or_else(|results: Vec<RawTensor>| unreachable!("a graph of {N} results gave {}", results.len()))
}

/// Writes the new value of a tensor that the caller holds; it keeps the old one if the call that makes the new one fails.
#[track_caller]
pub fn replace<T: Element, const R: usize>(target: &mut Tensor<T, R>, value: Tensor<T, R>) {
    target.raw_mut().replace(value.into()).or_raise();
}

/// Runs the body of a function that returns a `Result`: what an op panics with is returned.
pub fn fallible<T, E: From<Error>>(body: impl FnOnce() -> std::result::Result<T, E>) -> std::result::Result<T, E> {
    error::catch(body)?
}

/// What may be a scalar of ops on tensors of `T`: a `T`, and beside halves an f32.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no scalar for a tensor of `{T}`",
    label = "`#[compile]` takes this for a `{T}`, since its type is not written where it is bound",
    note = "a tensor in a field or from a call needs an annotated binding, such as `let w: &Tensor<f32, 2> = &self.w;`"
)]
pub trait WeakScalar<T> {
    /// The value, exact.
    fn into_scalar(self) -> Scalar;
}

impl<T: Element> WeakScalar<T> for T {
    fn into_scalar(self) -> Scalar {
        scalar(self)
    }
}

impl WeakScalar<f16> for f32 {
    fn into_scalar(self) -> Scalar {
        scalar(self)
    }
}

impl WeakScalar<bf16> for f32 {
    fn into_scalar(self) -> Scalar {
        scalar(self)
    }
}

/// Reads a host scalar for ops on tensors of `T`; a literal that was bound to a variable takes its type from here.
pub fn weak_scalar<T, S: WeakScalar<T>>(value: S) -> Scalar {
    value.into_scalar()
}

/// A dim solved from an extent that `#[dims]` writes as `factor * dim + offset`.
#[track_caller]
pub fn solve_dim(function: &str, param: &str, axis: usize, dim: &str, extent: usize, factor: i64, offset: i64) -> i64 {
    let multiple = extent as i64 - offset;
    if multiple < 0 || multiple % factor != 0 {
        let text = format!("`{function}`: axis {axis} of `{param}` is {extent}, which no dim makes `{dim}`");
        error::raise(Error::new(ErrorKind::Shape, text));
    }
    multiple / factor
}

/// Checks an extent against what `#[dims]` says.
#[track_caller]
pub fn check_dim(function: &str, param: &str, axis: usize, dim: &str, extent: usize, expected: i64) {
    if extent as i64 != expected {
        let text = format!("`{function}`: axis {axis} of `{param}` is {extent}, but `{dim}` is {expected}");
        error::raise(Error::new(ErrorKind::Shape, text));
    }
}

/// Checks that a list of cotangents has one for each part of the result.
#[track_caller]
pub fn check_count(name: &str, cotangents: usize, parts: usize) {
    crate::tape::count(name, cotangents, parts).or_raise();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: impl FnOnce() -> i64) -> String {
        error::catch(body).expect_err("the check fails").to_string()
    }

    #[test]
    fn a_dim_check_names_function_parameter_dim_and_both_extents() {
        let wrong = || {
            check_dim("attend", "k", 1, "D", 3, 4);
            0
        };
        assert_eq!(message(wrong), "`attend`: axis 1 of `k` is 3, but `D` is 4");
    }

    #[test]
    fn a_dim_is_solved_from_its_multiple() {
        assert_eq!(solve_dim("qkv", "x", 1, "3 * D", 12, 3, 0), 4);
        let wrong = || solve_dim("qkv", "x", 1, "3 * D", 13, 3, 0);
        assert_eq!(message(wrong), "`qkv`: axis 1 of `x` is 13, which no dim makes `3 * D`");
    }

    #[test]
    fn an_op_that_fails_in_a_fallible_body_is_an_error() {
        let outcome: Result<()> = fallible(|| error::raise(Error::shape("add", "no")));
        assert_eq!(outcome.map_err(|error| error.kind()), Err(ErrorKind::Shape));
    }

    #[test]
    fn halves_take_scalars_in_single_precision() {
        let lr = 0.1;
        assert_eq!(weak_scalar::<bf16, _>(lr), Scalar::Float(f64::from(0.1f32)));
    }
}
