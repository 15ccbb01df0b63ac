//! The matmul template: a block computes a tile of the product, or a strip of one of few rows, then the epilogue's program in
//! registers.

use super::map::{declare_draws, declare_results, elem_leaves, one_element, prologue, result};
use super::params::matmul_parameters;
use super::scope::{Reach, Scope, compute_type};
use super::signature;
use crate::emit::writer::Writer;
use crate::plan::abi::c_type;
use crate::plan::{Level, Matmul, Phase};

/// Writes the kernel, named after its epilogue. How tiles and strips are multiplied stands in the helpers.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    if matmul.dtype.is_half() {
        return tiles(w, scope, matmul);
    }
    w.line("#if defined(FEW)");
    strips(w, scope, matmul);
    w.line("#else");
    tiles(w, scope, matmul);
    w.line("#endif");
}

/// Products of few rows: a block takes a strip of columns, the last block of a strip goes on with its sums.
fn strips(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let (element, compute) = (c_type(matmul.dtype), compute_type(matmul.dtype));
    w.block(signature(scope, "256, 2", &matmul_parameters(scope, element, &compute)), |w| {
        prologue(w, scope, &Element);
        w.line(format!("typedef fuse_skinny<{element}, FEW, RIGHT> strips;"));
        w.line("const strips::Strip strip(shape);");
        w.line(format!("__shared__ {compute} product[strips::ROWS][strips::COLUMNS];"));
        let operand = |side: &str| format!("{side} + strip.start({side}_strides), {side}_strides");
        w.line(format!("strips::run(strip, shape, {}, {});", operand("left"), operand("right")));
        w.line("if (!fuse_settle<strips>(strip, shape, product, parts, counters)) return;");
        let Some(walk) = scope.phases.walks.first() else { return };
        w.block("for (int access = threadIdx.x; access < strips::ROWS * strips::COLUMNS / VEC; access += 256)", |w| {
            w.line("const int i = access / (strips::COLUMNS / VEC), j = access % (strips::COLUMNS / VEC) * VEC;");
            w.line("const long long m = strip.m + i, n = strip.n + j;");
            element_of(w, scope, walk, "strip");
        });
    });
}

fn tiles(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let (element, compute) = (c_type(matmul.dtype), compute_type(matmul.dtype));
    w.block(signature(scope, "2 * TILE, 2", &matmul_parameters(scope, element, &compute)), |w| {
        prologue(w, scope, &Element);
        w.line(format!("typedef fuse_product<{element}, TILE, LEFT, RIGHT> tile;"));
        w.line("const fuse_part<TILE> part(blockIdx.x, shape);");
        w.line(format!("{compute} product[tile::ROWS][tile::COLUMNS] = {{}};"));
        let operand = |side: &str| format!("part.{side}({side}, {side}_strides, shape)");
        w.line(format!("fuse_multiply<tile>(product, {}, {});", operand("left"), operand("right")));
        let Some(walk) = scope.phases.walks.first() else { return };
        w.unrolled("i", "tile::ROWS", |w| {
            w.unrolled("access", "tile::COLUMNS / VEC", |w| {
                w.line("const int j = access * VEC;");
                w.line("const long long m = part.m + tile::row(i), n = part.n + tile::column(j);");
                element_of(w, scope, walk, "part");
            });
        });
    });
}

/// The epilogue at m and n, if they are inside.
fn element_of(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, part: &str) {
    w.line("if (m >= shape.m || n >= shape.n) continue;");
    let batch = [0, 1, 2].map(|axis| format!("{part}.batch.axis[{axis}]")).join(", ");
    w.line(format!("const fuse_at<RANK> at = {{{batch}, (IDX)m, (IDX)n}};"));
    epilogue(w, scope, walk);
}

/// What is done with one access: VEC neighbouring elements of a row.
fn epilogue(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    for leaf in elem_leaves(scope, &walk.fresh) {
        let (name, (from, stride)) = (&scope.leaves[leaf], place(&scope.leaves[leaf], leaf));
        w.line(format!("fuse_pack<{}, VEC> {name}_in;", scope.leaf_type(leaf)));
        w.line(format!("fuse_read<STEP_{leaf}>({name}_in, {from}, {stride});"));
    }
    declare_results(w, scope, walk);
    declare_draws(w, scope, &walk.fresh, "VEC");
    w.unrolled("v", "VEC", |w| {
        w.lines(walk.fresh.iter().filter_map(|s| scope.define(*s, &Element)));
        walk.stores.iter().for_each(|store| w.line(result(scope, *store)));
    });
    for &store in &walk.stores {
        let (name, operand) = (&scope.stores[store], scope.leaves.len() + store);
        let (to, stride) = place(name, operand);
        w.line(format!("fuse_write<STEP_{operand}>({to}, {name}_out, {stride});"));
    }
}

/// Where an operand lies at the current access, and how far apart its columns are.
fn place(name: &str, operand: usize) -> (String, String) {
    let offset = format!("fuse_offset<STEP_{operand}>(at, {name}_strides)");
    (format!("{name}_ptr + {offset}"), format!("{name}_strides.axis[RANK - 1]"))
}

/// Operands at element `v` of the current access.
struct Element;

impl Reach for Element {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => one_element(scope, leaf),
            _ if scope.is_index(leaf) => self.base(scope, leaf),
            _ => format!("fuse_to_compute({name}_in[v])"),
        }
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => format!("{name}_ptr"),
            _ => format!("{name}_ptr + fuse_offset(at, {name}_strides) + v * {name}_strides.axis[RANK - 1]"),
        }
    }

    fn product(&self) -> String {
        "product[i][j + v]".to_owned()
    }
}

#[cfg(test)]
mod tests;
