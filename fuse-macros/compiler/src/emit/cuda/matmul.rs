//! The matmul template: a block computes tiles of the product, or a strip of one of few rows, then the epilogue's program in
//! registers.

use super::map::{declare_draws, declare_reads, declare_results, elem_leaves, one_element, prologue, result};
use super::params::matmul_parameters;
use super::scope::{Reach, Scope, compute_type};
use super::signature;
use crate::emit::writer::Writer;
use crate::plan::abi::c_type;
use crate::plan::{Level, Matmul, Phase};
use crate::types::DType;

/// Writes the kernel, named after its epilogue. How tiles and strips are multiplied stands in the helpers.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let ways: [(&str, bool, Write); 3] = [
        ("FEW", !matmul.dtype.is_half(), strips),
        ("THIRDS", matmul.dtype == DType::F32 || matmul.dtype.is_generic(), thirds),
        ("HALVES", matmul.dtype.is_half() || matmul.dtype.is_generic(), halves),
    ];
    let mut branch = "#if";
    for (define, _, write) in ways.into_iter().filter(|(_, exists, _)| *exists) {
        w.line(format!("{branch} defined({define})"));
        write(w, scope, matmul);
        branch = "#elif";
    }
    w.line("#else");
    tiles(w, scope, matmul);
    w.line("#endif");
}

type Write = fn(&mut Writer, &Scope<'_>, &Matmul);

/// Products of few rows: a block takes a strip of columns, the last block of a strip goes on with its sums.
fn strips(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let (element, compute) = (c_type(matmul.dtype), compute_type(matmul.dtype));
    w.block(signature(scope, "256, 2", &matmul_parameters(scope, element, &compute)), |w| {
        prologue(w, scope, &IN_TILE);
        w.line(format!("typedef fuse_skinny<{element}, FEW, RIGHT> strips;"));
        w.line("const strips::Strip strip(shape);");
        w.line(format!("__shared__ {compute} product[strips::ROWS][strips::COLUMNS];"));
        let operand = |side: &str| format!("{side} + strip.start({side}_strides), {side}_strides");
        w.line(format!("strips::run(strip, shape, {}, {});", operand("left"), operand("right")));
        w.line("if (!fuse_settle<strips>(strip, shape, product, parts, counters)) return;");
        let Some(walk) = scope.phases.walks.first() else { return };
        w.block("for (int turn = threadIdx.x; turn < strips::ROWS * strips::COLUMNS / VEC; turn += 256)", |w| {
            w.line("const int i = turn / (strips::COLUMNS / VEC), j = turn % (strips::COLUMNS / VEC) * VEC;");
            w.line("const long long m = strip.m + i, n = strip.n + j;");
            at_inside(w, "strip");
            let leaves = elem_leaves(scope, &walk.fresh);
            declare_reads(w, scope, &walk.fresh, "VEC", "1");
            leaves.iter().for_each(|&leaf| w.line(read(scope, leaf, "0")));
            epilogue(w, scope, walk, &IN_TILE);
        });
    });
}

/// Products of floats on Hopper's tensor cores: some threads of a block read and split the right operand of tile after tile, the
/// others multiply and go on with the epilogue.
fn thirds(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let tile = ["THIRDS", "fuse_thirds<THIRDS, LEFT, RIGHT>"];
    roles(w, scope, matmul, tile, &[RIGHT], &[LEFT, RIGHT]);
}

/// The same of halves, whose operands are copied as they are.
fn halves(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let class = format!("fuse_halves<{}, HALVES, LEFT, RIGHT>", c_type(matmul.dtype));
    roles(w, scope, matmul, ["HALVES", &class], &[LEFT, RIGHT], &[LEFT]);
}

const LEFT: &str = "part.left(left, left_strides, shape)";
const RIGHT: &str = "part.right(right, right_strides, shape)";

/// Blocks that take tile after tile, of so many columns, whose threads have two roles; `fed` and `multiplied` are the operands
/// that either needs.
fn roles(
    w: &mut Writer,
    scope: &Scope<'_>,
    matmul: &Matmul,
    [columns, class]: [&str; 2],
    fed: &[&str],
    multiplied: &[&str],
) {
    let (element, compute) = (c_type(matmul.dtype), compute_type(matmul.dtype));
    let each = |w: &mut Writer, body: &dyn Fn(&mut Writer)| {
        w.block("for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x)", |w| {
            w.line("const tile::Part part(n, shape);");
            body(w);
        });
    };
    w.block(signature(scope, "384, 1", &matmul_parameters(scope, element, &compute)), |w| {
        prologue(w, scope, &IN_TILE);
        w.line(format!("typedef {class} tile;"));
        w.line("extern __shared__ uint4 fuse_shared[];");
        w.line("tile work(fuse_shared);");
        w.line("if (tile::feeds()) {");
        w.indented(|w| {
            w.line("tile::few_registers();");
            each(w, &|w| w.line(format!("work.feed({});", fed.join(", "))));
        });
        w.line("} else {");
        w.indented(|w| {
            w.line("tile::many_registers();");
            each(w, &|w| {
                w.line(format!("float product[{columns} / 2] = {{}};"));
                w.line(format!("work.multiply(product, {});", multiplied.join(", ")));
                turned(w, scope, columns);
            });
        });
        w.line("}");
    });
}

fn tiles(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let (element, compute) = (c_type(matmul.dtype), compute_type(matmul.dtype));
    w.block(signature(scope, "2 * TILE, 2", &matmul_parameters(scope, element, &compute)), |w| {
        prologue(w, scope, &IN_TILE);
        w.line(format!("typedef fuse_product<{element}, TILE, LEFT, RIGHT> tile;"));
        w.line("const fuse_part<TILE, TILE> part(blockIdx.x, shape);");
        w.line(format!("{compute} product[tile::ROWS][tile::COLUMNS] = {{}};"));
        let operand = |side: &str| format!("part.{side}({side}, {side}_strides, shape)");
        w.line(format!("fuse_multiply<tile>(product, {}, {});", operand("left"), operand("right")));
        rows_of_tile(w, scope);
    });
}

/// The epilogue of what a thread has of a tile.
fn rows_of_tile(w: &mut Writer, scope: &Scope<'_>) {
    let Some(walk) = scope.phases.walks.first() else { return };
    w.unrolled("i", "tile::ROWS", |w| {
        w.unrolled("access", "tile::COLUMNS / VEC", |w| {
            w.line("const int j = access * VEC;");
            w.line("const long long m = part.m + tile::row(i), n = part.n + tile::column(j);");
            at_inside(w, "part");
            let leaves = elem_leaves(scope, &walk.fresh);
            declare_reads(w, scope, &walk.fresh, "VEC", "1");
            leaves.iter().for_each(|&leaf| w.line(read(scope, leaf, "0")));
            epilogue(w, scope, walk, &IN_TILE);
        });
    });
}

/// The epilogue of a tile that is turned in shared memory. Some accesses are read before the first is written: the compiler cannot
/// know that what is written is not what will be read, and would wait for each.
fn turned(w: &mut Writer, scope: &Scope<'_>, columns: &str) {
    let Some(walk) = scope.phases.walks.first() else { return };
    let leaves = elem_leaves(scope, &walk.fresh);
    let place = |w: &mut Writer, first: &str| {
        w.line(format!("const long long m = part.m + turn.row(access), n = part.n + {first} + turn.column(access);"));
        at_inside(w, "part");
    };
    w.line(format!("fuse_turn<{columns}> turn(work.shared.turn);"));
    w.line("#pragma unroll");
    w.block("for (int piece = 0; piece < turn.PIECES; piece += 2)", |w| {
        declare_reads(w, scope, &walk.fresh, "VEC", "2 * turn.ACCESSES");
        if !leaves.is_empty() {
            w.unrolled("access", "2 * turn.ACCESSES", |w| {
                place(w, "piece * 32");
                leaves.iter().for_each(|&leaf| w.line(read(scope, leaf, "access")));
            });
        }
        w.unrolled("access", "2 * turn.ACCESSES", |w| {
            w.line("if (access % turn.ACCESSES == 0) turn.put(product, piece + access / turn.ACCESSES);");
            place(w, "piece * 32");
            w.line("float value[VEC];");
            w.line("turn.get(value, access);");
            epilogue(w, scope, walk, &TURNED);
        });
    });
}

/// Goes on with the place m and n, if it is inside.
fn at_inside(w: &mut Writer, part: &str) {
    w.line("if (m >= shape.m || n >= shape.n) continue;");
    let batch = [0, 1, 2].map(|axis| format!("{part}.batch.axis[{axis}]")).join(", ");
    w.line(format!("const fuse_at<RANK> at = {{{batch}, (IDX)m, (IDX)n}};"));
}

/// The line that reads an operand at the current access.
fn read(scope: &Scope<'_>, leaf: usize, access: &str) -> String {
    let (from, stride) = place(&scope.leaves[leaf], leaf);
    format!("fuse_read<STEP_{leaf}>({}_in[{access}], {from}, {stride});", scope.leaves[leaf])
}

/// What is done with one access: VEC neighbouring elements of a row.
fn epilogue(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, reach: &Element) {
    declare_results(w, scope, walk);
    declare_draws(w, scope, &walk.fresh, "VEC");
    w.unrolled("v", "VEC", |w| {
        w.lines(walk.fresh.iter().filter_map(|s| scope.define(*s, reach)));
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

/// Operands at element `v` of an access.
struct Element {
    /// Its number.
    access: &'static str,
    /// The element of the product.
    product: &'static str,
}

/// An access whose part of the product a thread has, or the block in shared memory.
const IN_TILE: Element = Element { access: "0", product: "product[i][j + v]" };
/// One whose part was turned.
const TURNED: Element = Element { access: "access", product: "value[v]" };

impl Reach for Element {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => one_element(scope, leaf),
            _ if scope.is_index(leaf) => self.base(scope, leaf),
            _ => format!("fuse_to_compute({name}_in[{}][v])", self.access),
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
        self.product.to_owned()
    }
}

#[cfg(test)]
mod tests;
