//! Where several products with one left operand pay in one kernel, see [`Products`](crate::plan::Products): where it is done before a
//! kernel for each of them would be.

use super::hopper::{HALVES, LIBRARY, THIRDS, Times, pays_in_halves, side_by_side, taken};
use super::{Access, BATCH_AXES, Geometry, Target, Walk};
use crate::plan::{Kernel, Matmul};

/// A launch that is saved, at least: in a graph they lie so far apart.
const LAUNCH: i64 = 1500;
/// TFLOP/s of the library for floats.
const LIBRARY_SPEED: i64 = 50;

/// Products with one left operand, each made for itself.
pub struct Apart<'p> {
    /// The products.
    pub steps: Vec<&'p Matmul>,
}

impl Apart<'_> {
    /// How many products there are.
    pub fn count(&self) -> u32 {
        self.steps.len() as u32
    }

    /// Whether one kernel that walks like this, with this program behind the products, is done before all of them.
    pub(super) fn is_slower_than(&self, walk: Walk, program: &Kernel, axes: &Geometry, target: &Target) -> bool {
        match walk {
            // Few rows are as fast as the right operands can be read.
            Walk::Strips { .. } | Walk::Slim { .. } => true,
            Walk::Thirds { .. } => self.pays_in_thirds(axes, target),
            Walk::Halves { .. } => self.pays_in_halves(program, axes, target).unwrap_or(false),
            _ => false,
        }
    }

    fn pays_in_thirds(&self, axes: &Geometry, target: &Target) -> bool {
        let Some(together) = THIRDS.best_of(self.count(), axes, target) else { return false };
        let is_busy = THIRDS.are_busy(together, &side_by_side(self.count(), axes), target);
        let by_library = || LIBRARY + axes.rows() * 2 * axes.len() / 1000 / LIBRARY_SPEED;
        let each = if THIRDS.keep_busy(axes, target) { THIRDS.best(axes, target).1 } else { by_library() };
        let apart = i64::from(self.count()) * (each + LAUNCH);
        is_busy && together.1 < apart && !self.steps.iter().any(|matmul| matmul.tf32)
    }

    /// Where nothing follows, one kernel gains two microseconds for some numbers of rows, and compiling it takes a second.
    fn pays_in_halves(&self, program: &Kernel, axes: &Geometry, target: &Target) -> Option<bool> {
        let [.., left, right] = &axes.operands[..] else { return None };
        let is_followed = self.steps.iter().any(|matmul| matmul.lib.rest.is_some());
        let together = HALVES.best_of(self.count(), axes, target)?;
        let is_busy = HALVES.are_busy(together, &side_by_side(self.count(), axes), target);
        let time = taken(self.count(), axes, [left, right], program, target)?;
        let apart: i64 = self.steps.iter().map(|matmul| time_of(matmul, axes, [left, right], target)).sum();
        Some(is_followed && is_busy && time < apart + i64::from(self.count() - 1) * LAUNCH)
    }
}

/// What a product of halves takes alone.
fn time_of(matmul: &Matmul, axes: &Geometry, operands: [&Access; 2], target: &Target) -> i64 {
    let extents = [axes.outer[BATCH_AXES], axes.outer[BATCH_AXES + 1], axes.len()];
    let products = axes.outer[..BATCH_AXES].iter().product();
    let times = Times::of(axes, operands, matmul, target);
    let by_template = pays_in_halves(matmul.dtype, products, extents, operands, matmul, target);
    if by_template { times.taken } else { times.by_library() }
}

#[cfg(test)]
mod tests {
    use super::super::hopper::{axes_of, pays_in_thirds};
    use super::super::samples::{H200, siblings};
    use super::super::{Access, Variant};
    use super::*;
    use crate::plan::Plan;
    use crate::types::DType;

    /// Whether products of contiguous matrices are made in one kernel.
    fn pay(plan: &Plan, extents: [i64; 3]) -> bool {
        let [_, n, k] = extents;
        let products = &plan.products[0];
        let apart = Apart { steps: products.steps(plan).collect() };
        let dtype = apart.steps[0].dtype;
        let access = |strides: Vec<i64>| Access { strides, address: 0, bytes: dtype.bytes(), indexed: false };
        let program = &products.program;
        let stored = program.leaves.len() + program.stores.len();
        let operands = (0..stored).map(|_| access(vec![0, 0, 0, n, 1]));
        let matrices = [access(vec![0, 0, 0, k, 1]), access(vec![0, 0, 0, n, 1])];
        let axes = Geometry { operands: operands.chain(matrices).collect(), ..axes_of(1, extents) };
        Variant::products(program, dtype, &apart, &axes, &H200).is_some()
    }

    #[test]
    fn products_of_floats_pay_where_there_is_enough_to_do() {
        let (gate, three) = (siblings(DType::F32, 2, true), siblings(DType::F32, 3, false));
        // Few rows always.
        assert!(pay(&three, [1, 768, 768]) && pay(&gate, [16, 4096, 4096]));
        assert!(pay(&three, [4096, 768, 768]) && pay(&gate, [4096, 3072, 768]));
        // Alone none of them has enough for the device to do.
        assert!(pay(&three, [512, 768, 768]) && !pays_in_thirds(DType::F32, 1, [512, 768, 768], &H200));
        assert!(!pay(&three, [128, 768, 768]));
    }

    #[test]
    fn products_of_halves_pay_where_something_follows() {
        let (gate, three) = (siblings(DType::BF16, 2, true), siblings(DType::BF16, 3, false));
        assert!(pay(&gate, [4096, 3072, 768]) && pay(&gate, [2048, 3072, 768]));
        assert!(!pay(&gate, [2048, 11008, 4096]) && !pay(&gate, [16, 3072, 768]));
        assert!(!pay(&three, [1024, 768, 768]) && !pay(&three, [4096, 768, 768]));
    }
}
