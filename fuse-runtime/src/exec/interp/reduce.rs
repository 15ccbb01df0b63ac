//! Reductions of cells in the canonical orders.

use super::cells::Cell;
use super::loops::elements;
use crate::dtype::Element;
use crate::math as m;
use crate::reduce::{self, Accumulate, Ordered};
use crate::rt::vectorised;
use fuse_compiler::op::Reduction;
use fuse_compiler::types::DType;

/// Reduces the elements of `from` to one, in column order or in row order.
pub(super) fn reduce(kind: Reduction, column: bool, from: &Cell, to: Cell) -> Cell {
    match from.dtype() {
        DType::F32 => typed::<f32, f32>(kind, column, from, to),
        DType::F64 => typed::<f64, f64>(kind, column, from, to),
        DType::I64 => typed::<i64, i64>(kind, column, from, to),
        DType::I32 => typed::<i32, i64>(kind, column, from, to),
        DType::U8 => typed::<u8, i64>(kind, column, from, to),
        DType::Bool => typed::<bool, i64>(kind, column, from, to),
        other => unreachable!("{other} is no compute type"),
    }
    to
}

/// `A` is what sums of `T` are summed up in.
fn typed<T: Element + Ordered, A: Element + Accumulate>(kind: Reduction, column: bool, from: &Cell, to: Cell) {
    let x = elements::<T>(from);
    let n = x.len();
    vectorised(
        #[inline(always)]
        || match kind {
            Reduction::Sum if column => put(to, reduce::column_sum::<A>(n, |i| m::cast(x[i]))),
            Reduction::Sum => put(to, reduce::row_sum::<A>(n, |i| m::cast(x[i]))),
            Reduction::Prod if column => put(to, reduce::column_prod::<A>(n, |i| m::cast(x[i]))),
            Reduction::Prod => put(to, reduce::row_prod::<A>(n, |i| m::cast(x[i]))),
            Reduction::Max => put(to, reduce::max(n, |i| x[i])),
            Reduction::Min => put(to, reduce::min(n, |i| x[i])),
            Reduction::ArgMax => put(to, reduce::argmax(n, |i| x[i])),
            Reduction::ArgMin => put(to, reduce::argmin(n, |i| x[i])),
        },
    );
}

fn put<T: Element>(to: Cell, value: T) {
    assert_eq!(to.dtype(), T::DTYPE, "a reduction has the type of its accumulator");
    // SAFETY: the cell was made for one element of this type.
    unsafe { to.start_mut().cast::<T>().write(value) }
}
