//! Attention in one kernel: what becomes of a score before the softmax; how blocks go through it stands in the helpers.

use super::map::{one_element, prologue};
use super::params::attention_parameters;
use super::scope::{Reach, Scope};
use super::signature;
use crate::emit::writer::Writer;
use crate::plan::abi::c_type;
use crate::plan::{Expr, Fused, Level};
use crate::types::DType;

/// Writes the kernel. Only Hopper has its instructions.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, fused: &Fused) {
    let (_, _, values) = fused.steps.steps(scope.plan);
    let element = c_type(values.dtype);
    let result = c_type(scope.plan.bufs[values.lib.product.buf.0 as usize].ty.dtype);
    let score = scope.kernel.stores[0].value;
    let is_plain = scope.kernel.stmt(score).expr == Expr::Product && !scope.kernel.stmt(score).round;
    let parameters = attention_parameters(scope, element, result);
    w.block(signature(scope, "128 * (HEAD_GROUPS + 1), 1", &parameters), |w| {
        prologue(w, scope, &Score);
        w.line("// What becomes of the product of query m and key n.");
        let head = "const auto to_score = [&](const int (&batch)[3], const float product, const int m, const int n) -> float";
        w.line(format!("{head} {{"));
        w.indented(|w| {
            w.line("const fuse_at<RANK> at = {batch[0], batch[1], batch[2], m, n};");
            let walk = scope.phases.walks.first();
            w.lines(walk.into_iter().flat_map(|walk| &walk.fresh).filter_map(|s| scope.define(*s, &Score)));
            w.line(format!("return {};", scope.value(score)));
        });
        w.line("};");
        let factor = fused.factor.map_or_else(|| "1.0f".to_owned(), |factor| scope.value(factor));
        let choices = [fused.is_causal, fused.empty_is_zero, is_plain].map(|choice| choice.to_string()).join(", ");
        let helper = match values.dtype {
            DType::F32 => "fuse_attention_floats",
            DType::Param(_) => "fuse_attention_any",
            _ => "fuse_attention",
        };
        w.line(format!("typedef {helper}<{element}, {result}, HEAD_DEPTH, HEAD_COLUMNS, HEAD_GROUPS, HEAD_KEYS, {choices}, false, true> attend;"));
        let matrices = ["queries", "keys", "values"].map(|name| format!("{{of_{name}, of_{name}_strides}}")).join(", ");
        w.line(format!("attend::run({matrices}, of_result, of_result_strides, nullptr,"));
        w.line(format!("            shape, counters, {factor}, to_score, [](const int (&)[3], float weight, int, int) {{ return weight; }});"));
    });
}

/// Operands at the place of a query and a key.
struct Score;

impl Reach for Score {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        match scope.leaf_level(leaf) {
            Level::All => one_element(scope, leaf),
            _ if scope.is_index(leaf) => self.base(scope, leaf),
            _ => format!("fuse_to_compute(*({}))", self.base(scope, leaf)),
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
        "product".to_owned()
    }
}
