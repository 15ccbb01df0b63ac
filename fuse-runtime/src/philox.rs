//! Counter-based random bits: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//!
//! The layout is the same on every device. Element `i` of a draw at `(seed, offset)` takes lane `i % 4` of the block with
//! counter `offset + i / 4`; a draw of `n` elements advances the offset by `ceil(n / 4)`.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// The four words of block `counter` under key `seed`.
#[inline(always)]
pub fn block(seed: u64, counter: u64) -> [u32; 4] {
    let mut key = [seed as u32, (seed >> 32) as u32];
    let mut ctr = [counter as u32, (counter >> 32) as u32, 0, 0];
    for _ in 0..10 {
        ctr = round(ctr, key);
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    ctr
}

#[inline(always)]
fn round(ctr: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let a = u64::from(MULTIPLIERS[0]) * u64::from(ctr[0]);
    let b = u64::from(MULTIPLIERS[1]) * u64::from(ctr[2]);
    [(b >> 32) as u32 ^ ctr[1] ^ key[0], b as u32, (a >> 32) as u32 ^ ctr[3] ^ key[1], a as u32]
}

/// The random word of element `i` of a draw. A loop over elements becomes vectors, since lanes are chosen and not looked up.
#[inline(always)]
pub fn bits(seed: u64, offset: u64, i: u64) -> u32 {
    let [a, b, c, d] = block(seed, offset.wrapping_add(i / 4));
    let [first, second] = if i & 2 == 0 { [a, b] } else { [c, d] };
    if i & 1 == 0 { first } else { second }
}

/// A uniform number in `[0, 1)` with 24 random bits.
#[inline(always)]
pub fn uniform(bits: u32) -> f32 {
    (bits >> 8) as f32 * 2f32.powi(-24)
}

/// A standard normal number: element `i` of a draw, by Box-Muller from its lane and the lane beside it.
///
/// Even lanes take the cosine and odd lanes the sine of the pair, computed in f64.
pub fn normal(seed: u64, offset: u64, i: u64) -> f64 {
    let words = block(seed, offset.wrapping_add(i / 4));
    let pair = (i % 4 / 2 * 2) as usize;
    // One added to the first word keeps the logarithm away from 0.
    let radius = (-2.0 * ((f64::from(words[pair]) + 1.0) * 2f64.powi(-32)).ln()).sqrt();
    let angle = std::f64::consts::TAU * (f64::from(words[pair + 1]) * 2f64.powi(-32));
    radius * if i.is_multiple_of(2) { angle.cos() } else { angle.sin() }
}

/// How far a draw of `n` elements advances the offset.
pub fn blocks_of(n: usize) -> u64 {
    n.div_ceil(4) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    // The known answers of the Random123 distribution (kat_vectors, philox4x32 with 10 rounds) for a counter of zeros.
    #[test]
    fn block_gives_the_published_answer() {
        assert_eq!(block(0, 0), [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]);
    }

    #[test]
    fn uniforms_lie_in_the_half_open_unit_interval() {
        assert_eq!(uniform(0), 0.0);
        assert!(uniform(u32::MAX) < 1.0);
    }

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|i| normal(7, 3, i)).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / n as f64;
        // Five standard errors: 1/sqrt(n) for the mean and sqrt(2/n) for the variance.
        assert!(mean.abs() < 5.0 / (n as f64).sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / n as f64).sqrt(), "{variance}");
    }

    #[test]
    fn elements_follow_lanes_then_counters() {
        let first = block(5, 10);
        assert_eq!((0..4).map(|i| bits(5, 10, i)).collect::<Vec<_>>(), first);
        assert_eq!(bits(5, 10, 4), block(5, 11)[0]);
    }
}
