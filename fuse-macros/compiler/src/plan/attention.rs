//! Attention: steps that are better run together, and the kernels of a GPU that do them.

use super::{BufId, Kernel, Matmul, Plan, Step, StmtId};
use serde::{Deserialize, Serialize};

/// Three steps whose values in between nobody else reads: a product, rows over it, and their product with something else,
/// as in `softmax(q k^T) v`. Each step is complete, so whoever does not know better runs one after the other.
///
/// A row of the first product is needed for one row of the result alone. So some rows at a time can go through all three
/// steps, and neither matrix ever lies in memory as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// The number of the first step.
    pub first: u32,
    /// The first product, dense: of queries and keys.
    pub scores: BufId,
    /// What the rows make of it, dense: the left operand of the second product.
    pub weights: BufId,
}

impl Attention {
    /// The parts of the three steps: the products, and the rows between them.
    pub fn steps<'p>(&self, plan: &'p Plan) -> (&'p Matmul, &'p Kernel, &'p Matmul) {
        match &plan.steps[self.first as usize..][..3] {
            [Step::Matmul(scores), Step::Kernel(weights), Step::Matmul(values)] => (scores, weights, values),
            _ => unreachable!("the scheduler lists attention only where there are such steps"),
        }
    }

    /// Those of the first two.
    pub fn weights_of<'p>(&self, plan: &'p Plan) -> (&'p Matmul, &'p Kernel) {
        match &plan.steps[self.first as usize..][..2] {
            [Step::Matmul(scores), Step::Kernel(weights)] => (scores, weights),
            _ => unreachable!("the scheduler lists attention only where there are such steps"),
        }
    }
}

/// [`Attention`] as one kernel of a GPU, where it is a softmax of scores that follow from the product and the positions of a
/// query and a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fused {
    /// The three steps it does, or the first two of them.
    pub steps: Attention,
    /// The second product, where the plan only walks back and no step makes it. The kernel does, for the logarithms of the rows and
    /// because the way back reads its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Box<Matmul>>,
    /// What happens to every score, as a `Map` over `[batch.., m, n]` that reads the product. It stores the score in the place
    /// of the weights, where nothing is ever written, and then, where the second product multiplies not the weights
    /// but a multiple of each, as dropout makes it, that multiple, from a weight that it reads in the same place.
    pub score: Kernel,
    /// What every score is multiplied by behind that, a positive value of the same program that is one for the whole kernel.
    pub factor: Option<StmtId>,
    /// Whether a query attends to no key behind its own position.
    pub is_causal: bool,
    /// Whether the result of a query that attends to no key is 0; after a plain softmax it is NaN.
    pub empty_is_zero: bool,
    /// The way back, where the plan has one. Then the weights are not only read by the second product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<FusedBack>,
}

impl Fused {
    /// The products, and the rows between them.
    pub fn parts<'p>(&'p self, plan: &'p Plan) -> (&'p Matmul, &'p Kernel, &'p Matmul) {
        match &self.values {
            Some(values) => {
                let (scores, weights) = self.steps.weights_of(plan);
                (scores, weights, values)
            }
            None => self.steps.steps(plan),
        }
    }

    /// How many steps the kernel does.
    pub fn count(&self) -> usize {
        if self.values.is_some() { 2 } else { 3 }
    }

    /// What a weight becomes before the second product, if it does not stay as it is.
    pub fn weight(&self) -> Option<StmtId> {
        self.score.stores.get(1).map(|store| store.value)
    }

    /// Its programs, to be changed: of the kernel forward and of those back.
    pub fn programs_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        let back = self.back.iter_mut().flat_map(|back| {
            let drops = back.drops.as_mut().map(|drops| &mut drops.program);
            [&mut back.of_queries, &mut back.of_keys].into_iter().chain(drops)
        });
        [&mut self.score].into_iter().chain(back)
    }

    /// What is drawn before any of it, if weights are dropped and there is a way back.
    pub fn drops(&self) -> Option<&FusedDrops> {
        self.back.as_ref()?.drops.as_ref()
    }
}

/// The way back through [`Fused`] attention as two kernels, one for the gradient of the queries and one for those of keys and
/// values. They compute the weights again, from the scores and the logarithms that the kernel forward stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FusedBack {
    /// The number of the first of the five steps they do: gradients of the values, the weights, the scores, the queries, the keys.
    pub first: u32,
    /// For every row the logarithm of the sum of its scores' exponentials, which the kernel forward stores; behind all of them what a
    /// float does not hold of large ones.
    pub logs: BufId,
    /// For every row the sum of its weights times their gradients, which the kernel for the queries stores.
    pub sums: BufId,
    /// The gradient of the scores, where nothing is ever written.
    pub of_scores: BufId,
    /// What happens to every score and back, as [`Fused::score`], with one more store, to [`FusedBack::of_scores`]: the gradient of
    /// the product, from that of the score, which is read in the same place.
    pub of_queries: Kernel,
    /// The same under the name of the other kernel.
    pub of_keys: Kernel,
    /// What every score, and the gradient of every product, is multiplied by.
    pub factor: Option<StmtId>,
    /// Which weights are dropped, where some are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<FusedDrops>,
}

/// Which weights of attention are kept, drawn once for the kernels forward and back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FusedDrops {
    /// A bit for every weight: `[batch.., n / 32, m]` words of 32 keys, rounded up to whole words and an even number of queries.
    pub bits: BufId,
    /// [`Fused::score`] under the name of the kernel that draws.
    pub program: Kernel,
}

impl FusedBack {
    /// How many steps the kernels do.
    pub const STEPS: usize = 5;

    /// The five steps: the products that give the gradients of values and weights, the rows, those of queries and keys.
    pub fn steps<'p>(&self, plan: &'p Plan) -> (&'p Matmul, &'p Matmul, &'p Kernel, &'p Matmul, &'p Matmul) {
        match &plan.steps[self.first as usize..][..Self::STEPS] {
            [Step::Matmul(v), Step::Matmul(w), Step::Kernel(rows), Step::Matmul(q), Step::Matmul(k)] => {
                (v, w, rows, q, k)
            }
            _ => unreachable!("the scheduler lists a way back only where there are such steps"),
        }
    }

    /// What a weight becomes before the second product, if it does not stay as it is.
    pub fn weight(&self) -> Option<StmtId> {
        let [_, weight, _] = &self.of_keys.stores[..] else { return None };
        Some(weight.value)
    }

    /// The gradient of the product.
    pub fn of_product(&self) -> StmtId {
        self.of_keys.stores.last().expect("it is always stored").value
    }
}
