//! What a program keeps of its kernels on GPUs between its calls.

use super::ahead::Ahead;
use super::call::CudaCall;
use super::kernel_id::KernelId;
use super::launch::Prepared;
use super::texts::KernelTexts;
use super::tune::Tuned;
use crate::cuda::{self, Function};
use crate::error::Result;
use fuse_compiler::plan::abi::{self, Choice, Geometry, Variant};
use fuse_compiler::plan::{Fused, Kernel, Matmul, Products};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What a program keeps between its calls on GPUs.
pub(crate) struct Functions {
    /// Which texts its kernels have.
    texts: KernelTexts,
    /// How its kernels are walked fastest, where that was timed.
    pub(super) tuned: Tuned,
    /// Loaded kernels, by device, kernel and variant.
    loaded: RwLock<HashMap<(usize, String, Variant), Function>>,
    /// The same of those that do the work of several small ones.
    small: RwLock<HashMap<SmallKey, Function>>,
    /// How many calls in a row had no kernels loaded, though their layouts were new.
    settled: AtomicUsize,
    /// Launches made ready, by device, kernel and layouts.
    prepared: RwLock<HashMap<PreparedKey, Arc<Prepared>>>,
}

type SmallKey = (usize, String, Vec<Variant>);

type PreparedKey = (usize, KernelId, Geometry);

/// After so many calls of new layouts that had no kernels loaded the next most likely have none either.
const SETTLED: usize = 8;
/// So many texts a kernel of several small ones has, before one for any layouts has to do.
const MOST_OF_SMALL: usize = 8;
/// So many layouts are kept ready; with more the oldest are made again.
const PREPARED: usize = 256;

impl Functions {
    /// What was compiled ahead; `dynamic` is that of the attribute.
    pub fn new(dynamic: Option<bool>, ahead: Ahead) -> Self {
        Functions {
            texts: KernelTexts::new(dynamic, ahead),
            tuned: Tuned::default(),
            loaded: RwLock::default(),
            small: RwLock::default(),
            settled: AtomicUsize::new(0),
            prepared: RwLock::default(),
        }
    }

    /// A kernel in a variant; compiled the first time it is asked for.
    pub(super) fn get(&self, call: &CudaCall<'_>, kernel: &Kernel, variant: &Variant) -> Result<Function> {
        let key = (call.ordinal, kernel.name.clone(), variant.clone());
        if let Some(function) = read(&self.loaded).get(&key) {
            return Ok(function.clone());
        }
        let function = match self.texts.ahead.code(kernel, &call.context.facts().arch, variant) {
            Some(code) => call.context.compiled_function(code, call.source, &kernel.name)?,
            None => call.function(&kernel.name, &variant.defines(kernel, call.params))?,
        };
        write(&self.loaded).insert(key, function.clone());
        Ok(function)
    }

    /// A kernel that does the work of several small ones, each in a variant.
    pub(super) fn small(&self, call: &CudaCall<'_>, name: &str, kernels: &[(&Kernel, &Variant)]) -> Result<Function> {
        let variants = kernels.iter().map(|(_, variant)| (*variant).clone()).collect();
        let key = (call.ordinal, name.to_owned(), variants);
        if let Some(function) = read(&self.small).get(&key) {
            return Ok(function.clone());
        }
        let function = call.function(name, &abi::small::defines(name, kernels, call.params))?;
        write(&self.small).insert(key, function.clone());
        Ok(function)
    }

    /// Whether kernels were compiled with the crate: the first call takes those, which make no products and run no small kernels together.
    pub(super) fn has_ahead(&self) -> bool {
        !self.texts.ahead.is_empty()
    }

    /// Whether there is such a kernel in these variants, or may still be one of its own for them.
    pub(super) fn has_room_for_small(&self, call: &CudaCall<'_>, name: &str, variants: &[Variant]) -> bool {
        let all = read(&self.small);
        let mut own = all.keys().filter(|(on, kernel, _)| *on == call.ordinal && kernel == name);
        own.clone().count() < MOST_OF_SMALL || own.any(|(.., other)| other == variants)
    }

    /// The text of a kernel for collapsed axes. Where nothing can be compiled it is one for which there is machine code.
    pub(super) fn text(
        &self,
        call: &CudaCall<'_>,
        kernel: &Kernel,
        best: &Variant,
        axes: &Geometry,
        often: bool,
    ) -> Choice {
        let choice = self.texts.choose(call, kernel, best, axes, often);
        if self.texts.ahead.is_empty() || cuda::compiles() || self.get(call, kernel, &choice.variant).is_ok() {
            return choice;
        }
        self.texts.compiled_before(call, kernel, best, axes).unwrap_or(choice)
    }

    /// Whether kernels are likely to be loaded for the next layouts on a device: none were, or some for one of the latest.
    pub(super) fn may_grow(&self, ordinal: usize) -> bool {
        let has_some = read(&self.loaded).keys().any(|(on, ..)| *on == ordinal)
            || read(&self.small).keys().any(|(on, ..)| *on == ordinal);
        self.settled.load(Ordering::Relaxed) < SETTLED || !has_some
    }

    /// How many kernels are loaded.
    pub(crate) fn count(&self) -> usize {
        read(&self.loaded).len() + read(&self.small).len()
    }

    /// Notes whether a call of new layouts had kernels loaded.
    pub(super) fn note_growth(&self, grew: bool) {
        if grew {
            self.settled.store(0, Ordering::Relaxed);
        } else {
            self.settled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a kernel whose name ends like this was loaded.
    #[cfg(test)]
    pub(crate) fn has_loaded(&self, name: &str) -> bool {
        read(&self.loaded).keys().any(|(_, kernel, _)| kernel.ends_with(name))
            || read(&self.small).keys().any(|(_, kernel, _)| kernel.ends_with(name))
    }

    /// What can be known of a launch from its layouts.
    pub(super) fn prepare(&self, call: &CudaCall<'_>, kernel: &Kernel, geometry: &Geometry) -> Result<Arc<Prepared>> {
        self.prepare_as(call, kernel, geometry, |often| Prepared::kernel(call, kernel, geometry, often))
    }

    /// The same of a matmul template, see [`Variant::product`].
    pub(super) fn prepare_product(
        &self,
        call: &CudaCall<'_>,
        matmul: &Matmul,
        axes: &Geometry,
    ) -> Result<Arc<Prepared>> {
        self.prepare_as(call, &matmul.epilogue, axes, |often| Prepared::product(call, matmul, axes, often))
    }

    /// The same of several products in one kernel, whose own text would be `best`, see [`Variant::products`].
    pub(super) fn prepare_products(
        &self,
        call: &CudaCall<'_>,
        products: &Products,
        axes: &Geometry,
        best: &Variant,
    ) -> Result<Arc<Prepared>> {
        self.prepare_as(call, &products.program, axes, |often| Prepared::products(call, products, axes, best, often))
    }

    /// The same of attention in one kernel, see [`Variant::attention`].
    pub(super) fn prepare_attention(
        &self,
        call: &CudaCall<'_>,
        fused: &Fused,
        part: abi::Part,
        axes: &Geometry,
    ) -> Result<Arc<Prepared>> {
        self.prepare_as(call, part.program(fused), axes, |often| Prepared::attention(call, fused, part, axes, often))
    }

    fn prepare_as(
        &self,
        call: &CudaCall<'_>,
        kernel: &Kernel,
        geometry: &Geometry,
        make: impl FnOnce(bool) -> Result<Prepared>,
    ) -> Result<Arc<Prepared>> {
        let key = (call.ordinal, KernelId::of(kernel), geometry.clone());
        let found = read(&self.prepared).get(&key).cloned();
        if let Some(prepared) = found.as_ref().filter(|prepared| !prepared.wants_own_text()) {
            return Ok(prepared.clone());
        }
        // Layouts that come again are worth a text of their own, and so are those of functions that are to be tuned.
        let prepared = Arc::new(make(found.is_some() || call.tunes)?);
        let mut all = write(&self.prepared);
        if all.len() >= PREPARED {
            all.clear();
        }
        all.insert(key, prepared.clone());
        Ok(prepared)
    }

    /// Makes a launch ready anew when it is next asked for.
    pub(super) fn forget(&self, call: &CudaCall<'_>, kernel: &Kernel, geometry: &Geometry) {
        write(&self.prepared).remove(&(call.ordinal, KernelId::of(kernel), geometry.clone()));
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(|poisoned| poisoned.into_inner())
}
