//! The matmul template: a block computes tiles of the product, or a strip of one of few rows, then the epilogue's program in
//! registers.

use super::map::{declare_draws, declare_reads, declare_results, elem_leaves, one_element, prologue, result};
use super::params::matmul_parameters;
use super::scope::{Reach, Scope, compute_type};
use super::signature;
use crate::emit::writer::Writer;
use crate::plan::abi::{c_type, draws};
use crate::plan::{Level, Matmul, Phase};
use crate::types::DType;

/// Writes the kernel, named after its epilogue. How tiles and strips are multiplied stands in the helpers.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let ways: [(&str, bool, Write); 3] = [
        ("FEW", !matmul.dtype.is_narrow(), strips),
        ("THIRDS", matmul.dtype == DType::F32 || matmul.dtype.is_generic(), thirds),
        ("HALVES", matmul.dtype.is_narrow() || matmul.dtype.is_generic(), halves),
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
            leaves.iter().for_each(|&leaf| w.line(read(scope, leaf, "in", "0")));
            epilogue(w, scope, walk, &IN_TILE);
        });
    });
}

/// Products of floats on Hopper's tensor cores: some threads of a block read and split the right operand of tile after tile, the
/// others multiply and go on with the epilogue.
fn thirds(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let sides = [LEFT, RIGHT].map(|side| format!("share.of({side})"));
    let [left, right] = sides.each_ref().map(String::as_str);
    let roles = Roles {
        columns: "THIRDS",
        class: "fuse_thirds<THIRDS, LEFT, RIGHT>",
        tiles: "for (fuse_shares<tile::Part, 2 * tile::DEPTH, SHARES> share(shape, parts); share.more(); share.next())",
        tile: "share.tile",
        fed: &[right],
        multiplied: &[left, right],
        settled: "if (!share.settle(product, counters)) continue;",
        pieces: pieces_in_a_loop,
    };
    roles.write(w, scope, matmul);
}

/// The same of halves and fp8, whose operands are copied as they are.
fn halves(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let roles = Roles {
        columns: "HALVES",
        class: &match matmul.dtype {
            DType::F8E4M3 => "fuse_float8<HALVES>".to_owned(),
            dtype => format!("fuse_halves<{}, HALVES, LEFT, RIGHT>", c_type(dtype)),
        },
        tiles: "for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x)",
        tile: "n",
        fed: &[LEFT, RIGHT],
        multiplied: &[LEFT],
        settled: "",
        pieces: pieces_of_halves,
    };
    roles.write(w, scope, matmul);
}

const LEFT: &str = "part.left(left, left_strides, shape)";
const RIGHT: &str = "part.right(right, right_strides, shape)";

/// Blocks that take tile after tile, whose threads have two roles.
struct Roles<'a> {
    /// Columns of a tile.
    columns: &'a str,
    /// Who multiplies.
    class: &'a str,
    /// The loop over the tiles of a block.
    tiles: &'a str,
    /// The number of one.
    tile: &'a str,
    /// The operands that those need who feed the others.
    fed: &'a [&'a str],
    /// The operands that those need who multiply.
    multiplied: &'a [&'a str],
    /// What is done with a product before its epilogue.
    settled: &'a str,
    /// Goes on with a tile.
    pieces: Pieces,
}

/// Writes what is done with a tile.
type Pieces = fn(&mut Writer, &Scope<'_>);

impl Roles<'_> {
    fn write(&self, w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
        let (element, compute) = (c_type(matmul.dtype), compute_type(matmul.dtype));
        let each = |w: &mut Writer, body: &dyn Fn(&mut Writer)| {
            w.block(self.tiles, |w| {
                w.line(format!("const tile::Part part({}, shape);", self.tile));
                body(w);
            });
        };
        w.block(signature(scope, "384, 1", &matmul_parameters(scope, element, &compute)), |w| {
            prologue(w, scope, &IN_TILE);
            w.line(format!("typedef {} tile;", self.class));
            w.line("extern __shared__ uint4 fuse_shared[];");
            w.line("tile work(fuse_shared);");
            w.line("if (tile::feeds()) {");
            w.indented(|w| {
                w.line("tile::few_registers();");
                each(w, &|w| w.line(format!("work.feed({});", self.fed.join(", "))));
            });
            w.line("} else {");
            w.indented(|w| {
                w.line("tile::many_registers();");
                each(w, &|w| self.write_tile(w, scope));
            });
            w.line("}");
        });
    }

    fn write_tile(&self, w: &mut Writer, scope: &Scope<'_>) {
        w.line(format!("float product[{} / 2] = {{}};", self.columns));
        w.line(format!("work.multiply(product, {});", self.multiplied.join(", ")));
        if !self.settled.is_empty() {
            w.line(self.settled);
        }
        if !scope.phases.walks.is_empty() {
            w.line(format!("fuse_turn<{}> turn(work.shared.turn);", self.columns));
            (self.pieces)(w, scope);
        }
    }
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
            leaves.iter().for_each(|&leaf| w.line(read(scope, leaf, "in", "0")));
            epilogue(w, scope, walk, &IN_TILE);
        });
    });
}

/// The epilogue of a tile that is turned in shared memory, piece after piece in a loop: unrolled, NVRTC takes longer for it than for
/// all else. A piece's operands are read before the one before it is written: the compiler cannot know that what is written is not
/// what will be read, and would wait for each.
fn pieces_in_a_loop(w: &mut Writer, scope: &Scope<'_>) {
    let Some(walk) = scope.phases.walks.first() else { return };
    let leaves = elem_leaves(scope, &walk.fresh);
    let declare = |w: &mut Writer, suffix: &str| {
        leaves.iter().for_each(|&leaf| {
            let (ty, name) = (scope.leaf_type(leaf), &scope.leaves[leaf]);
            w.line(format!("fuse_pack<{ty}, VEC> {name}_{suffix}[turn.ACCESSES];"));
        });
    };
    if !leaves.is_empty() {
        declare(w, "next");
        read_pieces(w, scope, &leaves, "0", ["next", "turn.ACCESSES"]);
    }
    w.line("#pragma unroll 1");
    w.block("for (int piece = 0; piece < turn.PIECES; ++piece)", |w| {
        if !leaves.is_empty() {
            declare(w, "in");
            w.unrolled("access", "turn.ACCESSES", |w| {
                leaves.iter().map(|&leaf| &scope.leaves[leaf]).for_each(|name| {
                    w.line(format!("{name}_in[access] = {name}_next[access];"));
                });
            });
            w.block("if (piece + 1 < turn.PIECES)", |w| {
                read_pieces(w, scope, &leaves, "(piece + 1)", ["next", "turn.ACCESSES"]);
            });
        }
        w.line("turn.put(product, piece);");
        w.unrolled("access", "turn.ACCESSES", |w| turned_access(w, scope, walk));
    });
}

/// The same of halves. What draws goes in a loop, too: unrolled, gelu and dropout behind 4096 x 768 x 3072 in bf16 took 322 us.
fn pieces_of_halves(w: &mut Writer, scope: &Scope<'_>) {
    if draws(scope.kernel).is_empty() { pieces_unrolled(w, scope) } else { pieces_in_a_loop(w, scope) }
}

/// Pieces unrolled, two pieces read at a time: of halves, a tile is multiplied so fast that waiting for every piece to be turned
/// shows (bias and relu behind 4096 x 768 x 3072 in bf16: 44 us, in a loop 46).
fn pieces_unrolled(w: &mut Writer, scope: &Scope<'_>) {
    let Some(walk) = scope.phases.walks.first() else { return };
    let leaves = elem_leaves(scope, &walk.fresh);
    w.line("#pragma unroll");
    w.block("for (int piece = 0; piece < turn.PIECES; piece += 2)", |w| {
        declare_reads(w, scope, &walk.fresh, "VEC", "2 * turn.ACCESSES");
        if !leaves.is_empty() {
            read_pieces(w, scope, &leaves, "piece", ["in", "2 * turn.ACCESSES"]);
        }
        w.unrolled("access", "2 * turn.ACCESSES", |w| {
            w.line("if (access % turn.ACCESSES == 0) turn.put(product, piece + access / turn.ACCESSES);");
            turned_access(w, scope, walk);
        });
    });
}

/// Reads the operands from a piece on, so many accesses.
fn read_pieces(w: &mut Writer, scope: &Scope<'_>, leaves: &[usize], piece: &str, [into, accesses]: [&str; 2]) {
    w.unrolled("access", accesses, |w| {
        place_in_turn(w, piece);
        leaves.iter().for_each(|&leaf| w.line(read(scope, leaf, into, "access")));
    });
}

/// What is done with one access to what was turned.
fn turned_access(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    place_in_turn(w, "piece");
    w.line("float value[VEC];");
    w.line("turn.get(value, access);");
    epilogue(w, scope, walk, &TURNED);
}

/// Goes on with the place of the current access to a piece, if it is inside.
fn place_in_turn(w: &mut Writer, piece: &str) {
    w.line(format!("const long long m = part.m + turn.row(access), n = part.n + {piece} * 32 + turn.column(access);"));
    at_inside(w, "part");
}

/// Goes on with the place m and n, if it is inside.
fn at_inside(w: &mut Writer, part: &str) {
    w.line("if (m >= shape.m || n >= shape.n) continue;");
    let batch = [0, 1, 2].map(|axis| format!("{part}.batch.axis[{axis}]")).join(", ");
    w.line(format!("const fuse_at<RANK> at = {{{batch}, (IDX)m, (IDX)n}};"));
}

/// The line that reads an operand at the current access into one of the places for that.
fn read(scope: &Scope<'_>, leaf: usize, into: &str, access: &str) -> String {
    let (from, stride) = place(&scope.leaves[leaf], leaf);
    format!("fuse_read<STEP_{leaf}>({}_{into}[{access}], {from}, {stride});", scope.leaves[leaf])
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
