//! Small blocks of device memory that nobody holds any more, kept for who asks next.
//!
//! The driver's pool costs the host about as much a call as a launch does, twice for every result of a small kernel. Blocks
//! are kept for the stream they were let go on, so whatever takes one over comes behind everything that used it before.

use super::lanes::Lane;
use super::once::lock;
use crate::env::is_without;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest block that is kept: a kernel that fills a larger one takes longer than the pool.
const LARGEST: usize = 1 << 20;
/// The most bytes that are kept in all.
const MOST: usize = 64 << 20;
/// Blocks are multiples of this, as the driver aligns them.
const GRAIN: usize = 512;
/// All blocks are multiples of this: kernels copy aligned runs of so many bytes, the last of which may begin in an operand's last
/// element.
const RUN: usize = 16;

/// Kept blocks, by stream and size.
pub(super) struct Kept {
    most: usize,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    of_size: HashMap<(Lane, usize), Vec<u64>>,
    bytes: usize,
}

impl Kept {
    /// Nothing yet. `FUSE_WITHOUT=kept` leaves it so: then a tool that watches memory sees every allocation.
    pub(super) fn new() -> Kept {
        Kept { most: if is_without("kept") { 0 } else { MOST }, blocks: Mutex::default() }
    }

    /// How large a block for so many bytes is: a few sizes up to the largest that is kept, so that others find it useful.
    pub(super) fn size(&self, len: usize) -> usize {
        match len {
            _ if self.most == 0 || len > LARGEST => len.checked_next_multiple_of(RUN).unwrap_or(len),
            _ => {
                // A quarter of the power of two below: at most a quarter of a block is wasted.
                let step = (len.next_power_of_two() / 8).max(GRAIN);
                len.next_multiple_of(step)
            }
        }
    }

    /// A block of this size, if one is kept for this lane.
    pub(super) fn take(&self, lane: Lane, size: usize) -> Option<u64> {
        let blocks = &mut *lock(&self.blocks);
        let address = blocks.of_size.get_mut(&(lane, size))?.pop()?;
        blocks.bytes -= size;
        Some(address)
    }

    /// Whether a block that is let go on a lane was kept.
    pub(super) fn keep(&self, lane: Lane, address: u64, size: usize) -> bool {
        if size > LARGEST {
            return false;
        }
        let blocks = &mut *lock(&self.blocks);
        let fits = blocks.bytes + size <= self.most;
        if fits {
            blocks.bytes += size;
            blocks.of_size.entry((lane, size)).or_default().push(address);
        }
        fits
    }

    /// Hands out all blocks, to be given back to the driver.
    pub(super) fn drain(&self) -> Vec<(Lane, u64)> {
        let blocks = std::mem::take(&mut *lock(&self.blocks));
        blocks
            .of_size
            .into_iter()
            .flat_map(|((lane, _), list)| list.into_iter().map(move |block| (lane, block)))
            .collect()
    }
}

/// How many bytes are in use, now and at most.
#[derive(Default)]
pub(super) struct Usage {
    now: AtomicUsize,
    peak: AtomicUsize,
}

impl Usage {
    pub(super) fn add(&self, len: usize) {
        let now = self.now.fetch_add(len, Ordering::Relaxed) + len;
        self.peak.fetch_max(now, Ordering::Relaxed);
    }

    pub(super) fn sub(&self, len: usize) {
        self.now.fetch_sub(len, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Forgets a peak above this one.
    pub(super) fn lower_peak(&self, peak: usize) {
        self.peak.store(self.now().max(peak), Ordering::Relaxed);
    }

    /// Makes what is in use now the new peak.
    pub(super) fn reset_peak(&self) {
        self.peak.store(self.now(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(most: usize) -> Kept {
        Kept { most, blocks: Mutex::default() }
    }

    #[test]
    fn sizes_waste_at_most_a_quarter() {
        let kept = kept(MOST);
        for len in [1, 511, 512, 513, 4096, 4097, 5000, 100_000, 1 << 19, (1 << 19) + 1, LARGEST] {
            let size = kept.size(len);
            assert!(size >= len && size.is_multiple_of(GRAIN), "{len}: {size}");
            assert!(size - len < GRAIN.max(len / 4 + 1), "{len}: {size}");
            assert_eq!(kept.size(size), size);
        }
        assert_eq!(kept.size(LARGEST + 1), LARGEST + RUN);
    }

    #[test]
    fn a_block_is_found_by_its_size_and_only_once() {
        let kept = kept(MOST);
        assert!(kept.keep(0, 0x1000, 512));
        assert_eq!((kept.take(0, 1024), kept.take(1, 512)), (None, None));
        assert_eq!((kept.take(0, 512), kept.take(0, 512)), (Some(0x1000), None));
    }

    #[test]
    fn no_more_is_kept_than_agreed() {
        let kept = kept(1024);
        assert!(kept.keep(0, 1, 512) && kept.keep(5, 2, 512));
        assert!(!kept.keep(0, 3, 512) && !kept.keep(0, 4, LARGEST + 1));
        let mut all = kept.drain();
        all.sort_unstable();
        assert_eq!(all, [(0, 1), (5, 2)]);
        assert!(kept.keep(0, 3, 512));
    }

    #[test]
    fn the_peak_stays_until_it_is_reset() {
        let usage = Usage::default();
        usage.add(100);
        usage.sub(60);
        assert_eq!((usage.now(), usage.peak()), (40, 100));
        usage.reset_peak();
        usage.add(1);
        assert_eq!(usage.peak(), 41);
    }
}
