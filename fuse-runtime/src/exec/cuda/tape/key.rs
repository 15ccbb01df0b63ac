//! What two calls of a program must agree on to have one tape, and the tapes that are kept.

use super::Tape;
use crate::exec::run::Call;
use crate::raw::RawTensor;
use fuse_compiler::types::DType;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// So many kinds of calls are remembered of a program; then those that were not called for longest are forgotten.
const KEPT: usize = 256;

/// The kinds of calls of a program that were seen.
#[derive(Default)]
pub(crate) struct Tapes {
    known: RwLock<HashMap<u64, Known, BuildHasherDefault<AsIs>>>,
    clock: AtomicU64,
}

/// A kind of call.
struct Known {
    /// The words that [`words`] gives for it.
    key: Box<[u64]>,
    tape: Option<Arc<Tape>>,
    last_used: AtomicU64,
}

/// What is known of a call.
pub(crate) enum Found {
    /// It was taken down.
    Tape(Arc<Tape>),
    /// It was run once.
    Seen,
    /// Nothing.
    New,
}

impl Tapes {
    /// What is known of calls like this one.
    pub fn find(&self, call: &Call<'_>) -> Found {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match known.get(&hash(call)).filter(|known| known.is(call)) {
            None => Found::New,
            Some(Known { tape: None, .. }) => Found::Seen,
            Some(Known { tape: Some(tape), last_used, .. }) => {
                last_used.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
                Found::Tape(tape.clone())
            }
        }
    }

    /// Remembers that such a call was run, with the tape if it was taken down. Of two kinds with one hash the later is kept.
    pub fn keep(&self, call: &Call<'_>, tape: Option<Arc<Tape>>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            forget_half(&mut known);
        }
        let mut key = Vec::new();
        words(call, |word| {
            key.push(word);
            true
        });
        // Time goes by only when something new is remembered: all that is asked of it is what was used since.
        let last_used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed) + 1);
        known.insert(hash(call), Known { key: key.into(), tape, last_used });
    }
}

fn forget_half<S: std::hash::BuildHasher>(known: &mut HashMap<u64, Known, S>) {
    let used = |known: &Known| known.last_used.load(Ordering::Relaxed);
    let mut times: Vec<u64> = known.values().map(used).collect();
    times.sort_unstable();
    let middle = times[times.len() / 2];
    known.retain(|_, known| used(known) > middle);
}

impl Known {
    fn is(&self, call: &Call<'_>) -> bool {
        let mut own = self.key.iter();
        words(call, |word| own.next() == Some(&word)) && own.len() == 0
    }
}

/// Everything that decides which launches a call becomes, but for the addresses, scalars and random numbers in them: how
/// every argument lies, which of them results may take over, and the host integers. Stops where `visit` says `false`.
#[inline(always)]
fn words(call: &Call<'_>, mut visit: impl FnMut(u64) -> bool) -> bool {
    for (k, tensor) in call.tensors.iter().enumerate() {
        let layout = tensor.layout();
        let (rank, dtype) = (layout.rank() as u64, code(tensor.dtype()));
        let alignment = u64::from(alignment(tensor, call.program.alignments.get(k).copied().unwrap_or(MOST_ALIGNED)));
        let given = u64::from(call.gives(k));
        if !visit(rank | dtype << 8 | alignment << 16 | given << 24) {
            return false;
        }
        for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
            if !visit(extent as u64) || !visit(stride as u64) {
                return false;
            }
        }
    }
    call.device.cuda_ordinal().into_iter().map(|n| n as u64).chain(call.host_ints.iter().map(|&n| n as u64)).all(visit)
}

/// Beyond the arguments of its program a call has some whose use is not known here.
const MOST_ALIGNED: u32 = 8;

/// The power of two that the address of a tensor is a multiple of, up to the largest that matters.
fn alignment(tensor: &RawTensor, most: u32) -> u32 {
    tensor.address().trailing_zeros().min(most)
}

fn code(dtype: DType) -> u64 {
    match dtype {
        DType::F32 => 0,
        DType::F64 => 1,
        DType::F16 => 2,
        DType::BF16 => 3,
        DType::I64 => 4,
        DType::I32 => 5,
        DType::U8 => 6,
        DType::Bool => 7,
        DType::F8E4M3 => 8,
        DType::Param(_) | DType::Compute(_) => unreachable!("a tensor has a concrete type"),
    }
}

#[inline]
fn hash(call: &Call<'_>) -> u64 {
    // The multiplier of the Fx hash; the words are small numbers, so the best bits end up on top.
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let mut hash = 0u64;
    words(call, |word| {
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
        true
    });
    hash ^ (hash >> 32)
}

/// The hash of a number that is a hash already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
