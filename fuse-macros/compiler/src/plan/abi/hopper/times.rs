//! What products of halves take with what follows them, by the library and in one kernel.

use super::super::geometry::are_whole_accesses;
use super::super::{Access, BATCH_AXES, Geometry, Target};
use super::HALVES;
use crate::plan::{Expr, Kernel, Level, Matmul};
use crate::types::DType;

/// A launch and what it waits for: how much longer the library takes for a small product, and a kernel behind it.
pub const LIBRARY: i64 = 2000;
const ANOTHER_LAUNCH: i64 = 4000;
/// What a long function and a random draw of every element take, for a million of them: in the epilogue, where tensor cores wait for
/// it, and in a kernel of its own, where memory works meanwhile. Bias and gelu behind 4096 x 768 x 3072 take 48 us in one, with dropout and the
/// product stored as well 65; by the library and a kernel 46 and 59.
const EPILOGUE: Effort = Effort { long: 400, draw: 1000 };
const KERNEL: Effort = Effort { long: 1000, draw: 700 };
/// TFLOP/s of the library for halves, and where rows of the product do not begin at multiples of 16 bytes.
const LIBRARY_SPEEDS: [i64; 2] = [700, 110];
/// Bytes of the pieces in which memory is read.
const SECTOR: i64 = 32;
/// Percent that tiles take longer for each operand whose rows do not begin with a sector: a quarter more of them are read.
const OFF_SECTOR: i64 = 15;

/// Nanoseconds a million elements.
struct Effort {
    long: i64,
    draw: i64,
}

/// What is done with every element of a product, in terms of what takes time.
#[derive(Clone, Copy, Default)]
struct Following {
    long: i64,
    draws: i64,
    /// Matrices that are stored.
    stores: i64,
}

impl Following {
    fn of(rest: &Kernel) -> Following {
        let each = || rest.stmts.iter().filter(|stmt| stmt.level == Level::Elem);
        let count = |is: &dyn Fn(&Expr) -> bool| each().filter(|stmt| is(&stmt.expr)).count() as i64;
        Following {
            long: count(&|expr| expr.is_heavy() && !expr.is_draw()),
            draws: count(&Expr::is_draw),
            stores: rest.stores.len() as i64,
        }
    }

    fn takes(&self, effort: &Effort, elements: i64) -> i64 {
        (self.long * effort.long + self.draws * effort.draw) * elements / 1_000_000
    }
}

/// Whether rows of a product of halves begin at odd addresses, which the library is slow for.
pub fn has_odd_rows(axes: &Geometry) -> bool {
    axes.outer[BATCH_AXES] > 1 && !are_whole_accesses(axes.outer[BATCH_AXES + 1], DType::F16.bytes())
}

/// What a product of halves takes: by the library, by the kernel behind it, and by the template.
pub struct Times {
    pub multiplied: i64,
    pub passed: i64,
    /// The template, with what follows.
    pub taken: i64,
}

impl Times {
    pub fn of(axes: &Geometry, operands: [&Access; 2], matmul: &Matmul, target: &Target) -> Times {
        let speed = LIBRARY_SPEEDS[usize::from(has_odd_rows(axes))];
        let multiplied = LIBRARY + axes.rows() * 2 / speed * axes.len() / 1000;
        let passed = matmul
            .lib
            .rest
            .as_ref()
            .map(Following::of)
            .map_or(0, |rest| pass(axes, 1 + rest.stores).max(rest.takes(&KERNEL, axes.rows())) + ANOTHER_LAUNCH);
        let taken = taken(1, axes, operands, &matmul.epilogue, target).expect("there are tiles");
        Times { multiplied, passed, taken }
    }

    pub fn by_library(&self) -> i64 {
        self.multiplied + self.passed
    }
}

/// What the template takes for so many products of halves with one left operand, and what follows, if it has tiles for them.
pub fn taken(products: u32, axes: &Geometry, operands: [&Access; 2], program: &Kernel, target: &Target) -> Option<i64> {
    let between = |operand: &&Access| operand.strides[BATCH_AXES..].iter().copied().max().unwrap_or(0);
    let off_sector = operands.iter().filter(|operand| between(operand) * 2 % SECTOR != 0).count() as i64;
    let multiplied = HALVES.best_of(products, axes, target)?.1 * (100 + OFF_SECTOR * off_sector) / 100;
    let here = Following::of(program);
    Some(multiplied + pass(axes, here.stores - i64::from(products)) + here.takes(&EPILOGUE, axes.rows()))
}

/// Reading or writing so many matrices like the product at 3.5 TB/s.
fn pass(axes: &Geometry, matrices: i64) -> i64 {
    axes.rows() * 2 * matrices / 3500
}
