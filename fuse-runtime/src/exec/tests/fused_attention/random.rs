//! Attention of random extents, types, masks, forms and layouts, forward and in training: `FUSE_SEEDS` of them.

use super::*;
use crate::exec::random::Random;

/// Every depth is a text of its own, which takes longer to compile than all calls of it.
const DEPTHS: [usize; 4] = [32, 64, 72, 128];

/// Something of a list.
fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len())]
}

fn extents(random: &mut Random) -> Extents {
    let rows = |random: &mut Random| {
        let most = pick(random, &[1, 8, 70, 300, 700]);
        1 + random.below(most)
    };
    let (m, n) = (rows(random), rows(random));
    let depth = pick(random, &DEPTHS);
    let columns = if random.below(4) == 0 { pick(random, &DEPTHS) } else { depth };
    [1 + random.below(2), 1 + random.below(4), m, n, depth, columns]
}

#[test]
fn attention_of_random_extents() {
    if Device::cuda(0).is_err() {
        return;
    }
    let seeds = std::env::var("FUSE_SEEDS").map_or(10, |seeds| seeds.parse().expect("FUSE_SEEDS is a number"));
    for seed in 0..seeds {
        let random = &mut Random(seed);
        let extents = extents(random);
        let dtype = pick(random, &[BF16, F16, F32]);
        let lie = pick(random, &[Lie::Dense, Lie::Projected, Lie::Shared]);
        let masked = pick(random, &[Mask::None, Mask::None, Mask::Keys, Mask::Bias]);
        let causal = random.below(2) == 0;
        // What is written out has no booleans for a mask.
        let form = match random.below(3) {
            0 if masked != Mask::Keys => Form::Written,
            _ => Form::Op(causal),
        };
        if random.below(2) == 0 {
            let rate = if form == Form::Written { pick(random, &[0.0, 0.2]) } else { 0.0 };
            check_training(dtype, extents, masked, (form, rate), lie);
        } else {
            check(dtype, extents, masked, form, lie);
        }
    }
}
