//! Products of matrices: by the library where one call of it does, else by the template with the epilogue in it.

use super::bind::{WIDEST, bind};
use super::call::CudaCall;
use super::launch::launch_kernel;
use super::tune_product::Multiplier;
use crate::cuda::{self, Matrix};
use crate::env::is_without;
use crate::error::{Error, Result};
use crate::exec::buffers::Buffers;
use crate::log::{self, Topic};
use crate::raw::RawTensor;
use fuse_compiler::plan::Matmul;
use fuse_compiler::plan::abi::{
    Access, BATCH_AXES, Geometry, Target, has_few_rows, pays_in_halves, pays_in_slim, pays_in_thirds,
};
use fuse_compiler::types::DType;
use std::sync::LazyLock;

/// Multiplications and additions of one call of the library from which on several calls of it beat one launch of the
/// template: they take long enough that starting them costs nothing, and the library is faster.
const LARGE: i64 = 1 << 33;

/// Elements of a matrix from which on the library multiplies one row with it faster than strips do.
const LARGE_MATRIX: i64 = 1 << 21;

/// Launches a product with what follows it.
pub(super) fn launch_matmul(call: &CudaCall<'_>, matmul: &Matmul, buffers: &mut Buffers<'_>) -> Result<()> {
    let product = Product::new(call, matmul, buffers)?;
    if call.tunes && !call.context.is_tracing() && !template_is_forced() {
        call.tune_matmul(matmul, &product, buffers)?;
    }
    if !product.is_for_template(call, matmul, buffers)? && product.by_library(call, matmul, buffers)? {
        return matmul.lib.rest.as_ref().map_or(Ok(()), |rest| launch_kernel(call, rest, buffers));
    }
    product.by_template(call, matmul, buffers)
}

/// The axes of the template, if it surely takes this product: where the library has no such type, or would take many calls.
pub(super) fn template_axes(
    call: &CudaCall<'_>,
    matmul: &Matmul,
    buffers: &mut Buffers<'_>,
) -> Result<Option<Geometry>> {
    let product = Product::new(call, matmul, buffers)?;
    let certain = !matmul.dtype.is_float() || product.is_for_template(call, matmul, buffers)?;
    if !certain && !product.takes_small_calls([&product.a, &product.b, &product.a], matmul) {
        return Ok(None);
    }
    let bound = bind(&matmul.epilogue, buffers, call.sizes)?;
    product.axes(&bound.geometry).map(Some)
}

#[cfg(not(test))]
pub(super) fn template_is_forced() -> bool {
    false
}

#[cfg(not(test))]
pub(super) fn tensor_cores_are_forced() -> bool {
    false
}

#[cfg(test)]
pub(crate) use forced::{on_tensor_cores, with_template};
#[cfg(test)]
pub(super) use forced::{template_is_forced, tensor_cores_are_forced};

/// Tests multiply with the template what the library would take, and on tensor cores what is too small for them to pay.
#[cfg(test)]
mod forced {
    use std::cell::Cell;

    thread_local! {
        static TEMPLATE: Cell<bool> = const { Cell::new(false) };
        static TENSOR_CORES: Cell<bool> = const { Cell::new(false) };
    }

    pub(in crate::exec::cuda) fn template_is_forced() -> bool {
        TEMPLATE.get()
    }

    pub(in crate::exec::cuda) fn tensor_cores_are_forced() -> bool {
        TENSOR_CORES.get()
    }

    /// Runs `f` with every product of this thread left to the template.
    pub(crate) fn with_template<R>(f: impl FnOnce() -> R) -> R {
        TEMPLATE.set(true);
        let result = f();
        TEMPLATE.set(false);
        result
    }

    /// The same with every product on the tensor cores of Hopper that can be there.
    pub(crate) fn on_tensor_cores<R>(f: impl FnOnce() -> R) -> R {
        TENSOR_CORES.set(true);
        let result = with_template(f);
        TENSOR_CORES.set(false);
        result
    }
}

/// What the template may know of the device. Where nothing can be compiled, the library and plain tiles serve every product,
/// also those that have a text for tensor cores among the ones compiled ahead; `FUSE_WITHOUT=hopper` leaves all to them.
pub(super) fn target_of_products(call: &CudaCall<'_>) -> Target {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("hopper"));
    let target = call.context.facts().target();
    if *USED && call.compiles() { target } else { Target { capability: 0, ..target } }
}

/// `FUSE_WITHOUT=slim` leaves products of few rows of halves to the library.
fn uses_slim() -> bool {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("slim"));
    *USED
}

/// The operands of a product and its extents m, n and k.
pub(super) struct Product {
    a: RawTensor,
    b: RawTensor,
    extents: [i64; 3],
}

/// What the library is called for.
pub(super) struct LibraryCalls {
    /// The product.
    pub out: RawTensor,
    /// One for each call.
    pub problems: Vec<cuda::Matmul>,
    /// Alive until they are launched.
    _bias: Option<RawTensor>,
}

impl LibraryCalls {
    /// Finds out which of the library's algorithms are fastest.
    pub(super) fn tune(&self, call: &CudaCall<'_>) -> Result<()> {
        self.problems.iter().try_for_each(|problem| call.context.tune_product(problem))
    }

    /// Launches them; `false` if the library does not take the product.
    pub(super) fn multiply(&self, call: &CudaCall<'_>) -> Result<bool> {
        for problem in &self.problems {
            if !call.context.matmul(problem)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// One batch axis: its extent, and how far it moves in the operands and the result.
#[derive(Clone, Copy)]
struct BatchAxis {
    extent: i64,
    steps: [i64; 3],
}

impl Product {
    fn new(call: &CudaCall<'_>, matmul: &Matmul, buffers: &mut Buffers<'_>) -> Result<Self> {
        let (a, b) = (buffers.operand(&matmul.a)?, buffers.operand(&matmul.b)?);
        let extents = [&matmul.m, &matmul.n, &matmul.k].map(|dim| call.sizes.value(dim));
        Ok(Product { a, b, extents })
    }

    /// Whether the template multiplies: where it is faster, and, if that was timed, where it was.
    fn is_for_template(&self, call: &CudaCall<'_>, matmul: &Matmul, buffers: &mut Buffers<'_>) -> Result<bool> {
        if call.tunes && !template_is_forced() {
            let axes = self.axes(&bind(&matmul.epilogue, buffers, call.sizes)?.geometry)?;
            if let Some(multiplier) = call.multiplier(matmul, &axes) {
                return Ok(multiplier != Multiplier::Library);
            }
        }
        self.usually_by_template(call, matmul)
    }

    /// Whether the template multiplies where nothing was timed.
    pub(super) fn usually_by_template(&self, call: &CudaCall<'_>, matmul: &Matmul) -> Result<bool> {
        // The library has other sums of fp8, for operands that lie in one way alone.
        let is_float8 = matmul.dtype == DType::F8E4M3;
        Ok(is_float8 || template_is_forced() || self.has_few_rows() || self.pays_on_tensor_cores(call, matmul)?)
    }

    /// Where the matrices lie.
    pub(super) fn addresses(&self) -> [u64; 2] {
        [&self.a, &self.b].map(RawTensor::address)
    }

    /// Multiplies with the library. `false` if it does not take the product, and nothing was launched.
    fn by_library(&self, call: &CudaCall<'_>, matmul: &Matmul, buffers: &mut Buffers<'_>) -> Result<bool> {
        let Some(calls) = self.library_calls(call, matmul, buffers)? else { return Ok(false) };
        if call.tunes && !call.context.is_tracing() {
            calls.tune(call)?;
        }
        calls.multiply(call)
    }

    /// The calls of the library, each for the innermost batch axis; `None` if it cannot or would take many small ones.
    pub(super) fn library_calls(
        &self,
        call: &CudaCall<'_>,
        matmul: &Matmul,
        buffers: &mut Buffers<'_>,
    ) -> Result<Option<LibraryCalls>> {
        let [m, n, _] = self.extents;
        // Asked before there is memory for the product: where its operands take several calls, so does the whole.
        if self.takes_small_calls([&self.a, &self.b, &self.a], matmul) {
            return Ok(None);
        }
        let out = buffers.operand(&matmul.lib.product)?;
        let bias = matmul.lib.bias.as_ref().map(|bias| buffers.operand(bias)).transpose()?;
        let bias_fits = bias.as_ref().is_none_or(|bias| bias.dtype() == matmul.dtype && bias.layout().is_contiguous());
        if (bias.is_some() && out.dtype() != matmul.dtype) || !bias_fits || m * n == 0 {
            return Ok(None);
        }
        if self.takes_small_calls([&self.a, &self.b, &out], matmul) {
            return Ok(None);
        }
        let problems = self.problems(call, matmul, &out, bias.as_ref());
        Ok(Some(LibraryCalls { out, problems, _bias: bias }))
    }

    /// What each of the library's calls computes.
    fn problems(
        &self,
        call: &CudaCall<'_>,
        matmul: &Matmul,
        out: &RawTensor,
        bias: Option<&RawTensor>,
    ) -> Vec<cuda::Matmul> {
        let [m, n, k] = self.extents;
        let (outer, inner) = batch_axes([&self.a, &self.b, out], matmul.batch.len());
        let problem = |place: i64| {
            let first = offsets(&outer, place);
            cuda::Matmul {
                dtype: matmul.dtype,
                out_dtype: out.dtype(),
                batch: inner.extent as usize,
                m: m as usize,
                n: n as usize,
                k: k as usize,
                a: matrix(&self.a, first[0], inner.steps[0]),
                b: matrix(&self.b, first[1], inner.steps[1]),
                c: matrix(out, first[2], inner.steps[2]),
                bias: bias.map(RawTensor::address),
                relu: matmul.lib.relu,
                tf32: matmul.tf32,
                tuned: call.tunes,
            }
        };
        (0..count(&outer)).map(problem).collect()
    }

    /// Whether the template computes the product in strips, which beats the library where a row or a column of the right
    /// operand is one run; not for one row of floats and a large matrix, which the library reads as fast.
    fn has_few_rows(&self) -> bool {
        let [.., along_k, along_n] = *self.b.layout().strides() else { return false };
        let [m, n, k] = self.extents;
        let dtype = self.a.dtype();
        let left_to_library = dtype.is_float() && m == 1 && n * k >= LARGE_MATRIX;
        has_few_rows(m, dtype.bytes()) && (along_k == 1 || along_n == 1) && !left_to_library
    }

    /// Whether the template's kernels for Hopper's tensor cores are faster: of floats, where TF32 is not enough, of halves where much
    /// follows the product that the library cannot do, or its rows are odd.
    fn pays_on_tensor_cores(&self, call: &CudaCall<'_>, matmul: &Matmul) -> Result<bool> {
        let products = self.a.shape().iter().rev().skip(2).map(|&extent| extent as i64).product();
        let (dtype, target) = (self.a.dtype(), target_of_products(call));
        if pays_in_thirds(dtype, products, self.extents, &target) {
            return Ok(!matmul.tf32);
        }
        let (a, b) = (access(&self.a)?, access(&self.b)?);
        if uses_slim() && pays_in_slim(dtype, products, self.extents, [&a, &b], &target) {
            return Ok(true);
        }
        Ok(pays_in_halves(dtype, products, self.extents, [&a, &b], matmul, &target))
    }

    /// Whether the library would take several calls that one launch of the template beats.
    fn takes_small_calls(&self, matrices: [&RawTensor; 3], matmul: &Matmul) -> bool {
        let (outer, inner) = batch_axes(matrices, matmul.batch.len());
        count(&outer) > 1 && 2 * inner.extent * self.extents.iter().product::<i64>() < LARGE
    }

    /// Multiplies with the generated template, whose axes are the batch axes, padded in front, m and n.
    fn by_template(&self, call: &CudaCall<'_>, matmul: &Matmul, buffers: &mut Buffers<'_>) -> Result<()> {
        let (kernel, [m, n, k]) = (&matmul.epilogue, self.extents);
        log::line(Topic::Launch, format_args!("template of {} for {m} x {n} x {k}", kernel.name));
        let bound = bind(kernel, buffers, call.sizes)?;
        let axes = self.axes(&bound.geometry)?;
        let prepared = call.functions.prepare_product(call, matmul, &axes)?;
        prepared.launch(call, kernel, &bound, &self.addresses())
    }

    /// The axes of the epilogue, then k as the inner one; its operands, then the two matrices.
    pub(super) fn axes(&self, epilogue: &Geometry) -> Result<Geometry> {
        let mut axes = padded(epilogue)?;
        axes.inner = vec![self.extents[2]];
        axes.operands.extend([access(&self.a)?, access(&self.b)?]);
        Ok(axes)
    }
}

/// The batch axes, merged where all three matrices allow it: the outer ones, and the innermost.
fn batch_axes(matrices: [&RawTensor; 3], count: usize) -> (Vec<BatchAxis>, BatchAxis) {
    let mut axes: Vec<BatchAxis> = Vec::new();
    for axis in 0..count {
        let steps = matrices.map(|tensor| tensor.layout().strides()[axis] as i64);
        let next = BatchAxis { extent: matrices[0].shape()[axis] as i64, steps };
        match axes.last_mut() {
            _ if next.extent == 1 => {}
            Some(last) if last.steps == steps.map(|step| step * next.extent) => {
                *last = BatchAxis { extent: last.extent * next.extent, steps };
            }
            _ => axes.push(next),
        }
    }
    let inner = axes.pop().unwrap_or(BatchAxis { extent: 1, steps: [0; 3] });
    (axes, inner)
}

/// How many places there are along the outer batch axes.
fn count(outer: &[BatchAxis]) -> i64 {
    outer.iter().map(|axis| axis.extent).product()
}

/// How far the matrices move to a place of the outer batch axes.
fn offsets(outer: &[BatchAxis], place: i64) -> [i64; 3] {
    let (mut left, mut moved) = (place, [0; 3]);
    for axis in outer.iter().rev() {
        for (moved, step) in moved.iter_mut().zip(axis.steps) {
            *moved += left % axis.extent * step;
        }
        left /= axis.extent;
    }
    moved
}

/// A batch of matrices in the last two axes of a tensor.
fn matrix(tensor: &RawTensor, offset: i64, batch_stride: i64) -> Matrix {
    let strides = tensor.layout().strides();
    Matrix {
        address: tensor.address().wrapping_add_signed(offset * tensor.dtype().bytes() as i64),
        row_stride: strides[strides.len() - 2],
        col_stride: strides[strides.len() - 1],
        batch_stride: batch_stride as isize,
    }
}

/// Axes of a product with exactly [`BATCH_AXES`] batch axes.
pub(super) fn padded(geometry: &Geometry) -> Result<Geometry> {
    let missing = missing_axes(geometry.outer.len())?;
    let pad = |list: &[i64], with: i64| [vec![with; missing], list.to_vec()].concat();
    let operand = |access: &Access| match access.strides.len() {
        0 => access.clone(),
        _ => Access { strides: pad(&access.strides, 0), ..access.clone() },
    };
    let operands = geometry.operands.iter().map(operand).collect();
    Ok(Geometry { outer: pad(&geometry.outer, 1), inner: vec![], operands })
}

/// How the template walks a matrix: over the batch axes, rows, columns. Where there is one of them, its stride says nothing.
pub(super) fn access(tensor: &RawTensor) -> Result<Access> {
    let layout = tensor.layout();
    let mut strides = vec![0; missing_axes(layout.rank())?];
    let axes = layout.strides().iter().zip(layout.shape());
    strides.extend(axes.map(|(&stride, &extent)| if extent == 1 { 0 } else { stride as i64 }));
    Ok(Access { strides, address: tensor.address() % WIDEST, bytes: tensor.dtype().bytes(), indexed: false })
}

fn missing_axes(rank: usize) -> Result<usize> {
    (BATCH_AXES + 2)
        .checked_sub(rank)
        .ok_or_else(|| Error::shape("matmul", format!("at most {BATCH_AXES} batch axes are possible here")))
}
