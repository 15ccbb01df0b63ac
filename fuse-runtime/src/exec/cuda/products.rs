//! Products of one left operand in one kernel, where that is faster than one after the other.

use super::bind::{Bound, bind};
use super::call::CudaCall;
use super::launch::{Prepared, unless_steps_may_be_compiled};
use super::matmul::{access, padded, target_of_products, template_is_forced, tensor_cores_are_forced};
use crate::env::is_without;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::log::{self, Topic};
use crate::raw::RawTensor;
use fuse_compiler::plan::abi::{Access, Apart, BATCH_AXES, Geometry, Target, Variant, Walk};
use fuse_compiler::plan::{Plan, Products};
use fuse_compiler::types::DType;
use std::sync::{Arc, LazyLock};

/// Launches products as one kernel; `false` if they are to be made one after the other, and nothing was launched.
pub(super) fn launch_products(
    call: &CudaCall<'_>,
    plan: &Plan,
    products: &Products,
    buffers: &mut Buffers<'_>,
) -> Result<bool> {
    let Some(together) = Together::find(call, plan, products, buffers)? else { return Ok(false) };
    let Some(prepared) = unless_steps_may_be_compiled(together.prepare(call))? else { return Ok(false) };
    log::line(Topic::Launch, format_args!("{} for {} products", products.program.name, products.count));
    let addresses: Vec<u64> = together.matrices.iter().map(RawTensor::address).collect();
    prepared.launch(call, &products.program, &together.operands, &addresses)?;
    Ok(true)
}

/// Products that one kernel makes.
pub(super) struct Together<'p> {
    products: &'p Products,
    /// The left operand, then the right ones.
    matrices: Vec<RawTensor>,
    /// What the program reads beside them, and what it writes.
    operands: Bound,
    /// The axes that [`Variant::products`] takes.
    axes: Geometry,
    /// The best text for them.
    best: Variant,
}

impl<'p> Together<'p> {
    /// Products of a call, if one kernel makes them.
    pub(super) fn find(
        call: &CudaCall<'_>,
        plan: &'p Plan,
        products: &'p Products,
        buffers: &mut Buffers<'_>,
    ) -> Result<Option<Self>> {
        let target = target_of_products(call);
        let first = products.steps(plan).next().expect("there are several");
        let [m, n, k] = [&first.m, &first.n, &first.k].map(|dim| call.sizes.value(dim));
        let is_compiled = call.functions.has_ahead() || target.capability == 0;
        if !uses_products() || is_compiled || first.batch.len() > BATCH_AXES || m * n == 0 {
            return Ok(None);
        }
        let mut matrices = vec![buffers.operand(&first.a)?];
        for step in products.steps(plan) {
            matrices.push(buffers.operand(&step.b)?);
        }
        let (left, Some(right)) = (access(&matrices[0])?, common(&matrices[1..])?) else { return Ok(None) };
        let operands = bind(&products.program, buffers, call.sizes)?;
        let mut axes = padded(&operands.geometry)?;
        axes.inner = vec![k];
        axes.operands.extend([left, right]);
        let apart = Apart { steps: products.steps(plan).collect() };
        let best = best(products, first.dtype, &apart, &axes, &target);
        Ok(best.map(|best| Together { products, matrices, operands, axes, best }))
    }

    /// Makes the launch ready.
    pub(super) fn prepare(&self, call: &CudaCall<'_>) -> Result<Arc<Prepared>> {
        call.functions.prepare_products(call, self.products, &self.axes, &self.best)
    }
}

/// `FUSE_WITHOUT=products` makes every product for itself.
fn uses_products() -> bool {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("products"));
    *USED
}

/// The text for products, if that is faster; tests force what they force of each product.
fn best(products: &Products, dtype: DType, apart: &Apart<'_>, axes: &Geometry, target: &Target) -> Option<Variant> {
    let program = &products.program;
    if !template_is_forced() {
        return Variant::products(program, dtype, apart, axes, target);
    }
    let anyway = Variant::products_anyway(program, dtype, products.count, axes, target)?;
    (tensor_cores_are_forced() || matches!(anyway.walk, Walk::Strips { .. })).then_some(anyway)
}

/// How the right operands are walked, if all are walked alike. They are as aligned as the one that is least so.
fn common(matrices: &[RawTensor]) -> Result<Option<Access>> {
    let mut common = access(&matrices[0])?;
    for matrix in &matrices[1..] {
        let other = access(matrix)?;
        if other.strides != common.strides || matrix.dtype() != matrices[0].dtype() {
            return Ok(None);
        }
        common.address |= other.address;
    }
    Ok(Some(common))
}
