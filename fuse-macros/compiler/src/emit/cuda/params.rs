//! Parameter lists, from the one list of arguments.

use super::scope::{Scope, compute_type, reduction};
use crate::op::Reduction;
use crate::plan::abi::{self, Arg, Part};
use crate::plan::{Expr, Fused, Kind, Level, StmtId};
use crate::types::DType;

/// The parameters of a kernel, one a line.
pub(super) fn parameters(scope: &Scope<'_>) -> Vec<String> {
    abi::arguments(scope.kernel).into_iter().map(|arg| parameter(scope, arg)).collect()
}

/// The parameters of a matmul template for so many products.
pub(super) fn matmul_parameters(scope: &Scope<'_>, products: u32, element: &str, compute: &str) -> Vec<String> {
    let text = |arg| match arg {
        Arg::LeftMatrix => format!("const {element}* left"),
        Arg::LeftStrides => "const fuse_matrix left_strides".to_owned(),
        Arg::RightMatrix(n) => format!("const {element}* {}", right_name(n, products)),
        Arg::RightStrides => "const fuse_matrix right_strides".to_owned(),
        Arg::Product => "const fuse_shape shape".to_owned(),
        abi::PARTS => format!("{compute}* parts"),
        arg => parameter(scope, arg),
    };
    abi::matmul_arguments(scope.kernel, products).into_iter().map(text).collect()
}

/// What the right operand of one of so many products is called.
pub(super) fn right_name(n: u32, products: u32) -> String {
    if products == 1 { "right".to_owned() } else { format!("right_{n}") }
}

/// The parameters of a kernel of attention.
pub(super) fn attention_parameters(
    scope: &Scope<'_>,
    fused: &Fused,
    part: Part,
    [read, written]: [&str; 2],
) -> Vec<String> {
    let (inputs, outputs) = part.matrices();
    let matrix = |k: u32| inputs.iter().chain(outputs).nth(k as usize).expect("the matrix has a name");
    let text = |arg| match arg {
        Arg::Matrix(k) => format!("const {read}* of_{}", matrix(k)),
        Arg::MatrixTo(k) => format!("{written}* of_{}", matrix(k)),
        Arg::Heads(k) => format!("const fuse_heads of_{}_strides", matrix(k)),
        Arg::Logs => "const float* of_logs".to_owned(),
        Arg::LogsTo => "float* of_logs".to_owned(),
        Arg::Sums => "const float* of_sums".to_owned(),
        Arg::SumsTo => "float* of_sums".to_owned(),
        Arg::Kept => "const unsigned* of_kept".to_owned(),
        Arg::KeptTo => "unsigned* of_kept".to_owned(),
        Arg::Attention => "const fuse_attention_shape shape".to_owned(),
        abi::PARTS => "float* parts".to_owned(),
        arg => parameter(scope, arg),
    };
    abi::attention_arguments(fused, part).into_iter().map(text).collect()
}

fn parameter(scope: &Scope<'_>, arg: Arg) -> String {
    let leaf = |k: u32| (&scope.leaves[k as usize], scope.leaf_level(k as usize));
    let store = |k: u32| (&scope.stores[k as usize], scope.kernel.store_level(&scope.kernel.stores[k as usize]));
    let rank = |level: Level| match (level, scope.kernel.kind) {
        (Level::Elem, kind) if kind != Kind::Map => "RANK + INNER_RANK",
        _ => "RANK",
    };
    match arg {
        Arg::Leaf(k) if scope.is_index(k as usize) => format!("const long long {}_ptr", leaf(k).0),
        Arg::Leaf(k) => format!("const {}* {}_ptr", scope.leaf_type(k as usize), leaf(k).0),
        Arg::LeafStrides(k) => format!("const fuse_strides<{}> {}_strides", rank(leaf(k).1), leaf(k).0),
        Arg::LeafAxis(k) => format!("const fuse_axis {}_axis", leaf(k).0),
        Arg::Store(k) => format!("{}* {}_ptr", scope.store_type(k as usize), store(k).0),
        Arg::StoreStrides(k) => format!("const fuse_strides<{}> {}_strides", rank(store(k).1), store(k).0),
        Arg::StoreAxis(k) => format!("const fuse_axis {}_axis", store(k).0),
        Arg::Scalar(k, dtype) => format!("const {} {}", compute_type(dtype), scope.scalar(k, dtype)),
        Arg::Size(s) => format!("const long long {}_size", scope.name(s)),
        Arg::Seed => "const unsigned long long seed".to_owned(),
        Arg::Offset(draw) => format!("const unsigned long long offset{draw}"),
        Arg::Fault => "fuse_fault* fault".to_owned(),
        Arg::Call => "const unsigned long long call".to_owned(),
        Arg::Failed => "const unsigned long long* failed".to_owned(),
        Arg::Stage(s) => format!("{}* {}_stage", scope.ty(s), scope.name(s)),
        Arg::Partial(s) => format!("{}::Acc* {}_part", policy(scope, s), scope.name(s)),
        Arg::Counters => "unsigned* counters".to_owned(),
        Arg::Outer => "const fuse_extents<RANK> outer".to_owned(),
        Arg::Inner => "const fuse_extents<INNER_RANK> inner".to_owned(),
        Arg::Asked => "const bool* goes_on".to_owned(),
        Arg::LeftMatrix | Arg::LeftStrides | Arg::RightMatrix(_) | Arg::RightStrides | Arg::Product => {
            unreachable!("only a matmul template takes matrices")
        }
        Arg::Matrix(_) | Arg::MatrixTo(_) | Arg::Heads(_) | Arg::Attention => {
            unreachable!("only attention takes heads")
        }
        Arg::Logs | Arg::LogsTo | Arg::Sums | Arg::SumsTo | Arg::Kept | Arg::KeptTo => {
            unreachable!("only attention has something to keep")
        }
    }
}

/// The policy class of a reduction statement.
pub(super) fn policy(scope: &Scope<'_>, s: StmtId) -> String {
    let (Expr::Reduce(kind, operand) | Expr::Scan(kind, operand)) = scope.kernel.stmt(s).expr else {
        unreachable!("only reductions have a policy")
    };
    reduction(kind, &scope.ty(operand), &accumulator(scope, kind, s))
}

/// Sums and products carry their result's compute type, integers i64.
fn accumulator(scope: &Scope<'_>, kind: Reduction, s: StmtId) -> String {
    let dtype = scope.kernel.stmt(s).dtype;
    let sums = matches!(kind, Reduction::Sum | Reduction::Prod);
    if sums && !dtype.is_float() { compute_type(DType::I64) } else { compute_type(dtype) }
}
