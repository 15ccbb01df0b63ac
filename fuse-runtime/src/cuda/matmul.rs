//! Products of matrices as the library sees them.
//!
//! The library stores columns one after another, we store rows. A row-major `C = A B` is the column-major
//! `C^T = B^T A^T` of the same bytes, so the operands change places and nothing is copied; an operand whose columns are
//! contiguous is a transposed one. A bias along the columns of `C` is then what the library adds along its rows.

use super::cublaslt::{Library, Recipe, Target};
use super::driver::{Backend, Context};
use super::trace::Traced;
use crate::env;
use crate::error::{Error, Result};
use crate::log::{self, Topic};
use fuse_compiler::types::DType;
use std::fmt;

/// `c = epilogue(a b)` for each of `batch` products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Matmul {
    /// The element type of both operands and the bias; sums are in f32, or f64 for f64.
    pub dtype: DType,
    /// The element type of the product: that of the operands, or f32 for halves.
    pub out_dtype: DType,
    /// How many products.
    pub batch: usize,
    /// Rows of `a` and `c`.
    pub m: usize,
    /// Columns of `b` and `c`.
    pub n: usize,
    /// Columns of `a`, rows of `b`.
    pub k: usize,
    /// The left operand, m by k.
    pub a: Matrix,
    /// The right operand, k by n.
    pub b: Matrix,
    /// The product, m by n, which overlaps nothing else.
    pub c: Matrix,
    /// The address of n values that are added to every row before the rounding.
    pub bias: Option<u64>,
    /// Whether relu is applied after the bias.
    pub relu: bool,
    /// Whether f32 operands may be rounded to TF32 (`precision = "high"`).
    pub tf32: bool,
    /// Whether the fastest algorithm is wanted, if it is known.
    pub tuned: bool,
}

/// Where a matrix, or a batch of them, lies; strides are in elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Matrix {
    /// The device address of the first element.
    pub address: u64,
    /// From one row to the next.
    pub row_stride: isize,
    /// From one column to the next.
    pub col_stride: isize,
    /// From one matrix of the batch to the next; 0 repeats one matrix.
    pub batch_stride: isize,
}

/// A product that the library can do, and how.
#[derive(Clone)]
pub(crate) struct Product {
    /// The product; where its matrices lie may be another time's.
    pub matmul: Matmul,
    problem: Problem,
    /// `None` on a recording context.
    recipe: Option<Recipe>,
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.matmul.fmt(f)
    }
}

impl Product {
    /// Launches it, or has it captured, on a stream of a GPU.
    pub(super) fn launch_on(&self, target: Target<'_>, matmul: &Matmul) -> Result<()> {
        let recipe = self.recipe.as_ref().expect("a product on a GPU has a recipe");
        match recipe.run(target, self.problem, matmul)? {
            true => Ok(()),
            false => Err(Error::driver("cuda: cuBLASLt does not multiply matrices that it has multiplied before")),
        }
    }

    /// The library, if its scratch memory is used.
    pub(super) fn workspace(&self) -> Option<&Library> {
        self.recipe.as_ref().and_then(Recipe::workspace)
    }

    /// Whether it uses memory that all such products use.
    pub(crate) fn uses_workspace(&self) -> bool {
        self.workspace().is_some()
    }
}

impl Context {
    /// Multiplies with the library. `false` means that it is not installed or cannot do this, and nothing was launched.
    pub(crate) fn matmul(&self, matmul: &Matmul) -> Result<bool> {
        let Some(product) = self.product(matmul)? else { return Ok(false) };
        if let Backend::Tracing(tracer) = &self.backend {
            tracer.note(Traced::Product(Box::new(product)));
            return Ok(true);
        }
        self.make_current()?;
        self.multiply(&product, matmul)
    }

    /// How the library would multiply, if it can.
    pub(crate) fn product(&self, matmul: &Matmul) -> Result<Option<Product>> {
        let Some(problem) = Problem::of(matmul) else { return Ok(None) };
        let recipe = match &self.backend {
            Backend::Real(real) => match self.recipe(real, problem)? {
                None => return Ok(None),
                known => known,
            },
            Backend::Recording(_) if env::is_without("cublaslt") => return Ok(None),
            Backend::Recording(_) => None,
            Backend::Tracing(tracer) => return tracer.target().product(matmul),
        };
        Ok(Some(Product { matmul: *matmul, problem, recipe }))
    }

    /// Multiplies matrices that lie like those of a product, but perhaps elsewhere; the context is current. `false` means that
    /// the library cannot do it after all, and nothing was launched.
    pub(crate) fn multiply(&self, product: &Product, matmul: &Matmul) -> Result<bool> {
        let done = match (&self.backend, &product.recipe) {
            (Backend::Real(real), Some(recipe)) => {
                recipe.run(Target { context: self, real, stream: self.stream(real) }, product.problem, matmul)?
            }
            (Backend::Recording(recorder), _) => {
                recorder.multiply(self.lane(), matmul);
                true
            }
            _ => unreachable!("a product belongs to the context that it was prepared for"),
        };
        if done {
            log::line(Topic::Launch, format_args!("library {:?}", product.problem));
        }
        Ok(done)
    }
}

/// Everything the choice of an algorithm depends on: a [`Matmul`] without its addresses, in the library's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Problem {
    pub(super) dtype: DType,
    pub(super) out_dtype: DType,
    pub(super) tf32: bool,
    pub(super) tuned: bool,
    pub(super) bias: bool,
    pub(super) relu: bool,
    pub(super) batch: i32,
    /// From our `b`.
    pub(super) left: Stored,
    /// From our `a`.
    pub(super) right: Stored,
    /// Our `c`.
    pub(super) out: Stored,
}

/// A column-major matrix in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stored {
    /// Whether the product wants it the other way round.
    pub(super) transposed: bool,
    /// Rows as stored: the contiguous extent.
    pub(super) rows: u64,
    /// Columns as stored.
    pub(super) cols: u64,
    /// From one stored column to the next, in elements.
    pub(super) leading: i64,
    /// From one matrix of the batch to the next, in elements.
    pub(super) batch_stride: i64,
    /// The largest power of two up to 256 that divides the address.
    pub(super) alignment: u32,
}

impl Problem {
    /// The problem, unless the library has no such type or layout, or there is nothing to multiply.
    pub(super) fn of(matmul: &Matmul) -> Option<Problem> {
        let Matmul { dtype, out_dtype, m, n, k, bias, relu, tf32, tuned, .. } = *matmul;
        let multiplies = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
        let gives = out_dtype == dtype || (dtype.is_half() && out_dtype == DType::F32);
        if !multiplies || !gives || [m, n, k, matmul.batch].contains(&0) {
            return None;
        }
        let (left, right) = (Stored::of(&matmul.b, k, n)?, Stored::of(&matmul.a, m, k)?);
        let out = Stored::of(&matmul.c, m, n).filter(|out| !out.transposed)?;
        // Away from its fastest paths, which want runs of 16 bytes, the library rounds a product of halves before it adds
        // the bias.
        let rounds_once = !dtype.is_half() || [left, right, out].iter().all(Stored::is_in_runs);
        let batch = i32::try_from(matmul.batch).ok().filter(|_| bias.is_none() || rounds_once)?;
        let tf32 = tf32 && dtype == DType::F32;
        Some(Problem { dtype, out_dtype, tf32, tuned, bias: bias.is_some(), relu, batch, left, right, out })
    }
}

impl Stored {
    /// Whether a matrix of halves lies in runs of 16 bytes.
    fn is_in_runs(&self) -> bool {
        self.leading % 8 == 0 && self.batch_stride % 8 == 0 && self.alignment >= 16
    }

    /// A `rows` by `cols` matrix of ours: its rows are the library's columns, or the other way round if they are not
    /// contiguous. `None` if neither direction is.
    fn of(matrix: &Matrix, rows: usize, cols: usize) -> Option<Stored> {
        let by_row =
            leading(matrix.row_stride, rows, matrix.col_stride, cols).map(|leading| (false, cols, rows, leading));
        let by_col =
            || leading(matrix.col_stride, cols, matrix.row_stride, rows).map(|leading| (true, rows, cols, leading));
        let (transposed, inner, outer, leading) = by_row.or_else(by_col)?;
        let batch_stride = i64::try_from(matrix.batch_stride).ok().filter(|&stride| stride >= 0)?;
        let alignment = 1 << matrix.address.trailing_zeros().min(8);
        Some(Stored { transposed, rows: inner as u64, cols: outer as u64, leading, batch_stride, alignment })
    }
}

/// The stride between contiguous runs of `inner` elements, if they are contiguous and do not overlap. The stride of an
/// extent of one is never used, so any will do.
fn leading(outer_stride: isize, outer: usize, inner_stride: isize, inner: usize) -> Option<i64> {
    let contiguous = inner == 1 || inner_stride == 1;
    let stride = if outer == 1 { inner as i64 } else { outer_stride as i64 };
    (contiguous && stride >= inner as i64).then_some(stride)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Recorded;

    fn matrix(row_stride: isize, col_stride: isize) -> Matrix {
        Matrix { address: 0x1000, row_stride, col_stride, batch_stride: 0 }
    }

    /// A 2 by 4 product over 3 of row-major matrices.
    fn small() -> Matmul {
        let (a, b, c) = (matrix(3, 1), matrix(4, 1), matrix(4, 1));
        Matmul {
            dtype: DType::F32,
            out_dtype: DType::F32,
            batch: 1,
            m: 2,
            n: 4,
            k: 3,
            a,
            b,
            c,
            bias: None,
            relu: false,
            tf32: false,
            tuned: false,
        }
    }

    #[test]
    fn row_major_operands_change_places_and_are_not_transposed() {
        let problem = Problem::of(&small()).unwrap();
        let extents = |stored: Stored| (stored.transposed, stored.rows, stored.cols, stored.leading);
        assert_eq!(extents(problem.left), (false, 4, 3, 4));
        assert_eq!(extents(problem.right), (false, 3, 2, 3));
        assert_eq!(extents(problem.out), (false, 4, 2, 4));
    }

    #[test]
    fn a_transposed_view_is_a_transposed_operand() {
        let weight = matrix(1, 8);
        let problem = Problem::of(&Matmul { b: weight, ..small() }).unwrap();
        assert_eq!((problem.left.transposed, problem.left.rows, problem.left.leading), (true, 3, 8));
    }

    #[test]
    fn vectors_have_whatever_stride_their_unused_axis_says() {
        let row = Matmul { m: 1, a: matrix(0, 1), ..small() };
        assert_eq!(Problem::of(&row).unwrap().right.leading, 3);
        let column = Matmul { n: 1, b: matrix(5, 77), c: matrix(1, 0), ..small() };
        assert_eq!(Problem::of(&column).unwrap().left.leading, 5);
    }

    #[test]
    fn what_the_library_cannot_express_is_declined() {
        let declined = [
            Matmul { a: matrix(6, 2), ..small() },
            Matmul { b: matrix(0, 1), ..small() },
            Matmul { b: matrix(-4, 1), ..small() },
            Matmul { c: matrix(1, 2), ..small() },
            Matmul { dtype: DType::I32, out_dtype: DType::I32, ..small() },
            Matmul { out_dtype: DType::BF16, ..small() },
            Matmul { k: 0, ..small() },
        ];
        let context = Context::recording("sm_90a");
        for matmul in declined {
            assert!(!context.matmul(&matmul).unwrap(), "{matmul:?}");
        }
        assert!(context.matmul(&small()).unwrap());
        assert_eq!(context.recorded(), [Recorded::Matmul(small())]);
    }

    #[test]
    fn a_bias_is_added_to_halves_where_they_lie_in_runs() {
        let halves = Matmul { dtype: DType::BF16, out_dtype: DType::BF16, bias: Some(0x2000), ..small() };
        assert_eq!(Problem::of(&halves), None);
        assert!(Problem::of(&Matmul { bias: None, ..halves }).is_some());
        let (a, b, c) = (matrix(16, 1), matrix(8, 1), matrix(8, 1));
        assert!(Problem::of(&Matmul { k: 16, n: 8, a, b, c, ..halves }).is_some());
    }

    #[test]
    fn addresses_count_by_their_alignment_only() {
        let at = |address| {
            Problem::of(&Matmul { a: Matrix { address, ..matrix(3, 1) }, ..small() }).unwrap().right.alignment
        };
        assert_eq!((at(0x1004), at(0x1010), at(0x4000)), (4, 16, 256));
    }
}
