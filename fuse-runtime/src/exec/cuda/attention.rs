//! Attention in one kernel, where the device, the element type and the layouts have one.

use super::bind::{Bound, WIDEST, bind};
use super::call::CudaCall;
use super::launch::launch_kernel;
use crate::cuda;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::log::{self, Topic};
use crate::raw::RawTensor;
use fuse_compiler::plan::abi::{Access, BATCH_AXES, Geometry, Variant};
use fuse_compiler::plan::{Fused, Plan};
use fuse_compiler::types::DType;

/// Launches attention as one kernel, and what follows it; `false` if it has to be run in steps, and nothing was launched.
pub(super) fn launch_attention(
    call: &CudaCall<'_>,
    plan: &Plan,
    fused: &Fused,
    buffers: &mut Buffers<'_>,
) -> Result<bool> {
    let Some(heads) = Heads::find(call, plan, fused, buffers)? else { return Ok(false) };
    let prepared = match call.functions.prepare_attention(call, fused, &heads.axes) {
        Ok(prepared) => prepared,
        // Where there is nothing to compile it with, the steps may have been compiled ahead.
        Err(_) if !cuda::compiles() => return Ok(false),
        Err(error) => return Err(error),
    };
    log::line(Topic::Launch, format_args!("{} in one kernel", fused.score.name));
    prepared.launch(call, &fused.score, &heads.score, &heads.matrices.each_ref().map(RawTensor::address))?;
    let (_, _, values) = fused.steps.steps(plan);
    values.lib.rest.as_ref().map_or(Ok(()), |rest| launch_kernel(call, rest, buffers))?;
    Ok(true)
}

/// The axes of attention in one kernel, if it will be launched as such.
pub(super) fn attention_axes(
    call: &CudaCall<'_>,
    plan: &Plan,
    fused: &Fused,
    buffers: &mut Buffers<'_>,
) -> Result<Option<Geometry>> {
    Ok(Heads::find(call, plan, fused, buffers)?.map(|heads| heads.axes))
}

/// What attention reads and writes.
struct Heads {
    /// Queries, keys, values, result.
    matrices: [RawTensor; 4],
    /// What a score reads beside the product.
    score: Bound,
    /// The axes that [`Variant::attention`] takes.
    axes: Geometry,
}

impl Heads {
    fn find(call: &CudaCall<'_>, plan: &Plan, fused: &Fused, buffers: &mut Buffers<'_>) -> Result<Option<Heads>> {
        let (scores, _, values) = fused.steps.steps(plan);
        let has_kernel = values.dtype.is_half() || values.dtype == DType::F32;
        let is_there = has_kernel && call.context.facts().target().capability == 90;
        if !is_there || scores.batch.len() > BATCH_AXES {
            return Ok(None);
        }
        let [m, n, depth] = [&scores.m, &scores.n, &scores.k].map(|dim| call.sizes.value(dim));
        let columns = call.sizes.value(&values.n);
        // Asked before there is memory for the result.
        let [queries, keys, of_values] = [&scores.a, &scores.b, &values.b].map(|operand| buffers.operand(operand));
        let [queries, keys, of_values] = [queries?, keys?, of_values?];
        let rank = scores.batch.len() + 2;
        let [query_rows, key_rows, value_rows] =
            [rows(&queries, rank - 2, rank - 1), rows(&keys, rank - 1, rank - 2), rows(&of_values, rank - 2, rank - 1)];
        let (Some(query_rows), Some(key_rows), Some(value_rows)) = (query_rows, key_rows, value_rows) else {
            return Ok(None);
        };
        // A score is stored nowhere.
        buffers.stand_in(fused.steps.weights)?;
        let score = bind(&fused.score, buffers, call.sizes);
        buffers.forget_stand_in(fused.steps.weights);
        let score = score?;
        let mut axes = super::matmul::padded(&score.geometry)?;
        axes.inner = vec![depth, columns];
        debug_assert_eq!(axes.outer[BATCH_AXES..], [m, n]);
        // The result is most likely laid out as the queries are; where it is not, a second look tells.
        axes.operands.extend([query_rows.clone(), key_rows, value_rows, query_rows]);
        let target = call.context.facts().target();
        if Variant::attention(fused, &axes, &target).is_none() {
            return Ok(None);
        }
        let result = buffers.operand(&values.lib.product)?;
        let Some(result_rows) = rows(&result, rank - 2, rank - 1) else { return Ok(None) };
        *axes.operands.last_mut().expect("four matrices were put there") = result_rows;
        let is_there = Variant::attention(fused, &axes, &target).is_some();
        let matrices = [queries, keys, of_values, result];
        Ok(is_there.then_some(Heads { matrices, score, axes }))
    }
}

/// How a matrix whose rows and columns are these axes is walked row by row, if elements of a row lie next to each other.
fn rows(tensor: &RawTensor, rows: usize, columns: usize) -> Option<Access> {
    let (layout, strides, shape) = (tensor.layout(), tensor.layout().strides(), tensor.shape());
    if strides[columns] != 1 && shape[columns] != 1 {
        return None;
    }
    let stride = |axis: usize| if shape[axis] == 1 { 0 } else { strides[axis] as i64 };
    let mut all = vec![0; BATCH_AXES + 2 - layout.rank()];
    all.extend((0..layout.rank() - 2).map(stride));
    all.push(stride(rows));
    Some(Access { strides: all, address: tensor.address() % WIDEST, bytes: tensor.dtype().bytes(), indexed: false })
}
