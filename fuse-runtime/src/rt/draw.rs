//! Random numbers of a kernel.

use crate::philox;

/// A random draw: numbers that follow from their positions alone.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// The seed of the device.
    pub(crate) seed: u64,
    /// The first counter.
    pub(crate) offset: u64,
}

impl Draw {
    /// The uniform number in `[0, 1)` at a position.
    #[inline(always)]
    pub fn uniform(self, position: i64) -> f32 {
        philox::uniform(philox::bits(self.seed, self.offset, position as u64))
    }

    /// The standard normal number at a position.
    #[inline(always)]
    pub fn normal(self, position: i64) -> f32 {
        philox::normal(self.seed, self.offset, position as u64) as f32
    }
}
