//! The matmul template: a block computes tiles of the product, or a strip of one of few rows, then the epilogue's program in
//! registers. Of several products with one left operand it computes the same tile or strip of each.

use super::compile::WAITS;
use super::map::{
    declare_draws, declare_reads, declare_results, elem_leaves, one_element, prologue, prologue_behind, result,
};
use super::params::{matmul_parameters, right_name};
use super::scope::{Reach, Scope, compute_type};
use super::signature;
use crate::emit::writer::Writer;
use crate::plan::abi::{c_type, draws};
use crate::plan::{Level, Matmul, Phase, Products};
use crate::types::DType;

/// Writes the kernel, named after its epilogue. How tiles and strips are multiplied stands in the helpers.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, matmul: &Matmul) {
    let of = Multiplied { dtype: matmul.dtype, count: 1 };
    write_ways(w, scope, of);
    w.line("#else");
    tiles(w, scope, of);
    w.line("#endif");
}

/// Writes the kernel of several products, named after its program.
pub(super) fn write_products(w: &mut Writer, scope: &Scope<'_>, products: &Products) {
    let mut steps = products.steps(scope.plan);
    let dtype = steps.next().expect("there are several").dtype;
    write_ways(w, scope, Multiplied { dtype, count: products.count });
    w.line("#endif");
}

/// What is multiplied.
#[derive(Clone, Copy)]
struct Multiplied {
    /// The type of its elements.
    dtype: DType,
    /// How many right operands there are.
    count: u32,
}

impl Multiplied {
    /// The names of the right operands.
    fn rights(self) -> String {
        (0..self.count).map(|n| right_name(n, self.count)).collect::<Vec<_>>().join(", ")
    }

    /// The right operands as tensor cores are fed with them.
    fn fed(self) -> String {
        format!("part.rights(right_strides, shape, {})", self.rights())
    }

    /// The last argument of a class that multiplies.
    fn argument(self) -> String {
        if self.count == 1 { String::new() } else { format!(", {}", self.count) }
    }
}

/// The ways that are for some devices and sizes alone.
fn write_ways(w: &mut Writer, scope: &Scope<'_>, of: Multiplied) {
    let ways: [(&str, bool, Write); 4] = [
        ("FEW", !of.dtype.is_narrow(), strips),
        ("SLIM", of.dtype.is_half() || of.dtype.is_generic(), slim),
        ("THIRDS", of.dtype == DType::F32 || of.dtype.is_generic(), thirds),
        ("HALVES", of.dtype.is_narrow() || of.dtype.is_generic(), halves),
    ];
    let mut branch = "#if";
    for (define, _, write) in ways.into_iter().filter(|(_, exists, _)| *exists) {
        w.line(format!("{branch} defined({define})"));
        write(w, scope, of);
        branch = "#elif";
    }
}

type Write = fn(&mut Writer, &Scope<'_>, Multiplied);

/// Products of few rows: a block takes a strip of columns, the last block of a strip goes on with its sums.
fn strips(w: &mut Writer, scope: &Scope<'_>, of: Multiplied) {
    w.block(strips_signature(scope, of), |w| {
        prologue(w, scope, &IN_STRIP);
        w.line(format!("typedef fuse_skinny<{}, FEW, RIGHT> strips;", c_type(of.dtype)));
        place_strip(w, of);
        strip(w, scope, of);
    });
}

/// The same of halves. What a strip reads of its columns is on its way to the cache before what the kernel waits for is done.
fn slim(w: &mut Writer, scope: &Scope<'_>, of: Multiplied) {
    w.block(strips_signature(scope, of), |w| {
        w.line(format!("typedef fuse_slim<{}, SLIM, LEFT, RIGHT, STRIP> strips;", c_type(of.dtype)));
        place_strip(w, of);
        w.line("strips::prefetch(strip, shape, columns, right_strides);");
        w.line(WAITS);
        prologue_behind(w, scope, &IN_STRIP);
        strip(w, scope, of);
    });
}

fn strips_signature(scope: &Scope<'_>, of: Multiplied) -> String {
    let parameters = matmul_parameters(scope, of.count, c_type(of.dtype), &compute_type(of.dtype));
    signature(scope, "256, 2", &parameters)
}

/// Declares which strip is the block's, and where its columns start.
fn place_strip(w: &mut Writer, of: Multiplied) {
    w.line(format!("const strips::Strip strip(shape, {});", of.count));
    if of.count > 1 {
        w.line(format!("const {}* const rights[] = {{{}}};", c_type(of.dtype), of.rights()));
    }
    let right = if of.count > 1 { "rights[strip.product]" } else { "right" };
    w.line(format!("const auto columns = {right} + strip.start(right_strides);"));
}

/// Multiplies a strip and goes on with it.
fn strip(w: &mut Writer, scope: &Scope<'_>, of: Multiplied) {
    w.line(format!("__shared__ {} product[{}][strips::ROWS][strips::COLUMNS];", compute_type(of.dtype), of.count));
    w.line("const auto rows = left + strip.start(left_strides);");
    w.line("strips::run(strip, shape, rows, left_strides, columns, right_strides);");
    w.line("if (!fuse_settle<strips>(strip, shape, product, parts, counters)) return;");
    let Some(walk) = scope.phases.walks.first() else { return };
    w.block("for (int turn = threadIdx.x; turn < strips::ROWS * strips::COLUMNS / VEC; turn += 256)", |w| {
        w.line("const int i = turn / (strips::COLUMNS / VEC), j = turn % (strips::COLUMNS / VEC) * VEC;");
        w.line("const long long m = strip.m + i, n = strip.n + j;");
        epilogue_inside(w, scope, walk, "strip", &IN_STRIP);
    });
}

/// Products of floats on Hopper's tensor cores: some threads of a block read and split the right operand of tile after tile, the
/// others multiply and go on with the epilogue.
fn thirds(w: &mut Writer, scope: &Scope<'_>, of: Multiplied) {
    let sides = [LEFT, &of.fed()].map(|side| format!("share.of({side})"));
    let [left, right] = sides.each_ref().map(String::as_str);
    let roles = Roles {
        columns: "THIRDS",
        class: &format!("fuse_thirds<THIRDS, LEFT, RIGHT{}>", of.argument()),
        tiles: "for (fuse_shares<tile::Part, 2 * tile::DEPTH, SHARES> share(shape, parts); share.more(); share.next())",
        tile: "share.tile",
        fed: &[right],
        multiplied: &[left, right],
        settled: "if (!share.settle(product, counters)) continue;",
        pieces: pieces_in_a_loop,
    };
    roles.write(w, scope, of);
}

/// The same of halves and fp8, whose operands are copied as they are.
fn halves(w: &mut Writer, scope: &Scope<'_>, of: Multiplied) {
    let roles = Roles {
        columns: "HALVES",
        class: &match of.dtype {
            DType::F8E4M3 => "fuse_float8<HALVES>".to_owned(),
            dtype => format!("fuse_halves<{}, HALVES, LEFT, RIGHT{}>", c_type(dtype), of.argument()),
        },
        tiles: "for (unsigned n = blockIdx.x; n < tile::Part::count(shape); n += gridDim.x)",
        tile: "n",
        fed: &[LEFT, &of.fed()],
        multiplied: &[LEFT],
        settled: "",
        pieces: pieces_of_halves,
    };
    roles.write(w, scope, of);
}

const LEFT: &str = "part.left(left, left_strides, shape)";

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

/// Writes what is done with a tile of so many products.
type Pieces = fn(&mut Writer, &Scope<'_>, u32);

impl Roles<'_> {
    fn write(&self, w: &mut Writer, scope: &Scope<'_>, of: Multiplied) {
        let (element, compute) = (c_type(of.dtype), compute_type(of.dtype));
        let each = |w: &mut Writer, body: &dyn Fn(&mut Writer)| {
            w.block(self.tiles, |w| {
                w.line(format!("const tile::Part part({}, shape);", self.tile));
                body(w);
            });
        };
        w.block(signature(scope, "384, 1", &matmul_parameters(scope, of.count, element, &compute)), |w| {
            prologue(w, scope, &Turned { count: of.count });
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
                each(w, &|w| self.write_tile(w, scope, of.count));
            });
            w.line("}");
        });
    }

    fn write_tile(&self, w: &mut Writer, scope: &Scope<'_>, count: u32) {
        w.line(format!("float product[{} / 2] = {{}};", self.columns));
        w.line(format!("work.multiply(product, {});", self.multiplied.join(", ")));
        if !self.settled.is_empty() {
            w.line(self.settled);
        }
        if !scope.phases.walks.is_empty() {
            w.line(format!("fuse_turn<{}> turn(work.shared.turn);", self.columns));
            (self.pieces)(w, scope, count);
        }
    }
}

fn tiles(w: &mut Writer, scope: &Scope<'_>, of: Multiplied) {
    let (element, compute) = (c_type(of.dtype), compute_type(of.dtype));
    w.block(signature(scope, "2 * TILE, 2", &matmul_parameters(scope, of.count, element, &compute)), |w| {
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
            epilogue_inside(w, scope, walk, "part", &IN_TILE);
        });
    });
}

/// The epilogue of one access, where it is inside of the product.
fn epilogue_inside(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, part: &str, reach: &dyn Reach) {
    at_inside(w, part);
    declare_reads(w, scope, &walk.fresh, "VEC", "1");
    elem_leaves(scope, &walk.fresh).into_iter().for_each(|leaf| w.line(read(scope, leaf, "in", "0")));
    epilogue(w, scope, walk, reach);
}

/// The epilogue of a tile that is turned in shared memory, piece after piece in a loop: unrolled, NVRTC takes longer for it than for
/// all else. A piece's operands are read before the one before it is written: the compiler cannot know that what is written is not
/// what will be read, and would wait for each.
fn pieces_in_a_loop(w: &mut Writer, scope: &Scope<'_>, count: u32) {
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
    let pieces = pieces(count);
    w.line("#pragma unroll 1");
    w.block(format!("for (int piece = 0; piece < {pieces}; ++piece)"), |w| {
        if !leaves.is_empty() {
            declare(w, "in");
            w.unrolled("access", "turn.ACCESSES", |w| {
                leaves.iter().map(|&leaf| &scope.leaves[leaf]).for_each(|name| {
                    w.line(format!("{name}_in[access] = {name}_next[access];"));
                });
            });
            w.block(format!("if (piece + 1 < {pieces})"), |w| {
                read_pieces(w, scope, &leaves, "(piece + 1)", ["next", "turn.ACCESSES"]);
            });
        }
        declare_values(w, count);
        w.line(turn_piece(count, "piece"));
        w.unrolled("access", "turn.ACCESSES", |w| turned_access(w, scope, walk, count));
    });
}

/// How many pieces of 32 columns a tile has of each product.
fn pieces(count: u32) -> String {
    if count == 1 { "turn.PIECES".to_owned() } else { format!("turn.PIECES / {count}") }
}

/// Declares what a thread has of a piece of every product, where there are several.
fn declare_values(w: &mut Writer, count: u32) {
    if count > 1 {
        w.line(format!("float value[{count}][turn.ACCESSES][VEC];"));
    }
}

/// The line that turns a piece of one product, or of all.
fn turn_piece(count: u32, piece: &str) -> String {
    if count == 1 { format!("turn.put(product, {piece});") } else { format!("turn.all(value, product, {piece});") }
}

/// The same of halves. What draws goes in a loop, too: unrolled, gelu and dropout behind 4096 x 768 x 3072 in bf16 took 322 us.
fn pieces_of_halves(w: &mut Writer, scope: &Scope<'_>, count: u32) {
    if draws(scope.kernel).is_empty() { pieces_unrolled(w, scope, count) } else { pieces_in_a_loop(w, scope, count) }
}

/// Pieces unrolled, two pieces read at a time: of halves, a tile is multiplied so fast that waiting for every piece to be turned
/// shows (bias and relu behind 4096 x 768 x 3072 in bf16: 44 us, in a loop 46).
fn pieces_unrolled(w: &mut Writer, scope: &Scope<'_>, count: u32) {
    let Some(walk) = scope.phases.walks.first() else { return };
    let leaves = elem_leaves(scope, &walk.fresh);
    w.line("#pragma unroll");
    w.block(format!("for (int piece = 0; piece < {}; piece += 2)", pieces(count)), |w| {
        declare_reads(w, scope, &walk.fresh, "VEC", "2 * turn.ACCESSES");
        if !leaves.is_empty() {
            read_pieces(w, scope, &leaves, "piece", ["in", "2 * turn.ACCESSES"]);
        }
        declare_values(w, count);
        w.unrolled("access", "2 * turn.ACCESSES", |w| {
            let turn = turn_piece(count, "piece + access / turn.ACCESSES");
            w.line(format!("if (access % turn.ACCESSES == 0) {turn}"));
            turned_access(w, scope, walk, count);
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
fn turned_access(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, count: u32) {
    place_in_turn(w, "piece");
    if count == 1 {
        w.line("float value[VEC];");
        w.line("turn.get(value, access);");
    }
    epilogue(w, scope, walk, &Turned { count });
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
fn epilogue(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, reach: &dyn Reach) {
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

/// Operands at element `v` of an access whose part of the product a thread has, or the block in shared memory.
struct InTile {
    /// The element of the product, or of each where there are several.
    product: &'static str,
}

const IN_TILE: InTile = InTile { product: "product[i][j + v]" };
const IN_STRIP: InTile = InTile { product: "product[{n}][i][j + v]" };

impl Reach for InTile {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        load(scope, leaf, "0")
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        base(scope, leaf)
    }

    fn product(&self, n: u32) -> String {
        self.product.replace("{n}", &n.to_string())
    }
}

/// The same of an access to what was turned of so many products.
struct Turned {
    count: u32,
}

impl Reach for Turned {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        load(scope, leaf, "access")
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        base(scope, leaf)
    }

    fn product(&self, n: u32) -> String {
        if self.count == 1 { "value[v]".to_owned() } else { format!("value[{n}][access % turn.ACCESSES][v]") }
    }
}

/// The value of a leaf, from what an access has read.
fn load(scope: &Scope<'_>, leaf: usize, access: &str) -> String {
    let name = &scope.leaves[leaf];
    match scope.leaf_level(leaf) {
        Level::All => one_element(scope, leaf),
        _ if scope.is_index(leaf) => base(scope, leaf),
        _ => format!("fuse_to_compute({name}_in[{access}][v])"),
    }
}

/// The address a gather starts from.
fn base(scope: &Scope<'_>, leaf: usize) -> String {
    let name = &scope.leaves[leaf];
    match scope.leaf_level(leaf) {
        Level::All => format!("{name}_ptr"),
        _ => format!("{name}_ptr + fuse_offset(at, {name}_strides) + v * {name}_strides.axis[RANK - 1]"),
    }
}

#[cfg(test)]
mod tests;
