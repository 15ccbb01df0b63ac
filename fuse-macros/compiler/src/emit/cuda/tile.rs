//! Maps with transposed operands: a block takes a tile of 32 by 32 points of the last two axes.
//!
//! A transposed operand is read along the axis before the last, where its elements are neighbours, into shared memory, and
//! taken out of it turned. So reads and writes are both in whole cache lines.

use super::map::{Point, declare_reads, elem_leaves, values, write_back};
use super::params::parameters;
use super::scope::Scope;
use super::signature;
use crate::emit::writer::Writer;
use crate::plan::abi::{THREADS, is_turnable};

/// Writes the kernel; `VEC` is 1.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    w.block(signature(scope, &THREADS.to_string(), &parameters(scope)), |w| {
        super::map::prologue(w, scope, &Point);
        let Some(walk) = scope.phases.walks.first() else { return };
        w.line("const fuse_tile<RANK> tile(blockIdx.x, outer);");
        declare_reads(w, scope, &walk.fresh, "1", "4");
        let (turnable, plain): (Vec<usize>, Vec<usize>) = elem_leaves(scope, &walk.fresh)
            .into_iter()
            .partition(|leaf| is_turnable(scope.kernel, &scope.kernel.leaves[*leaf]));
        for &leaf in &turnable {
            turn(w, scope, leaf);
        }
        w.line("fuse_at<RANK> at[4];");
        w.line("const int live = 1;");
        w.unrolled("u", "4", |w| {
            w.line("at[u] = tile.at(threadIdx.x % 32, threadIdx.x / 32 + 8 * u);");
            w.line("if (!tile.has(at[u])) continue;");
            plain.iter().for_each(|leaf| w.line(read(scope, *leaf)));
            turnable.iter().for_each(|leaf| w.line(format!("if (STEP_{leaf} != 3) {}", read(scope, *leaf))));
        });
        w.line("__syncthreads();");
        w.unrolled("u", "4", |w| {
            w.line("if (!tile.has(at[u])) continue;");
            for &leaf in &turnable {
                let name = &scope.leaves[leaf];
                w.line(format!(
                    "if (STEP_{leaf} == 3) {name}_in[u].set(0, {name}_tile[threadIdx.x % 32][threadIdx.x / 32 + 8 * u]);"
                ));
            }
            values(w, scope, walk);
            walk.stores.iter().for_each(|store| w.line(write_back(scope, *store)));
        });
    });
}

/// Fills the shared tile of a leaf; one row more than it needs keeps its columns in different banks.
fn turn(w: &mut Writer, scope: &Scope<'_>, leaf: usize) {
    let (name, ty) = (&scope.leaves[leaf], scope.leaf_type(leaf));
    w.line(format!("__shared__ {ty} {name}_tile[STEP_{leaf} == 3 ? 32 : 1][33];"));
    w.block(format!("if (STEP_{leaf} == 3)"), |w| {
        w.unrolled("u", "4", |w| {
            w.line("const fuse_at<RANK> turned = tile.at(threadIdx.x / 32 + 8 * u, threadIdx.x % 32);");
            w.line(format!(
                "if (tile.has(turned)) {name}_tile[threadIdx.x / 32 + 8 * u][threadIdx.x % 32] = {name}_ptr[fuse_offset(turned, {name}_strides)];"
            ));
        });
    });
}

fn read(scope: &Scope<'_>, leaf: usize) -> String {
    let name = &scope.leaves[leaf];
    let from = format!("{name}_ptr + fuse_offset<STEP_{leaf}>(at[u], {name}_strides)");
    format!("{name}_in[u].set(0, *({from}));")
}
