//! The matmul template: a tile of 64 by 64 of the product a block, in plain arithmetic, then the epilogue's program in registers.

use super::map::one_element;
use super::params::matmul_parameters;
use super::scope::{Reach, Scope, compute_type};
use super::signature;
use super::stores::outgoing;
use crate::emit::writer::Writer;
use crate::plan::abi::{THREADS, TILE_PRODUCT, c_type};
use crate::plan::{Level, Matmul};

/// Writes the kernel, named after its epilogue.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let (element, compute) = (c_type(matmul.dtype), compute_type(matmul.dtype));
    w.block(signature(scope, &THREADS.to_string(), &matmul_parameters(scope, element)), |w| {
        w.lines(scope.phases.uniform.iter().filter_map(|s| scope.define(*s, &Element)));
        tile(w);
        w.line(format!("{compute} product[4][4] = {{}};"));
        let matrix = |side: &str| format!("{side} + fuse_batch(batch, {side}_strides), {side}_strides");
        w.line(format!("fuse_multiply_tile(product, {}, {}, shape, m0, n0);", matrix("left"), matrix("right")));
        w.unrolled("i", "4", |w| {
            w.unrolled("j", "4", |w| {
                w.line("const long long m = m0 + threadIdx.x / 16 + 16 * i, n = n0 + threadIdx.x % 16 + 16 * j;");
                w.line("if (m >= shape.m || n >= shape.n) continue;");
                w.line("const fuse_at<RANK> at = {batch.axis[0], batch.axis[1], batch.axis[2], m, n};");
                let Some(walk) = scope.phases.walks.first() else { return };
                super::map::declare_draws(w, scope, &walk.fresh, "1");
                w.lines(walk.fresh.iter().filter_map(|s| scope.define(*s, &Element)));
                for &store in &walk.stores {
                    let name = &scope.stores[store];
                    w.line(format!("{name}_ptr[fuse_offset(at, {name}_strides)] = {};", outgoing(scope, store)));
                }
            });
        });
    });
}

/// Which tile of which product.
fn tile(w: &mut Writer) {
    w.line(format!("const long long tiles_n = (shape.n + {0}) / {TILE_PRODUCT};", TILE_PRODUCT - 1));
    w.line(format!("const long long tiles_m = (shape.m + {0}) / {TILE_PRODUCT};", TILE_PRODUCT - 1));
    w.line(format!("const long long n0 = blockIdx.x % tiles_n * {TILE_PRODUCT};"));
    w.line(format!("const long long m0 = blockIdx.x / tiles_n % tiles_m * {TILE_PRODUCT};"));
    w.line("const fuse_at<3> batch = fuse_batch_of(blockIdx.x / tiles_n / tiles_m, shape);");
}

/// Operands at row `m` and column `n` of the product.
struct Element;

impl Reach for Element {
    fn point(&self) -> &'static str {
        "0"
    }

    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        let offset = format!("fuse_offset(at, {name}_strides)");
        match (scope.leaf_level(leaf), scope.is_index(leaf)) {
            (Level::All, _) => one_element(scope, leaf),
            (_, true) => format!("{name}_ptr + {offset}"),
            (_, false) => format!("fuse_to_compute({name}_ptr[{offset}])"),
        }
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => format!("{name}_ptr"),
            _ => format!("{name}_ptr + fuse_offset(at, {name}_strides)"),
        }
    }

    fn product(&self) -> String {
        "product[i][j]".to_owned()
    }
}
