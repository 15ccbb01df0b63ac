//! Products of few rows with a matrix whose columns are dense: sums along the inner axis, so that nothing is turned around.

use super::kernel::Multiply;
use super::lanes::Lanes;
use crate::math::Number;

/// Up to so many rows, turning the right operand would take longer than what it is for.
pub(in crate::exec::cpu) const DOT_ROWS: usize = 16;

/// What is added to some rows of the product at a time.
pub(super) struct Dots<A> {
    /// The left operand, rows [`Multiply::DOT_PITCH`] apart.
    pub left: *const A,
    pub rows: usize,
    /// The first of the dense columns of the right operand, and how far they are apart.
    pub right: *const A,
    pub distance: isize,
    pub columns: usize,
    /// How many inner positions there are.
    pub depth: usize,
    /// The product, dense.
    pub out: *mut A,
    /// Whether the product begins here, and nothing is there to add to.
    pub begins: bool,
}

/// Columns that go along together, so that there are enough sums that do not wait for each other.
const TOGETHER: usize = 4;

/// All rows and columns.
#[inline(always)]
pub(super) unsafe fn dots<L: Lanes<Element: Multiply>>(d: &Dots<L::Element>) {
    let whole = d.columns / TOGETHER * TOGETHER;
    // SAFETY: passed on from the caller.
    unsafe {
        for column in (0..whole).step_by(TOGETHER) {
            (0..d.rows).for_each(|row| some::<L, TOGETHER>(d, row, column));
        }
        for column in whole..d.columns {
            (0..d.rows).for_each(|row| some::<L, 1>(d, row, column));
        }
    }
}

/// One row of `C` columns.
#[inline(always)]
unsafe fn some<L: Lanes<Element: Multiply>, const C: usize>(d: &Dots<L::Element>, row: usize, column: usize) {
    // SAFETY: passed on from the caller.
    unsafe {
        let left = d.left.add(row * L::Element::DOT_PITCH);
        let right: [_; C] = std::array::from_fn(|c| d.right.wrapping_offset((column + c) as isize * d.distance));
        let mut sums = [L::zero(); C];
        let whole = d.depth / L::WIDTH * L::WIDTH;
        for k in (0..whole).step_by(L::WIDTH) {
            let factors = L::load(left.add(k));
            for (sum, column) in sums.iter_mut().zip(right) {
                *sum = sum.plus_product(factors, L::load(column.add(k)));
            }
        }
        for (c, (lanes, right)) in sums.iter().zip(right).enumerate() {
            let mut sum = pairwise((&raw const *lanes).cast::<L::Element>(), L::WIDTH);
            for k in whole..d.depth {
                sum = sum.add(left.add(k).read().mul(right.add(k).read()));
            }
            let to = d.out.add(row * d.columns + column + c);
            to.write(if d.begins { sum } else { to.read().add(sum) });
        }
    }
}

/// The sum of a power of two of elements.
#[inline(always)]
unsafe fn pairwise<A: Number>(lanes: *const A, count: usize) -> A {
    // SAFETY: passed on from the caller.
    let mut sums: [A; 16] =
        std::array::from_fn(|lane| if lane < count { unsafe { lanes.add(lane).read() } } else { A::ZERO });
    let mut count = count;
    while count > 1 {
        count /= 2;
        for lane in 0..count {
            sums[lane] = sums[lane].add(sums[lane + count]);
        }
    }
    sums[0]
}
