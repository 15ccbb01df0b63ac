//! `mode = "max-autotune"` for products of matrices: the library with what follows in a kernel of its own, and the template in
//! several tiles with all in one, are timed as wholes.
//!
//! Matrices are only read, so they are those of the call; everything else is copies, as for other kernels. Sums are made in another
//! order by each, so which one was fastest also fixes the bits: a file that is committed fixes them for all.

use super::bind::{Bound, bind};
use super::call::CudaCall;
use super::launch::Prepared;
use super::matmul::{LibraryCalls, Product, target_of_products};
use super::tune::{ALIGN, Scratch, place, write_down};
use crate::cuda::{Buffer, Clock};
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::tune::{Book, fastest};
use fuse_compiler::plan::abi::{Geometry, Target, Variant, Way};
use fuse_compiler::plan::{Kernel, Matmul};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Multiplier {
    /// The library.
    Library,
    /// The template, which shares its points among threads in this way.
    Template(Way),
}

/// One that is ready to be timed.
enum Ready<'p> {
    Library(Box<ByLibrary<'p>>),
    Template(Prepared),
}

impl CudaCall<'_> {
    /// What multiplies fastest, if that was found out.
    pub(super) fn multiplier(&self, matmul: &Matmul, axes: &Geometry) -> Option<Multiplier> {
        if self.tunes { self.known_multiplier(matmul, axes).flatten() } else { None }
    }

    /// The same, `Some(None)` for what usually does; `None` where that is not known.
    fn known_multiplier(&self, matmul: &Matmul, axes: &Geometry) -> Option<Option<Multiplier>> {
        let (kernel, class) = (&matmul.epilogue, self.class_of_product(matmul, axes));
        self.functions.tuned.products.find(self, kernel, &class).or_else(|| {
            let known = Book::of_user().find(&self.subject(kernel, &class))?;
            let multiplier = ron::from_str(&known.choice).ok()?;
            self.functions.tuned.products.note(self, kernel, class, Some(multiplier));
            Some(Some(multiplier))
        })
    }

    /// The variant of the template: the fastest, where that is known.
    pub(super) fn best_product(&self, matmul: &Matmul, axes: &Geometry, target: &Target) -> Variant {
        let (kernel, dtype) = (&matmul.epilogue, matmul.dtype);
        let fastest = self.multiplier(matmul, axes).and_then(|multiplier| match multiplier {
            Multiplier::Template(way) => Variant::of_product_candidate(kernel, dtype, axes, target, way),
            Multiplier::Library => None,
        });
        fastest.unwrap_or_else(|| Variant::product(kernel, dtype, axes, target))
    }

    /// Sees to it that the fastest is known, as far as it can be.
    pub(super) fn tune_matmul(&self, matmul: &Matmul, product: &Product, buffers: &mut Buffers<'_>) -> Result<()> {
        let kernel = &matmul.epilogue;
        let bound = bind(kernel, buffers, self.sizes)?;
        let axes = product.axes(&bound.geometry)?;
        if axes.is_empty() || self.known_multiplier(matmul, &axes).is_some() {
            return Ok(());
        }
        let fastest = self.time_product(matmul, product, (&bound, &axes), buffers);
        self.functions.tuned.products.note(self, kernel, self.class_of_product(matmul, &axes), fastest);
        self.functions.forget(self, kernel, &axes);
        Ok(())
    }

    /// Times all there are; `None` where they cannot be, or there is one alone.
    fn time_product(
        &self,
        matmul: &Matmul,
        product: &Product,
        (bound, axes): (&Bound, &Geometry),
        buffers: &mut Buffers<'_>,
    ) -> Option<Multiplier> {
        let kernel = &matmul.epilogue;
        let scratch = Scratch::new(self, kernel, bound).ok().flatten()?;
        let library = ByLibrary::new(self, matmul, product, buffers).ok().flatten();
        let mut all = self.templates(matmul, axes);
        if let Some(library) = library {
            // What would be taken without tuning is the first.
            let place = if product.usually_by_template(self, matmul).ok()? { all.len() } else { 0 };
            all.insert(place, (Multiplier::Library, Ok(Ready::Library(Box::new(library)))));
        }
        if all.len() == 1 {
            return None;
        }
        let matrices = product.addresses();
        let clock = Clock::new(self.context).ok()?;
        let time = |index: usize| match &all[index].1 {
            Ok(Ready::Library(library)) => clock.time(|| library.launch(self)),
            Ok(Ready::Template(prepared)) => clock.time(|| prepared.launch(self, kernel, &scratch.bound, &matrices)),
            Err(error) => Err(error.clone()),
        };
        let winner = fastest(&kernel.name, all.len(), time)?;
        let multiplier = all[winner.index].0;
        write_down(&self.subject(kernel, &self.class_of_product(matmul, axes)), &multiplier, &winner, all.len());
        Some(multiplier)
    }

    /// The template in all tiles that may be fastest, ready to be timed.
    fn templates(&self, matmul: &Matmul, axes: &Geometry) -> Vec<(Multiplier, Result<Ready<'static>>)> {
        let variants = Variant::product_candidates(&matmul.epilogue, matmul.dtype, axes, &target_of_products(self));
        let ready = |variant: &Variant| Prepared::multiplied(self, matmul, axes, variant).map(Ready::Template);
        let ready: Vec<Result<Ready>> = variants.par_iter().map(ready).collect();
        variants.iter().map(|variant| Multiplier::Template(variant.candidate().way)).zip(ready).collect()
    }

    /// Products for which the same is fastest: those of the same extents whose operands lie alike.
    fn class_of_product(&self, matmul: &Matmul, axes: &Geometry) -> String {
        let usual = Variant::product(&matmul.epilogue, matmul.dtype, axes, &target_of_products(self));
        let list = |extents: &[i64]| extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        let steps: String = usual.steps.iter().map(|step| (*step as u8).to_string()).collect();
        let matrices = &axes.operands[axes.operands.len() - 2..];
        let lies: Vec<String> = matrices.iter().map(|matrix| list(&matrix.strides)).collect();
        let (outer, inner, vec) = (list(&axes.outer), list(&axes.inner), usual.vec);
        format!("{outer} | {inner}, strides {}, steps {steps}, vec {vec}", lies.join(" and "))
    }
}

/// A product by the library and what follows it, of which nothing is written to what is the user's.
struct ByLibrary<'p> {
    calls: LibraryCalls,
    rest: Option<(&'p Kernel, Arc<Prepared>, Scratch)>,
    _product: Buffer,
}

impl<'p> ByLibrary<'p> {
    /// `None` where the library does not take the product, or there is no room.
    fn new(
        call: &CudaCall<'_>,
        matmul: &'p Matmul,
        product: &Product,
        buffers: &mut Buffers<'_>,
    ) -> Result<Option<Self>> {
        let Some(mut calls) = product.library_calls(call, matmul, buffers)? else { return Ok(None) };
        let out = &calls.out;
        let Some((low, high)) = out.layout().span() else { return Ok(None) };
        let size = out.dtype().bytes() as i64;
        let (before, len) = ((out.layout().offset() - low) as i64 * size, (high - low + 1) as i64 * size);
        let buffer = Buffer::new(call.context, len as usize + ALIGN as usize)?;
        let start = out.address().wrapping_add_signed(-before);
        let moved = place(&buffer, start).wrapping_sub(start);
        let rest = match &matmul.lib.rest {
            None => None,
            Some(rest) => {
                let bound = bind(rest, buffers, call.sizes)?;
                call.tune(rest, &bound);
                let Some(mut scratch) = Scratch::new(call, rest, &bound)? else { return Ok(None) };
                scratch.read_elsewhere(rest, &bound, start..start + len as u64, moved);
                Some((rest, call.functions.prepare(call, rest, &bound.geometry)?, scratch))
            }
        };
        calls.tune(call)?;
        for problem in &mut calls.problems {
            problem.c.address = problem.c.address.wrapping_add(moved);
        }
        let ready = ByLibrary { calls, rest, _product: buffer };
        Ok(ready.calls.multiply(call)?.then_some(ready))
    }

    fn launch(&self, call: &CudaCall<'_>) -> Result<()> {
        self.calls.multiply(call)?;
        match &self.rest {
            Some((kernel, prepared, scratch)) => prepared.launch(call, kernel, &scratch.bound, &[]),
            None => Ok(()),
        }
    }
}
