//! The loops of the interpreter: one an op and element type, made from the Rust text of the op table.

use super::cells::Cell;
use crate::dtype::{Element, f8e4m3};
use crate::math as m;
use crate::rt::{Ins, Outs, scalar_as, vectorised};
use fuse_compiler::op::Literal;
use fuse_compiler::types::DType;
use half::{bf16, f16};

/// A loop over `n` elements of up to three operands.
///
/// Callers pass operands of the types the loop is for with `n` elements each, and a result that overlaps none of them.
pub(super) type Loop = unsafe fn([*const u8; 3], *mut u8, usize);

/// The loop of an op for some operand types.
struct Row {
    op: &'static str,
    args: &'static [DType],
    run: Loop,
}

/// A loop that computes each element by an expression.
macro_rules! elementwise {
    (|$($x:ident: $ty:ty),*| -> $out:ty { $($value:tt)* }) => {{
        #[allow(unused_assignments)]
        unsafe fn run(args: [*const u8; 3], out: *mut u8, n: usize) {
            let mut next = 0;
            $(
                // SAFETY: the operand has `n` elements of this type.
                let $x = unsafe { std::slice::from_raw_parts(args[next].cast::<$ty>(), n) };
                next += 1;
            )*
            // SAFETY: the result has room for `n` elements of its type and overlaps no operand.
            let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<$out>(), n) };
            vectorised(
                #[inline(always)]
                || {
                    for (i, out) in out.iter_mut().enumerate() {
                        let ($($x,)*) = ($($x[i],)*);
                        *out = { $($value)* };
                    }
                },
            );
        }
        run as Loop
    }};
}

/// Every elementwise op of the table for every compute type it accepts.
const ROWS: &[Row] = fuse_macros::elementwise_loops!();

/// The loop of an op for operands of these compute types.
pub(super) fn loop_of_op(op: &str, args: &[DType]) -> Loop {
    let row = ROWS.iter().find(|row| row.op == op && row.args == args);
    row.unwrap_or_else(|| panic!("`{op}` has no loop for {args:?}")).run
}

/// Calls `$body` with `$T` standing for the Rust type of a concrete element type other than bool.
macro_rules! with_number {
    ($dtype:expr, |$T:ident| $body:expr) => {
        with_number!($dtype, |$T| $body, F32: f32, F64: f64, F16: f16, BF16: bf16, F8E4M3: f8e4m3, I64: i64, I32: i32, U8: u8)
    };
    ($dtype:expr, |$T:ident| $body:expr, $($name:ident: $ty:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $T = $ty;
                $body
            })*
            other => unreachable!("{other} is no number of a plan that runs"),
        }
    };
}

/// The same for bool too.
macro_rules! with_element {
    ($dtype:expr, |$T:ident| $body:expr) => {
        match $dtype {
            DType::Bool => {
                type $T = bool;
                $body
            }
            number => with_number!(number, |$T| $body),
        }
    };
}

/// The elements of a cell.
pub(super) fn elements<T: Element>(cell: &Cell) -> &[T] {
    assert_eq!(cell.dtype(), T::DTYPE);
    // SAFETY: a cell holds `len` initialised elements of its type for as long as the run lasts.
    unsafe { std::slice::from_raw_parts(cell.start().cast(), cell.len()) }
}

/// The elements of a cell that was made for a result.
fn elements_mut<'a, T: Element>(cell: Cell) -> &'a mut [T] {
    assert_eq!(cell.dtype(), T::DTYPE);
    // SAFETY: as above; a result is written before anything else sees its cell.
    unsafe { std::slice::from_raw_parts_mut(cell.start_mut().cast(), cell.len()) }
}

/// Converts the elements of `from` to the type of `to`, by the rules of a cast.
pub(super) fn convert(from: &Cell, to: Cell) -> Cell {
    if from.dtype() == to.dtype() {
        assert_eq!(from.len(), to.len());
        // SAFETY: both hold as many elements of the same type, and a result overlaps nothing that is read.
        unsafe { std::ptr::copy_nonoverlapping(from.start(), to.start_mut(), from.len() * from.dtype().bytes()) };
        return to;
    }
    with_element!(from.dtype(), |A| with_element!(to.dtype(), |B| convert_elements(
        elements::<A>(from),
        elements_mut::<B>(to)
    )));
    to
}

fn convert_elements<A: Element, B: Element>(from: &[A], to: &mut [B]) {
    vectorised(
        #[inline(always)]
        || {
            for (to, &from) in to.iter_mut().zip(from) {
                *to = m::cast(from);
            }
        },
    );
}

/// Fills a result with a constant.
pub(super) fn fill(literal: Literal, to: Cell) {
    with_element!(to.dtype(), |T| elements_mut::<T>(to).fill(scalar_as(literal)));
}

/// Repeats the one element of `from`.
pub(super) fn spread(from: &Cell, to: Cell) {
    with_element!(to.dtype(), |T| elements_mut::<T>(to).fill(elements::<T>(from)[0]));
}

/// Whether an integer among the elements is zero.
pub(super) fn has_zero(cell: &Cell) -> bool {
    match cell.dtype() {
        DType::I64 => elements::<i64>(cell).contains(&0),
        DType::I32 => elements::<i32>(cell).contains(&0),
        DType::U8 => elements::<u8>(cell).contains(&0),
        _ => false,
    }
}

/// The position an index cell gives.
fn position(index: &Cell, i: usize) -> i64 {
    match index.dtype() {
        DType::I64 => elements::<i64>(index)[i],
        _ => i64::from(elements::<i32>(index)[i]),
    }
}

/// Reads a leaf at computed positions.
pub(super) fn gather(ins: &Ins<'_>, leaf: usize, index: &Cell, to: Cell) {
    with_element!(to.dtype(), |T| {
        let gather = ins.gather::<T>(leaf);
        for (i, out) in elements_mut::<T>(to).iter_mut().enumerate() {
            *out = gather.get(i, position(index, i));
        }
    });
}

/// Writes a store at computed positions.
pub(super) fn scatter(outs: &mut Outs<'_>, store: usize, add: bool, index: &Cell, value: &Cell) {
    macro_rules! place {
        ($T:ty, $method:ident) => {{
            let mut scatter = outs.scatter::<$T>(store);
            for (i, &x) in elements::<<$T as Element>::Compute>(value).iter().enumerate() {
                scatter.$method(i, position(index, i), <$T>::from_compute(x));
            }
        }};
    }
    match (outs.scatter_dtype(store), add) {
        (DType::Bool, true) => unreachable!("bools are not added"),
        (DType::Bool, false) => place!(bool, set),
        (dtype, true) => with_number!(dtype, |T| place!(T, add)),
        (dtype, false) => with_number!(dtype, |T| place!(T, set)),
    }
}

/// Sums up from the first element on.
pub(super) fn running_sum(from: &Cell, to: Cell) -> Cell {
    fn sum<A: Element, B: Element + m::Number>(from: &[A], to: &mut [B]) {
        let mut sum = B::ZERO;
        for (to, &x) in to.iter_mut().zip(from) {
            sum = sum.add(m::cast(x));
            *to = sum;
        }
    }
    with_element!(from.dtype(), |A| match to.dtype() {
        DType::F32 => sum(elements::<A>(from), elements_mut::<f32>(to)),
        DType::F64 => sum(elements::<A>(from), elements_mut::<f64>(to)),
        DType::I64 => sum(elements::<A>(from), elements_mut::<i64>(to)),
        other => unreachable!("no running sum is {other}"),
    });
    to
}

/// Random numbers at the positions of `at`.
pub(super) fn draw(at: &Cell, to: Cell, number: impl Fn(i64) -> f32) -> Cell {
    let numbers = elements_mut::<f32>(to).iter_mut().enumerate();
    numbers.for_each(|(i, out)| *out = number(position(at, i)));
    to
}
