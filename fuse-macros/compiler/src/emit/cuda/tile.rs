//! Maps with transposed operands: a block takes a square tile of points of the last two axes.
//!
//! A transposed operand is read along the axis before the last, where its elements are neighbours, into shared memory, and
//! taken out of it turned. So reads and writes are both in whole cache lines.

use super::map::{Point, declare_reads, elem_leaves, values, write_back};
use super::params::parameters;
use super::scope::Scope;
use super::signature;
use crate::emit::writer::Writer;
use crate::plan::abi::{THREADS, is_turnable};

/// Writes the kernel. Accesses of `VEC` neighbours go along the last axis, those of transposed operands along the one before.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    w.block(signature(scope, &THREADS.to_string(), &parameters(scope)), |w| {
        super::map::prologue(w, scope, &Point);
        let Some(walk) = scope.phases.walks.first() else { return };
        w.line("const fuse_tile<RANK, TILE> tile(blockIdx.x, outer);");
        w.line("constexpr int ACROSS = TILE / VEC, DOWN = 256 / ACROSS, PASSES = TILE / DOWN;");
        w.line("const int column = threadIdx.x % ACROSS * VEC, row = threadIdx.x / ACROSS;");
        declare_reads(w, scope, &walk.fresh, "VEC", "PASSES");
        let (turnable, plain): (Vec<usize>, Vec<usize>) = elem_leaves(scope, &walk.fresh)
            .into_iter()
            .partition(|leaf| is_turnable(scope.kernel, &scope.kernel.leaves[*leaf]));
        w.line("fuse_at<RANK> at[PASSES];");
        w.line("const int live = VEC;");
        // What need not be turned is on its way while the others are.
        w.unrolled("u", "PASSES", |w| {
            w.line("at[u] = tile.at(column, row + DOWN * u);");
            w.line("if (!tile.has(at[u])) continue;");
            plain.iter().for_each(|leaf| w.line(read(scope, *leaf)));
            turnable.iter().for_each(|leaf| w.line(format!("if (STEP_{leaf} != 3) {}", read(scope, *leaf))));
        });
        for &leaf in &turnable {
            turn(w, scope, leaf);
        }
        w.line("__syncthreads();");
        w.unrolled("u", "PASSES", |w| {
            w.line("if (!tile.has(at[u])) continue;");
            for &leaf in &turnable {
                let name = &scope.leaves[leaf];
                w.block(format!("if (STEP_{leaf} == 3)"), |w| {
                    w.unrolled("v", "VEC", |w| {
                        w.line(format!("{name}_in[u].set(v, {name}_tile[column + v][row + DOWN * u]);"));
                    });
                });
            }
            values(w, scope, walk);
            walk.stores.iter().for_each(|store| w.line(write_back(scope, *store)));
        });
    });
}

/// Fills the shared tile of a leaf; one row more than it needs keeps its columns in different banks.
fn turn(w: &mut Writer, scope: &Scope<'_>, leaf: usize) {
    let (name, ty) = (&scope.leaves[leaf], scope.leaf_type(leaf));
    w.line(format!("__shared__ {ty} {name}_tile[STEP_{leaf} == 3 ? TILE : 1][TILE + 1];"));
    w.block(format!("if (STEP_{leaf} == 3)"), |w| {
        w.unrolled("u", "PASSES", |w| {
            w.line("const fuse_at<RANK> turned = tile.at(row + DOWN * u, column);");
            w.line("if (!tile.has(turned)) continue;");
            w.line(format!("fuse_pack<{ty}, VEC> pack;"));
            w.line(format!("pack.load({name}_ptr + fuse_offset(turned, {name}_strides));"));
            w.unrolled("v", "VEC", |w| {
                w.line(format!("{name}_tile[row + DOWN * u][column + v] = pack[v];"));
            });
        });
    });
}

fn read(scope: &Scope<'_>, leaf: usize) -> String {
    let name = &scope.leaves[leaf];
    let from = format!("{name}_ptr + fuse_offset<STEP_{leaf}>(at[u], {name}_strides)");
    format!("fuse_read<STEP_{leaf}>({name}_in[u], {from}, {name}_strides.axis[RANK - 1]);")
}
