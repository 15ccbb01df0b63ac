//! Generators of random numbers: one for each device, and explicit ones.

use crate::device::Device;
use crate::philox;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A source of random numbers: a seed and how many of its numbers were drawn, counted in blocks of four.
///
/// Numbers come from a counter ([Philox](crate::philox)), so the same generator gives the same numbers on every device, and
/// its whole state are two integers. Every device has one, see [`Device::generator`]; inside of [`Generator::scope`] another
/// one takes its place.
///
/// ```
/// use fuse_runtime::Generator;
/// use fuse_runtime::prelude::*;
/// let mut generator = Generator::new(7);
/// let first = generator.scope(|| Tensor::<f32, 1>::rand([4], Device::cpu()));
/// let state = generator;
/// let second = generator.scope(|| Tensor::<f32, 1>::rand([4], Device::cpu()));
/// assert_ne!(first.to_vec(), second.to_vec());
///
/// // From the same state on the same numbers come again.
/// generator = state;
/// let again = generator.scope(|| Tensor::<f32, 1>::rand([4], Device::cpu()));
/// assert_eq!(again.to_vec(), second.to_vec());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    seed: u64,
    offset: u64,
}

impl Generator {
    /// The generator of a seed, at its start.
    pub fn new(seed: u64) -> Self {
        Generator { seed, offset: 0 }
    }

    /// The seed.
    pub fn initial_seed(&self) -> u64 {
        self.seed
    }

    /// Everything it is: the seed, and the next block.
    pub fn state(&self) -> [u64; 2] {
        [self.seed, self.offset]
    }

    /// The generator of such a state.
    pub fn from_state([seed, offset]: [u64; 2]) -> Self {
        Generator { seed, offset }
    }

    /// Takes `elements` random numbers: the `(seed, offset)` of the draw, see [`philox`].
    pub fn draw(&mut self, elements: usize) -> (u64, u64) {
        self.draw_blocks(philox::blocks_of(elements))
    }

    /// Takes `blocks` blocks of four random numbers.
    pub fn draw_blocks(&mut self, blocks: u64) -> (u64, u64) {
        let offset = self.offset;
        self.offset = offset.wrapping_add(blocks);
        (self.seed, offset)
    }

    /// Has all that draws on this thread in `body`, on whatever device, draw from this generator.
    pub fn scope<R>(&mut self, body: impl FnOnce() -> R) -> R {
        let scope = Scope { before: CURRENT.replace(Some(*self)), own: self };
        let out = body();
        drop(scope);
        out
    }
}

/// Puts back what was there before, and what was drawn, also behind a panic.
struct Scope<'a> {
    before: Option<Generator>,
    own: &'a mut Generator,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let drawn = CURRENT.replace(self.before);
        *self.own = drawn.expect("a scope is the innermost when it ends");
    }
}

thread_local! {
    /// The generator of the innermost scope.
    static CURRENT: Cell<Option<Generator>> = const { Cell::new(None) };
}

static GENERATORS: Mutex<BTreeMap<Device, Generator>> = Mutex::new(BTreeMap::new());

/// Has something done to the generator of a device.
pub(crate) fn with_generator<R>(device: Device, body: impl FnOnce(&mut Generator) -> R) -> R {
    // PyTorch's default seed, so that an unseeded program is repeatable.
    const DEFAULT: Generator = Generator { seed: 67_280_421_310_721, offset: 0 };
    let mut generators = GENERATORS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    body(generators.entry(device).or_insert(DEFAULT))
}

/// Takes blocks from the generator of the innermost scope, or from that of the device.
pub(crate) fn draw_blocks(device: Device, blocks: u64) -> (u64, u64) {
    match CURRENT.get() {
        None => with_generator(device, |generator| generator.draw_blocks(blocks)),
        Some(mut generator) => {
            let drawn = generator.draw_blocks(blocks);
            CURRENT.set(Some(generator));
            drawn
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_n_elements_advance_by_whole_blocks() {
        let mut generator = Generator::new(3);
        assert_eq!(generator.draw(5), (3, 0));
        assert_eq!(generator.draw(1), (3, 2));
        assert_eq!(generator.draw(0), (3, 3));
        assert_eq!(generator.draw(0), (3, 3));
    }

    #[test]
    fn scopes_nest_and_leave_the_generator_of_the_device_alone() {
        // A device of its own, since tests share the generator of the processor.
        let device = Device::tracing();
        device.manual_seed(1);
        let (mut outer, mut inner) = (Generator::new(2), Generator::new(3));
        let seeds = outer.scope(|| {
            let first = device.draw(4).0;
            let second = inner.scope(|| device.draw(8).0);
            [first, second, device.draw(4).0]
        });
        assert_eq!(seeds, [2, 3, 2]);
        assert_eq!((outer.state(), inner.state()), ([2, 2], [3, 2]));
        assert_eq!(device.draw(4), (1, 0));
    }

    #[test]
    fn a_scope_ends_behind_a_panic() {
        let mut generator = Generator::new(5);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            generator.scope(|| {
                Device::cpu().draw(4);
                std::panic::resume_unwind(Box::new(()))
            })
        }));
        assert!(panicked.is_err());
        assert_eq!((generator.state(), CURRENT.get()), ([5, 1], None));
    }
}
