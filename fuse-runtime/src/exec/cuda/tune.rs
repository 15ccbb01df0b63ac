//! `mode = "max-autotune"`: the first call of a class of layouts times the ways a kernel may be walked, and takes the fastest.
//!
//! Candidates run on copies of what the kernel reads, and write to memory of their own: nothing of the user's is written
//! before the launch that is meant. Where there is no room for copies, or nothing to choose from, the usual way is taken.

use super::bind::{Address, Bound};
use super::call::CudaCall;
use super::kernel_id::KernelId;
use super::launch::Prepared;
use super::tune_product::Multiplier;
use crate::cuda::{Buffer, Clock, text_key};
use crate::error::Result;
use crate::log::{self, Topic};
use crate::tune::{Book, Subject, Timed, Winner, fastest};
use fuse_compiler::plan::Kernel;
use fuse_compiler::plan::abi::{Candidate, Geometry, Variant};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// What was fastest for a program.
#[derive(Default)]
pub(super) struct Tuned {
    /// How its kernels are walked.
    kernels: Fastest<Candidate>,
    /// What multiplies its matrices, by the kernel behind the product.
    pub(super) products: Fastest<Multiplier>,
}

/// What was fastest, by device, kernel and class of layouts.
pub(super) struct Fastest<C>(RwLock<HashMap<ClassKey, Option<C>>>);

impl<C> Default for Fastest<C> {
    fn default() -> Self {
        Fastest(RwLock::default())
    }
}

type ClassKey = (usize, KernelId, String);

/// So many classes of a program's kernels are timed; then new ones take the usual way.
const CLASSES: usize = 64;

/// Copies begin as far from a multiple of this as what they are copies of.
pub(super) const ALIGN: u64 = 256;

impl<C: Copy> Fastest<C> {
    /// The fastest way, `Some(None)` for the usual one; `None` where that is not known.
    pub(super) fn find(&self, call: &CudaCall<'_>, kernel: &Kernel, class: &str) -> Option<Option<C>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let key = (call.ordinal, KernelId::of(kernel), class.to_owned());
        known.get(&key).copied().or_else(|| (known.len() >= CLASSES).then_some(None))
    }

    pub(super) fn note(&self, call: &CudaCall<'_>, kernel: &Kernel, class: String, candidate: Option<C>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert((call.ordinal, KernelId::of(kernel), class), candidate);
    }
}

impl CudaCall<'_> {
    /// The variant a layout would have for itself: the fastest, where that is known.
    pub(super) fn best(&self, kernel: &Kernel, axes: &Geometry) -> Variant {
        let target = self.context.facts().target();
        let usual = Variant::choose(kernel, axes, &target);
        let tuned = self.tunes.then(|| self.functions.tuned.kernels.find(self, kernel, &class(axes, &usual)));
        let fastest = tuned.flatten().flatten();
        fastest.and_then(|way| Variant::of_candidate(kernel, axes, &target, way)).unwrap_or(usual)
    }

    /// Sees to it that the fastest way is known, as far as it can be.
    pub(super) fn tune(&self, kernel: &Kernel, bound: &Bound) {
        if self.is_tuned(kernel, &bound.geometry) {
            return;
        }
        let axes = bound.geometry.collapse(kernel);
        let candidates = Variant::candidates(kernel, &axes, &self.context.facts().target());
        let class = class(&axes, &candidates[0]);
        let way = match candidates.len() {
            1 => None,
            _ => self.time(kernel, bound, &axes, &candidates, &self.subject(kernel, &class)),
        };
        self.functions.tuned.kernels.note(self, kernel, class, way);
        self.functions.forget(self, kernel, &bound.geometry);
    }

    /// Whether the fastest way is known, in this process or from the file; there is none where there is nothing to walk.
    pub(super) fn is_tuned(&self, kernel: &Kernel, geometry: &Geometry) -> bool {
        let axes = geometry.collapse(kernel);
        let class = class(&axes, &Variant::choose(kernel, &axes, &self.context.facts().target()));
        if axes.is_empty() || self.functions.tuned.kernels.find(self, kernel, &class).is_some() {
            return true;
        }
        let known = Book::of_user().find(&self.subject(kernel, &class));
        let way = known.and_then(|timed| ron::from_str::<Candidate>(&timed.choice).ok());
        if way.is_some() {
            self.functions.tuned.kernels.note(self, kernel, class, way);
        }
        way.is_some()
    }

    /// Times candidates; `None` where they cannot be.
    fn time(
        &self,
        kernel: &Kernel,
        bound: &Bound,
        axes: &Geometry,
        candidates: &[Variant],
        subject: &Subject,
    ) -> Option<Candidate> {
        let scratch = Scratch::new(self, kernel, bound).ok().flatten()?;
        let clock = Clock::new(self.context).ok()?;
        let prepare = |variant: &Variant| Prepared::walked(self, kernel, axes, variant);
        let prepared: Vec<Result<Prepared>> = candidates.par_iter().map(prepare).collect();
        let time = |index: usize| match &prepared[index] {
            Ok(prepared) => clock.time(|| prepared.launch(self, kernel, &scratch.bound, &[])),
            Err(error) => Err(error.clone()),
        };
        let winner = fastest(&kernel.name, candidates.len(), time)?;
        let way = candidates[winner.index].candidate();
        write_down(subject, &way, &winner, candidates.len());
        Some(way)
    }

    /// What a choice is about, for the file.
    pub(super) fn subject(&self, kernel: &Kernel, class: &str) -> Subject {
        let facts = self.context.facts();
        let types: Vec<(&str, String)> = self.params.iter().map(|dtype| ("T", dtype.to_string())).collect();
        Subject {
            device: facts.name.to_string(),
            arch: facts.arch.to_string(),
            kernel: kernel.name.clone(),
            text: text_key(self.source, &kernel.name, &types, self.contract),
            shape: class.to_owned(),
        }
    }
}

/// Writes down what was fastest of so many.
pub(super) fn write_down(subject: &Subject, choice: &impl Serialize, winner: &Winner, many: usize) {
    let choice = ron::to_string(choice).expect("a choice is plain data");
    let (Subject { kernel, shape, .. }, &Winner { us, default_us, .. }) = (subject, winner);
    log::line(
        Topic::Tune,
        format_args!("{kernel} {shape}: {choice} takes {us:.1} us, the usual {default_us:.1}, of {many} candidates"),
    );
    Book::of_user().note(subject, &Timed { choice, us, default_us });
}

/// Layouts for which the same way is fastest: extents up to the same powers of two, walked alike.
fn class(axes: &Geometry, usual: &Variant) -> String {
    let up_to = |extents: &[i64]| {
        let list: Vec<String> =
            extents.iter().map(|n| (n.max(&1).unsigned_abs()).next_power_of_two().to_string()).collect();
        list.join("x")
    };
    let steps: String = usual.steps.iter().map(|step| (*step as u8).to_string()).collect();
    let inner = if axes.inner.is_empty() { String::new() } else { format!(" | {}", up_to(&axes.inner)) };
    format!("up to {}{inner}, steps {steps}, vec {}", up_to(&axes.outer), usual.vec)
}

/// What candidates work on.
pub(super) struct Scratch {
    pub(super) bound: Bound,
    _memory: Vec<Buffer>,
}

impl Scratch {
    /// Copies of what a kernel reads and room for what it writes; `None` where there is not enough for them and for what
    /// else timing takes.
    pub(super) fn new(call: &CudaCall<'_>, kernel: &Kernel, bound: &Bound) -> Result<Option<Scratch>> {
        let reaches: Vec<Reach> = (0..bound.operands.len()).map(|operand| Reach::new(bound, operand)).collect();
        let wanted: usize = reaches.iter().map(Reach::room).sum();
        let (free, _) = call.context.memory_info()?;
        if wanted + 4 * call.context.facts().l2_bytes as usize > free {
            log::line(Topic::Tune, format_args!("{} is not timed, {wanted} bytes are too many", kernel.name));
            return Ok(None);
        }
        let (mut operands, mut memory) = (Vec::with_capacity(reaches.len()), Vec::with_capacity(reaches.len()));
        for (k, (reach, operand)) in reaches.iter().zip(&bound.operands).enumerate() {
            let buffer = Buffer::new(call.context, reach.room())?;
            operands.push(Address::new(reach.copy(&buffer, operand.start, k < kernel.leaves.len())?, operand.axis));
            memory.push(buffer);
        }
        Ok(Some(Scratch { bound: Bound { geometry: bound.geometry.clone(), operands }, _memory: memory }))
    }

    /// Has what the kernel reads in a range of addresses read so far from there.
    pub(super) fn read_elsewhere(&mut self, kernel: &Kernel, bound: &Bound, range: Range<u64>, moved: u64) {
        let leaves = self.bound.operands.iter_mut().zip(&bound.operands).take(kernel.leaves.len());
        leaves.filter(|(_, operand)| range.contains(&operand.start)).for_each(|(copy, operand)| {
            copy.start = operand.start.wrapping_add(moved);
        });
    }
}

/// The bytes an operand reaches over.
struct Reach {
    /// How far before the first element they begin.
    before: u64,
    /// None of an operand that is computed and not read.
    len: usize,
}

impl Reach {
    fn new(bound: &Bound, operand: usize) -> Reach {
        let (access, [extent, stride]) = (&bound.geometry.operands[operand], bound.operands[operand].axis);
        let extents = bound.geometry.outer.iter().chain(&bound.geometry.inner).chain([&extent]);
        let strides = access.strides.iter().copied();
        // A gather and a scatter move along an axis of their own as well.
        let strides = strides.chain(std::iter::repeat(0)).take(extents.clone().count() - 1).chain([stride]);
        let moves: Vec<i64> = strides.zip(extents).map(|(stride, extent)| stride * (extent - 1).max(0)).collect();
        let before: i64 = moves.iter().map(|moved| -moved.min(&0)).sum();
        let after: i64 = moves.iter().map(|moved| moved.max(&0)).sum();
        let bytes = access.bytes as i64;
        Reach { before: (before * bytes) as u64, len: ((before + after + 1) * bytes) as usize }
    }

    /// Room for them wherever they begin.
    fn room(&self) -> usize {
        if self.len == 0 { 0 } else { self.len + ALIGN as usize }
    }

    /// Where the first element of an operand lies in memory of its own, which has what is read copied into it.
    fn copy(&self, buffer: &Buffer, start: u64, is_read: bool) -> Result<u64> {
        if self.len == 0 {
            return Ok(start);
        }
        let first = start - self.before;
        let place = place(buffer, first);
        if is_read {
            buffer.context().copy(place, first, self.len)?;
        }
        Ok(place + self.before)
    }
}

/// Where in a buffer the copy of what lies at an address begins, see [`ALIGN`].
pub(super) fn place(buffer: &Buffer, of: u64) -> u64 {
    buffer.ptr() + of.wrapping_sub(buffer.ptr()) % ALIGN
}
