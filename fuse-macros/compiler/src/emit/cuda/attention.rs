//! Attention in one kernel, and its way back in two: what becomes of scores and weights; how blocks go through them stands in
//! the helpers.

use super::map::{declare_draws, draws, one_element, prologue};
use super::params::attention_parameters;
use super::scope::{Reach, Scope};
use super::signature;
use crate::emit::writer::Writer;
use crate::plan::abi::{self, Part, c_type, is_given, is_given_value};
use crate::plan::{Fused, Level, Operand, StmtId};
use crate::types::DType;

/// The programs of a kernel: what one is called, what of, what the kernel gives it, and its value.
struct Lambda {
    name: &'static str,
    about: &'static str,
    given: &'static [&'static str],
    value: Option<StmtId>,
    /// What drops a value: a statement that tells whether it is kept, and what those that are kept are multiplied by.
    drops: Option<[StmtId; 2]>,
}

/// Writes a kernel.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, fused: &Fused, part: Part) {
    match part {
        Part::Drops => write_drops(w, scope, fused),
        _ => write_products(w, scope, fused, part),
    }
}

/// The kernel that draws which weights are kept.
fn write_drops(w: &mut Writer, scope: &Scope<'_>, fused: &Fused) {
    let drops = fused.weight().and_then(|weight| abi::drops(scope.kernel, weight));
    let [keeps, _] = drops.expect("the scheduler draws what is dropped");
    let parameters = attention_parameters(scope, fused, Part::Drops, [""; 2]);
    w.block(signature(scope, "128 * (HEAD_GROUPS + 1)", &parameters), |w| {
        prologue(w, scope, &Program { given: "product", point: "v" });
        declare_draws(w, scope, &scope.kernel.ids().collect::<Vec<_>>(), "4");
        let lambda = |name, about, value| Lambda { name, about, given: &[], value: Some(value), drops: None };
        write_program_at(w, scope, &lambda("keeps", "is kept, v-th of four,", keeps), ", const int v");
        let Some((draw, place, least)) = scope.compared_draw(keeps) else {
            return w.line("fuse_draw_kept(keeps, of_kept, shape);");
        };
        write_program_at(w, scope, &lambda("place", "the draw's position is,", place), "");
        w.line(format!("fuse_draw_kept(draw{draw}, 0x{least:08x}u, place, keeps, of_kept, shape);"));
    });
}

/// Writes one that multiplies, by Hopper's instructions or, where it is compiled with rows for single warps, by those of other devices.
fn write_products(w: &mut Writer, scope: &Scope<'_>, fused: &Fused, part: Part) {
    let (_, _, values) = fused.parts(scope.plan);
    let written = scope.plan.bufs[result(scope, fused, part).buf.0 as usize].ty.dtype;
    let lambdas = lambdas(scope, fused, part);
    let parameters = attention_parameters(scope, fused, part, [values.dtype, written].map(c_type));
    w.block(signature(scope, "HEAD_THREADS, 1", &parameters), |w| {
        prologue(w, scope, &Program { given: "product", point: "0" });
        w.lines(draws(scope));
        write_lambdas(w, scope, &lambdas, fused.drops().is_some());
        write_helper(w, scope, (fused, part), [values.dtype, written], &lambdas);
        write_run(w, scope, (fused, part), &lambdas);
    });
}

/// The type of the helper that goes through scores and weights.
fn write_helper(
    w: &mut Writer,
    scope: &Scope<'_>,
    (fused, part): (&Fused, Part),
    dtypes: [DType; 2],
    lambdas: &[Lambda],
) {
    let is_plain = |name: &str| {
        let of = lambdas.iter().filter(|lambda| lambda.name.ends_with(name));
        of.flat_map(|lambda| lambda.value).all(|value| is_given_value(scope.kernel, value))
    };
    let (causal, zero, keeps) = (fused.is_causal, fused.empty_is_zero, fused.back.is_some());
    let (score, weight) = (is_plain("_score"), is_plain("_weight"));
    let choices = match part {
        Part::Queries | Part::Keys => format!("{causal}, {score}, {weight}"),
        _ => format!("{causal}, {zero}, {score}, {keeps}, {weight}"),
    };
    let types = dtypes.map(c_type).join(", ");
    let of = |kind: &str, sizes: &str| {
        let helper = format!("fuse_attention{kind}{}", direction(part));
        format!("typedef {helper}<{types}, HEAD_DEPTH, HEAD_COLUMNS, {sizes}, {choices}> attend;")
    };
    let by_groups = of(kind(dtypes[0]), "HEAD_GROUPS, HEAD_KEYS");
    if dtypes[0] == DType::F32 {
        return w.line(by_groups);
    }
    w.line("#if defined(HEAD_ROWS)");
    w.line(of("_warps", "HEAD_ROWS, HEAD_KEYS, HEAD_PIECES"));
    w.line("#else");
    w.line(by_groups);
    w.line("#endif");
}

/// The call of the helper: its matrices, what lies beside them, and the programs.
fn write_run(w: &mut Writer, scope: &Scope<'_>, (fused, part): (&Fused, Part), lambdas: &[Lambda]) {
    let factor = if part == Part::Forward { fused.factor } else { fused.back.as_ref().and_then(|back| back.factor) };
    let factor = factor.map_or_else(|| "1.0f".to_owned(), |factor| scope.value(factor));
    let (inputs, outputs) = part.matrices();
    let inputs = inputs.iter().map(|name| format!("{{of_{name}, of_{name}_strides}}"));
    let outputs = outputs.iter().map(|name| format!("of_{name}, of_{name}_strides"));
    let rows: &[&str] = match part {
        Part::Queries | Part::Keys => &["of_logs", "of_sums"],
        _ if fused.back.is_none() => &["parts"],
        _ => &["of_logs"],
    };
    let rows = rows.iter().map(|row| (*row).to_owned());
    let matrices: Vec<String> = match part {
        Part::Queries | Part::Keys => inputs.chain(rows).chain(outputs).collect(),
        _ => inputs.chain(outputs).chain(rows).collect(),
    };
    let programs: Vec<&str> = lambdas.iter().map(|lambda| lambda.name).collect();
    w.line(format!("attend::run({},", matrices.join(", ")));
    w.line(format!("            shape, counters, {factor}, {});", programs.join(", ")));
}

/// What Hopper's kernels of an element type are called after.
fn kind(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "_floats",
        DType::Param(_) => "_any",
        _ => "",
    }
}

fn direction(part: Part) -> &'static str {
    match part {
        Part::Queries => "_dq",
        Part::Keys => "_dkv",
        _ => "",
    }
}

/// Where a kernel writes first.
fn result<'p>(scope: &Scope<'p>, fused: &'p Fused, part: Part) -> &'p Operand {
    let back = fused.back.as_ref().map(|back| back.steps(scope.plan));
    let product = match (part, back) {
        (Part::Queries, Some((.., queries, _))) => queries,
        (Part::Keys, Some((.., keys))) => keys,
        _ => fused.parts(scope.plan).2,
    };
    &product.lib.product
}

fn lambdas(scope: &Scope<'_>, fused: &Fused, part: Part) -> Vec<Lambda> {
    let back = fused.back.as_ref().filter(|_| part != Part::Forward);
    let weight = back.map_or_else(|| fused.weight(), |back| back.weight());
    let score = Some(part.program(fused).stores[0].value);
    let to_score =
        Lambda { name: "to_score", about: "becomes of the product", given: &["product"], value: score, drops: None };
    let drops = weight.and_then(|weight| abi::drops(scope.kernel, weight));
    let to_weight =
        Lambda { name: "to_weight", about: "values are multiplied by", given: &["given"], value: weight, drops };
    // What multiplies each weight multiplies its gradient.
    let of_weight =
        Lambda { name: "of_weight", about: "the gradient of the weight is", given: &["given"], value: weight, drops };
    let of_score = back.map(|back| Lambda {
        name: "of_score",
        about: "the gradient of the product is",
        given: &["given", "product"],
        value: Some(back.of_product()),
        drops: None,
    });
    let all = match part {
        Part::Queries => vec![to_score, of_weight],
        Part::Keys => vec![to_score, to_weight, of_weight],
        _ => vec![to_score, to_weight],
    };
    all.into_iter().chain(of_score).collect()
}

/// The programs, and before them what drops values, unless another kernel has decided that.
fn write_lambdas(w: &mut Writer, scope: &Scope<'_>, lambdas: &[Lambda], is_drawn: bool) {
    if let Some([keeps, _]) = lambdas.iter().find_map(|lambda| lambda.drops).filter(|_| !is_drawn) {
        let keeps = Lambda { name: "keeps", about: "is kept", given: &[], value: Some(keeps), drops: None };
        write_program(w, scope, &keeps);
    }
    for lambda in lambdas {
        let Some([_, scale]) = lambda.drops else {
            write_program(w, scope, lambda);
            continue;
        };
        let (name, scale) = (lambda.name, scope.value(scale));
        w.line(match is_drawn {
            true => format!("const fuse_kept {name} = {{of_kept, shape, (float){scale}}};"),
            false => format!("const auto {name} = fuse_dropped(keeps, {scale});"),
        });
    }
}

fn write_program(w: &mut Writer, scope: &Scope<'_>, lambda: &Lambda) {
    write_program_at(w, scope, lambda, "");
}

/// The same with a parameter more.
fn write_program_at(w: &mut Writer, scope: &Scope<'_>, lambda: &Lambda, more: &str) {
    w.line(format!("// What {} of query m and key n.", lambda.about));
    let given: String = lambda.given.iter().map(|name| format!("const float {name}, ")).collect();
    let head =
        format!("const auto {} = [&](const int (&batch)[3], {given}const int m, const int n{more})", lambda.name);
    let result = match lambda.value {
        Some(value) if lambda.given.is_empty() => scope.ty(value),
        _ => "float".to_owned(),
    };
    w.line(format!("{head} -> {result} {{"));
    w.indented(|w| {
        let first = lambda.given.first().copied().unwrap_or_default();
        let Some(value) = lambda.value else { return w.line(format!("return {first};")) };
        let reach = Program { given: first, point: if more.is_empty() { "0" } else { "v" } };
        let needed = scope.kernel.needed([value]);
        let walks = scope.phases.walks.first();
        let fresh = walks.into_iter().flat_map(|walk| &walk.fresh).filter(|s| needed[s.0 as usize]);
        w.line("const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};");
        w.lines(fresh.filter_map(|s| scope.define(*s, &reach)));
        w.line(format!("return {};", scope.value(value)));
    });
    w.line("};");
}

/// Operands at the place of a query and a key.
struct Program {
    /// What a leaf stands for that the kernel gives.
    given: &'static str,
    /// Which of the points that draws are made for at a time it is.
    point: &'static str,
}

impl Reach for Program {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        match scope.leaf_level(leaf) {
            _ if is_given(scope.kernel, leaf) => self.given.to_owned(),
            Level::All => one_element(scope, leaf),
            _ if scope.is_index(leaf) => self.base(scope, leaf),
            _ => format!("fuse_to_compute(*({}))", self.base(scope, leaf)),
        }
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => format!("{name}_ptr"),
            _ => format!("{name}_ptr + fuse_offset<STEP_{leaf}>(at, {name}_strides)"),
        }
    }

    fn point(&self) -> &'static str {
        self.point
    }

    fn product(&self, _: u32) -> String {
        "product".to_owned()
    }
}
