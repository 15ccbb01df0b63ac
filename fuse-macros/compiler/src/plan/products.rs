//! Products that one kernel may make together.

use super::{Kernel, LibForm, Matmul, Operand, Plan};
use serde::{Deserialize, Serialize};

/// Products of one left operand that one kernel of a GPU may make, as those of queries, keys and values, or of a gate and what
/// goes through it: steps one behind the other, of equal extents, none of which multiplies what another makes. Each step is
/// complete, so whoever does not know better runs one after the other.
///
/// A block has the same rows and columns of all of them, so what follows several products is done where all are at hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Products {
    /// The number of the first step.
    pub first: u32,
    /// How many steps they are.
    pub count: u32,
    /// What is done with the elements of all products at a place, as a `Map` over `[batch.., m, n]`. What one step stores and
    /// only another of them reads is stored nowhere.
    pub program: Kernel,
}

impl Products {
    /// The most products of a kernel: registers and shared memory have room for 256 columns of all of them.
    pub const MOST: u32 = 4;

    /// The steps.
    pub fn steps<'p>(&self, plan: &'p Plan) -> impl Iterator<Item = &'p Matmul> + Clone {
        plan.steps[self.first as usize..][..self.count as usize].iter().map(|step| {
            step.matmul()
                .unwrap_or_else(|| unreachable!("the scheduler lists products only where there are such steps"))
        })
    }

    /// How many launches of the library form it saves.
    pub fn saved(&self, plan: &Plan) -> usize {
        self.steps(plan).map(|Matmul { lib: LibForm { rest, .. }, .. }| 1 + usize::from(rest.is_some())).sum::<usize>()
            - 1
    }

    /// The left operand.
    pub fn left<'p>(&self, plan: &'p Plan) -> &'p Operand {
        &self.steps(plan).next().expect("there are several").a
    }
}
