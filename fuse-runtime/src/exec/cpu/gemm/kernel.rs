//! The innermost loops of a product: sums of some rows and columns that stay in registers over a stretch of the inner axis.

use super::TILE_ROWS;
use super::dots::{DOT_ROWS, Dots, dots};
use super::lanes::{Lanes, Plain};
use crate::dtype::Element;
use crate::math::Number;
use crate::reduce::prefetch;
use crate::rt::Level;

/// The right operand as panels of as many columns as two vectors have.
#[derive(Clone, Copy)]
pub(in crate::exec::cpu) struct Panels<A> {
    /// The first row of the first panel.
    pub start: *const A,
    /// From a row to the next.
    pub step: usize,
    /// From a panel to the next.
    pub distance: usize,
    /// The last panel where it has fewer columns; its rows lie as far apart as whole ones are wide.
    pub rest: *const A,
}

impl<A> Panels<A> {
    /// The panels from a row on.
    pub fn below(&self, row: usize, width: usize) -> Self {
        let [start, rest] = [(self.start, self.step), (self.rest, width)].map(|(at, step)| at.wrapping_add(row * step));
        Panels { start, rest, ..*self }
    }
}

/// What is added to some rows and columns of the product at a time.
pub(super) struct Stretch<A> {
    /// The left operand, rows [`Multiply::PITCH`] apart.
    pub left: *const A,
    pub rows: usize,
    pub right: Panels<A>,
    pub columns: usize,
    /// How many inner positions there are.
    pub depth: usize,
    /// The product, dense.
    pub out: *mut A,
    /// Whether the product begins here, and nothing is there to add to.
    pub begins: bool,
}

/// How a type is multiplied with the vectors of some width.
#[derive(Clone, Copy)]
pub(in crate::exec::cpu) struct Kernel<A> {
    /// The columns of a panel.
    pub columns: usize,
    /// The rows that registers hold sums of.
    pub rows: usize,
    /// Adds a stretch. The operands have to hold what it says, and the processor those vectors.
    pub(super) run: unsafe fn(&Stretch<A>),
    /// Adds a stretch of few rows; as above.
    pub(super) dots: unsafe fn(&Dots<A>),
}

/// A type that matrices can be multiplied in.
pub(in crate::exec::cpu) trait Multiply: Element<Compute = Self> + Number {
    /// Inner positions of a stretch: as many as the first cache holds of the rows in registers, and some of a panel.
    const DEPTH: usize = 1024 / size_of::<Self>();
    /// The distance of rows of the left operand. Powers of two would all fall on the same places of the cache.
    const PITCH: usize = Self::DEPTH + 16;
    /// Inner positions of a stretch where columns of the right operand are dense: as many as there is room for of the left one, since
    /// memory is read in long pieces.
    const DOT_DEPTH: usize = (TILE_ROWS * Self::PITCH / DOT_ROWS - 16) / 64 * 64;
    /// The distance of rows of the left operand there.
    const DOT_PITCH: usize = Self::DOT_DEPTH + 16;
    /// The kernel for the vectors of a processor.
    fn kernel(level: Level) -> Kernel<Self>;
}

macro_rules! floats {
    ($($ty:ty, $avx512:ident, $avx2:ident, $sse:ident, $neon:ident;)*) => {$(
        impl Multiply for $ty {
            #[cfg(target_arch = "x86_64")]
            fn kernel(level: Level) -> Kernel<Self> {
                use std::arch::x86_64::{$avx2, $avx512, $sse};
                match level {
                    Level::Baseline => baseline::<$sse>(),
                    Level::Avx2 => avx2::<$avx2>(),
                    Level::Avx512 => avx512::<$avx512>(),
                }
            }

            #[cfg(target_arch = "aarch64")]
            fn kernel(_: Level) -> Kernel<Self> {
                baseline::<std::arch::aarch64::$neon>()
            }

            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            fn kernel(_: Level) -> Kernel<Self> {
                baseline::<Plain<Self, 4>>()
            }
        }
    )*};
}

floats! {
    f32, __m512, __m256, __m128, float32x4_t;
    f64, __m512d, __m256d, __m128d, float64x2_t;
}

macro_rules! integers {
    ($($ty:ty, $width:literal;)*) => {$(
        impl Multiply for $ty {
            fn kernel(level: Level) -> Kernel<Self> {
                match level {
                    Level::Baseline => baseline::<Plain<Self, $width>>(),
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 | Level::Avx512 => avx2::<Plain<Self, $width>>(),
                }
            }
        }
    )*};
}

integers! { i64, 4; i32, 8; u8, 16; }

fn baseline<L: Lanes<Element: Multiply>>() -> Kernel<L::Element> {
    Kernel { columns: 2 * L::WIDTH, rows: L::ROWS, run: stretch::<L>, dots: dots::<L> }
}

/// The kernel of lanes, with its functions compiled for features that the processor has been asked for.
macro_rules! with_features {
    ($name:ident, $features:literal) => {
        #[cfg(target_arch = "x86_64")]
        fn $name<L: Lanes<Element: Multiply>>() -> Kernel<L::Element> {
            #[target_feature(enable = $features)]
            unsafe fn run<L: Lanes<Element: Multiply>>(s: &Stretch<L::Element>) {
                // SAFETY: passed on from the caller.
                unsafe { stretch::<L>(s) }
            }

            #[target_feature(enable = $features)]
            unsafe fn few<L: Lanes<Element: Multiply>>(d: &Dots<L::Element>) {
                // SAFETY: passed on from the caller.
                unsafe { dots::<L>(d) }
            }

            Kernel { columns: 2 * L::WIDTH, rows: L::ROWS, run: run::<L>, dots: few::<L> }
        }
    };
}

with_features! { avx2, "avx2,fma" }
with_features! { avx512, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl" }

/// All rows, as many at a time as registers hold. A panel goes past all of them before the next one does.
#[inline(always)]
unsafe fn stretch<L: Lanes<Element: Multiply>>(s: &Stretch<L::Element>) {
    let mut done = 0;
    // SAFETY: passed on from the caller.
    unsafe {
        for column in (0..s.columns).step_by(2 * L::WIDTH) {
            done = in_panel::<L>(s, column);
        }
        while done < s.rows {
            done += if s.rows - done >= 2 { few_rows::<L, 2, 2>(s, done) } else { few_rows::<L, 1, 4>(s, done) };
        }
    }
}

/// Rows of the product in the panel of a column, and how many they are: all but a few that would wait for their sums. Meanwhile the
/// next panel is sent for, the first vectors of its rows and then the second ones.
#[inline(always)]
unsafe fn in_panel<L: Lanes<Element: Multiply>>(s: &Stretch<L::Element>, column: usize) -> usize {
    let mut row = 0;
    let mut ahead = s.right.distance;
    loop {
        // SAFETY: passed on from the caller.
        let rows = unsafe {
            match s.rows - row {
                14.. if L::ROWS >= 14 => block::<L, 14>(s, row, column, ahead),
                8.. if L::ROWS >= 8 => block::<L, 8>(s, row, column, ahead),
                6.. if L::ROWS >= 6 => block::<L, 6>(s, row, column, ahead),
                4.. => block::<L, 4>(s, row, column, ahead),
                _ => return row,
            }
        };
        ahead = if row == 0 { ahead + L::WIDTH } else { 0 };
        row += rows;
    }
}

/// Rows `row..row + R` of the product in the panel of a column.
#[inline(always)]
unsafe fn block<L: Lanes<Element: Multiply>, const R: usize>(
    s: &Stretch<L::Element>,
    row: usize,
    column: usize,
    ahead: usize,
) -> usize {
    let width = 2 * L::WIDTH;
    // SAFETY: passed on from the caller.
    unsafe {
        let left = s.left.add(row * L::Element::PITCH);
        let out = s.out.add(row * s.columns + column);
        if column + width <= s.columns {
            let right = s.right.start.add(column / width * s.right.distance);
            write(
                sums::<L, R, 1>(left, [right, right.wrapping_add(ahead)], s.right.step, 0, s.depth),
                out,
                s.columns,
                s.begins,
            );
        } else {
            let sums = sums::<L, R, 1>(left, [s.right.rest; 2], width, 0, s.depth);
            write_some(sums, out, s.columns, s.columns - column, s.begins);
        }
    }
    R
}

/// Few rows `row..row + R` of the product in all panels, `P` panels at a time, so that there are enough sums that do not wait for
/// each other.
#[inline(always)]
unsafe fn few_rows<L: Lanes<Element: Multiply>, const R: usize, const P: usize>(
    s: &Stretch<L::Element>,
    row: usize,
) -> usize {
    let width = 2 * L::WIDTH;
    let whole = s.columns / width / P * P;
    // SAFETY: passed on from the caller.
    unsafe {
        let left = s.left.add(row * L::Element::PITCH);
        let out = s.out.add(row * s.columns);
        for p in (0..whole).step_by(P) {
            let right = s.right.start.add(p * s.right.distance);
            let sums = sums::<L, R, P>(left, [right; 2], s.right.step, s.right.distance, s.depth);
            write(sums, out.add(p * width), s.columns, s.begins);
        }
    }
    (whole * width..s.columns).step_by(width).for_each(|column| {
        // SAFETY: passed on from the caller.
        unsafe { block::<L, R>(s, row, column, 0) };
    });
    R
}

/// The sums of products over a stretch, each added up in order. As `right` goes on, the line at the same distance behind `ahead` is
/// brought to the second cache.
#[inline(always)]
unsafe fn sums<L: Lanes<Element: Multiply>, const R: usize, const P: usize>(
    left: *const L::Element,
    [mut right, mut ahead]: [*const L::Element; 2],
    step: usize,
    distance: usize,
    depth: usize,
) -> [[[L; 2]; P]; R] {
    // SAFETY: passed on from the caller.
    unsafe {
        let mut sums = [[[L::zero(); 2]; P]; R];
        for k in 0..depth {
            let mut beside = [[L::zero(); 2]; P];
            for (p, panel) in beside.iter_mut().enumerate() {
                let from = right.wrapping_add(p * distance);
                *panel = [L::load(from), L::load(from.wrapping_add(L::WIDTH))];
            }
            for (r, row) in sums.iter_mut().enumerate() {
                let factor = L::splat(left.add(r * L::Element::PITCH + k));
                for (sum, other) in row.as_flattened_mut().iter_mut().zip(beside.as_flattened()) {
                    *sum = sum.plus_product(factor, *other);
                }
            }
            prefetch(ahead.cast());
            [right, ahead] = [right, ahead].map(|at| at.wrapping_add(step));
        }
        sums
    }
}

/// Adds sums to whole panels of the product.
#[inline(always)]
unsafe fn write<L: Lanes, const R: usize, const P: usize>(
    sums: [[[L; 2]; P]; R],
    out: *mut L::Element,
    pitch: usize,
    begins: bool,
) {
    for (r, row) in sums.into_iter().enumerate() {
        for (v, sum) in row.into_iter().flatten().enumerate() {
            // SAFETY: passed on from the caller.
            unsafe {
                let to = out.add(r * pitch + v * L::WIDTH);
                if begins { sum.store(to) } else { L::load(to).plus(sum).store(to) }
            }
        }
    }
}

/// Adds the first `columns` of a panel of sums to the product.
#[inline(always)]
unsafe fn write_some<L: Lanes, const R: usize>(
    sums: [[[L; 2]; 1]; R],
    out: *mut L::Element,
    pitch: usize,
    columns: usize,
    begins: bool,
) {
    let sums = (&raw const sums).cast::<L::Element>();
    for r in 0..R {
        for c in 0..columns {
            // SAFETY: passed on from the caller; vectors are their elements one after the other.
            unsafe {
                let (sum, to) = (sums.add(r * 2 * L::WIDTH + c).read(), out.add(r * pitch + c));
                to.write(if begins { sum } else { to.read().add(sum) });
            }
        }
    }
}
