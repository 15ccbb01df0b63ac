//! The CPU side of a kernel.

use super::simd::vectorised;
use super::{Ins, Outs, Sums};

/// The points that go through a long program together, stage by stage: values that wait for the next stage stay in the
/// first cache.
pub const BLOCK: usize = 256;

/// The CPU side of one kernel; implemented by emitted code, one unit struct a kernel, and by the interpreter.
///
/// Implementations mark their methods `#[inline(always)]`, so that they are compiled once for each vector width.
pub trait Body: Sync {
    /// One run of consecutive points of a `Map` kernel; one whole row, column or line of the other kinds.
    fn run(&self, ins: &Ins<'_>, outs: &mut Outs<'_>);

    /// The statements of level `All`, once, after every row.
    fn finish(&self, _ins: &Ins<'_>, _outs: &mut Outs<'_>) {}

    /// Whether there is a [`Body::sums`].
    const SUMS: bool = false;

    /// Adds some rows of neighbouring columns to their sums; [`Body::run`] then finds these, and no points.
    fn sums(&self, _ins: &Ins<'_>, _sums: &mut Sums<'_>) {}
}

/// A [`Body`] behind a pointer, compiled for every vector width and dispatched at run time.
pub trait DynBody: Sync {
    /// [`Body::run`] with the widest vectors of this machine.
    fn run_widest(&self, ins: &Ins<'_>, outs: &mut Outs<'_>);

    /// [`Body::finish`] with the widest vectors of this machine.
    fn finish_widest(&self, ins: &Ins<'_>, outs: &mut Outs<'_>);

    /// [`Body::SUMS`].
    fn has_sums(&self) -> bool;

    /// [`Body::sums`] with the widest vectors of this machine.
    fn sums_widest(&self, ins: &Ins<'_>, sums: &mut Sums<'_>);
}

impl<B: Body> DynBody for B {
    fn run_widest(&self, ins: &Ins<'_>, outs: &mut Outs<'_>) {
        vectorised(
            #[inline(always)]
            || self.run(ins, outs),
        )
    }

    fn finish_widest(&self, ins: &Ins<'_>, outs: &mut Outs<'_>) {
        vectorised(
            #[inline(always)]
            || self.finish(ins, outs),
        )
    }

    fn has_sums(&self) -> bool {
        B::SUMS
    }

    fn sums_widest(&self, ins: &Ins<'_>, sums: &mut Sums<'_>) {
        vectorised(
            #[inline(always)]
            || self.sums(ins, sums),
        )
    }
}
