//! Small kernels that one launch may run.

use super::{Kernel, Plan};
use serde::{Deserialize, Serialize};

/// Kernels over domains of their own that do not depend on one another: steps one behind the other, which one launch of a GPU may run
/// where each of them is so small that starting it takes longer. Each step is complete, so whoever does not know better runs one
/// after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmallKernels {
    /// The number of the first step.
    pub first: u32,
    /// How many steps they are.
    pub count: u32,
    /// The entry point of the kernel that runs all.
    pub name: String,
}

impl SmallKernels {
    /// The most kernels of a launch.
    pub const MOST: u32 = 32;

    /// The steps.
    pub fn steps<'p>(&self, plan: &'p Plan) -> impl ExactSizeIterator<Item = &'p Kernel> + Clone {
        plan.steps[self.first as usize..][..self.count as usize].iter().map(|step| {
            step.kernel().unwrap_or_else(|| unreachable!("the scheduler lists them only where there are such steps"))
        })
    }
}
