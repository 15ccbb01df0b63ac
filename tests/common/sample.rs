//! Numbers to test with.

use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::Num;
use fuse_compiler::types::DType;

/// Floats at which functions go wrong.
pub const SPECIAL: [f64; 17] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    0.5,
    -0.5,
    2.5,
    -1.5,
    1e-40,
    -6e-8,
    65504.0,
    -3e38,
    88.5,
    -88.5,
];

/// Integers at which functions go wrong, in every width.
const SPECIAL_INTS: [i64; 8] = [0, 1, -1, i64::MIN, i64::MAX, i32::MIN as i64, 255, -7];

/// A small generator of random numbers (SplitMix64): the same numbers for the same seed, everywhere and always.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator for a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// A generator for what is told apart by a text.
    pub fn named(text: &str) -> Rng {
        Rng(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// Whether something happens that does so `percent` times in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// A float of `range`.
    pub fn float(&mut self, range: (f64, f64)) -> f64 {
        range.0 + (range.1 - range.0) * ((self.bits() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// A tensor of ordinary numbers: floats of `range`, small integers, bools.
    pub fn value(&mut self, dtype: DType, dims: &[usize], range: (f64, f64)) -> Value {
        self.filled(dtype, dims, |rng| rng.float(range), |rng| rng.below(41) as i64 - 20)
    }

    /// A tensor of the numbers that go wrong, in random order.
    pub fn special(&mut self, dtype: DType, dims: &[usize]) -> Value {
        self.filled(dtype, dims, |rng| *rng.pick(&SPECIAL), |rng| *rng.pick(&SPECIAL_INTS))
    }

    /// A tensor of positions below `end`.
    pub fn index(&mut self, dims: &[usize], end: usize) -> Value {
        self.filled(DType::I64, dims, |_| 0.0, |rng| rng.below(end.max(1)) as i64)
    }

    fn filled(
        &mut self,
        dtype: DType,
        dims: &[usize],
        float: impl Fn(&mut Rng) -> f64,
        int: impl Fn(&mut Rng) -> i64,
    ) -> Value {
        let count = dims.iter().product();
        let number = |rng: &mut Rng| match dtype {
            DType::Bool => Num::B(rng.chance(50)),
            dtype if dtype.is_int() => Num::I(int(rng)).round(dtype),
            _ => Num::F(float(rng)).round(dtype),
        };
        Value::new(dtype, dims.to_vec(), (0..count).map(|_| number(self)).collect())
    }
}
