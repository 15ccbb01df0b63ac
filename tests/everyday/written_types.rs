//! Numbers and constructors whose types are written in the code, and items wherever they stand.

use super::*;

#[compile(backend = "eager")]
fn fails_op_by_op(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> Result<Tensor<f32, 1>, Box<dyn std::error::Error>> {
    Ok(x + w)
}

#[compile]
fn fails_with_an_open_rank<const R: usize>(x: &Tensor<f32, R>, w: &Tensor<f32, R>) -> Result<Tensor<f32, R>, Error> {
    Ok(x + w)
}

#[compile]
const fn constant(n: usize) -> usize {
    n + 1
}

#[test]
fn failures_of_ops_become_results_op_by_op() {
    let (x, w) = (row(&[1.0, 2.0, 3.0]), row(&[1.0, 2.0]));
    let text = "`add`: extents 3 and 2 neither are equal nor is one of them 1";
    assert_eq!(fails_op_by_op(&x, &w).unwrap_err().to_string(), text);
    assert_eq!(fails_with_an_open_rank(&x, &w).unwrap_err().to_string(), text);
    assert_eq!(constant(2), 3);
}
