//! Products of matrices: by the library where it can, else by the template with the epilogue in it.

use super::bind::bind;
use super::call::CudaCall;
use super::launch::{Prepared, launch_kernel};
use crate::cuda::{self, Matrix};
use crate::error::{Error, Result};
use crate::exec::buffers::Buffers;
use crate::raw::RawTensor;
use fuse_compiler::plan::Matmul;
use fuse_compiler::plan::abi::{self, Access, Arg, BATCH_AXES, Geometry, Variant};

/// Launches a product with what follows it.
pub(super) fn launch_matmul(call: &CudaCall<'_>, matmul: &Matmul, buffers: &mut Buffers<'_>) -> Result<()> {
    let product = Product::new(call, matmul, buffers)?;
    if product.by_library(call, matmul, buffers)? {
        return matmul.lib.rest.as_ref().map_or(Ok(()), |rest| launch_kernel(call, rest, buffers));
    }
    product.by_template(call, matmul, buffers)
}

/// The operands of a product and its extents m, n and k.
struct Product {
    a: RawTensor,
    b: RawTensor,
    extents: [i64; 3],
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

    /// Multiplies with the library, one call for the innermost batch axis. `false` if it cannot, and nothing was launched.
    fn by_library(&self, call: &CudaCall<'_>, matmul: &Matmul, buffers: &mut Buffers<'_>) -> Result<bool> {
        let [m, n, k] = self.extents;
        let out = buffers.operand(&matmul.lib.product)?;
        let bias = matmul.lib.bias.as_ref().map(|bias| buffers.operand(bias)).transpose()?;
        let bias_fits = bias.as_ref().is_none_or(|bias| bias.dtype() == matmul.dtype && bias.layout().is_contiguous());
        if (bias.is_some() && out.dtype() != matmul.dtype) || !bias_fits || m * n == 0 {
            return Ok(false);
        }
        let (outer, inner) = batch_axes([&self.a, &self.b, &out], matmul.batch.len());
        for place in 0..outer.iter().map(|axis| axis.extent).product() {
            let first = offsets(&outer, place);
            let problem = cuda::Matmul {
                dtype: matmul.dtype,
                out_dtype: out.dtype(),
                batch: inner.extent as usize,
                m: m as usize,
                n: n as usize,
                k: k as usize,
                a: matrix(&self.a, first[0], inner.steps[0]),
                b: matrix(&self.b, first[1], inner.steps[1]),
                c: matrix(&out, first[2], inner.steps[2]),
                bias: bias.as_ref().map(RawTensor::address),
                relu: matmul.lib.relu,
                tf32: matmul.tf32,
            };
            if !call.context.matmul(&problem)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Multiplies with the generated template, whose axes are the batch axes, padded in front, m and n.
    fn by_template(&self, call: &CudaCall<'_>, matmul: &Matmul, buffers: &mut Buffers<'_>) -> Result<()> {
        let kernel = &matmul.epilogue;
        let bound = bind(kernel, buffers, call.sizes)?;
        let axes = padded(&bound.geometry)?;
        if axes.rows() == 0 {
            return Ok(());
        }
        let variant = Variant::product(kernel);
        let batch: i64 = axes.outer[..BATCH_AXES].iter().product();
        let launch = variant.launch_product(batch, self.extents[0], self.extents[1]);
        let mut shape = [0; BATCH_AXES + 3];
        shape[..BATCH_AXES].copy_from_slice(&axes.outer[..BATCH_AXES]);
        shape[BATCH_AXES..].copy_from_slice(&self.extents);
        let args = abi::matmul_arguments(kernel);
        let prepared = Prepared::of(call, kernel, (&axes, &variant), launch, args, false)?;
        let (left, right) = (matrix_strides(&self.a)?, matrix_strides(&self.b)?);
        prepared.launch(call, kernel, &bound, |args, arg| {
            match arg {
                Arg::LeftMatrix => args.pointer(self.a.address()),
                Arg::RightMatrix => args.pointer(self.b.address()),
                Arg::LeftStrides => args.push(left),
                Arg::RightStrides => args.push(right),
                _ => args.push(shape),
            };
        })
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
fn padded(geometry: &Geometry) -> Result<Geometry> {
    let missing = missing_axes(geometry.outer.len())?;
    let pad = |list: &[i64], with: i64| [vec![with; missing], list.to_vec()].concat();
    let operand = |access: &Access| match access.strides.len() {
        0 => access.clone(),
        _ => Access { strides: pad(&access.strides, 0), ..access.clone() },
    };
    let operands = geometry.operands.iter().map(operand).collect();
    Ok(Geometry { outer: pad(&geometry.outer, 1), inner: vec![], operands })
}

/// Strides of a matrix as the template takes them: batch axes, rows, columns.
fn matrix_strides(tensor: &RawTensor) -> Result<[i64; BATCH_AXES + 2]> {
    let strides = tensor.layout().strides();
    let missing = missing_axes(strides.len())?;
    let mut all = [0; BATCH_AXES + 2];
    for (to, &stride) in all[missing..].iter_mut().zip(strides) {
        *to = stride as i64;
    }
    Ok(all)
}

fn missing_axes(rank: usize) -> Result<usize> {
    (BATCH_AXES + 2)
        .checked_sub(rank)
        .ok_or_else(|| Error::shape("matmul", format!("at most {BATCH_AXES} batch axes are possible here")))
}
