//! The interpreter's loops, made from the op table.

use fuse_compiler::op::{Class, OpInfo, ParamKind, Rules, table};
use fuse_compiler::types::{DType, Ty};
use proc_macro::TokenStream;

/// The types ops compute in.
const COMPUTE: [DType; 6] = [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool];

/// A slice of `Row { op, args, run: elementwise!(..) }` for every elementwise op and every compute type it accepts.
pub fn rows() -> TokenStream {
    let rows: String = table()
        .iter()
        .filter(|op| op.class == Class::Elementwise && op.scalar.is_some())
        .flat_map(|op| COMPUTE.iter().filter_map(|&dtype| row(op, dtype)))
        .collect();
    format!("&[{rows}]").parse().expect("op rows hold Rust expressions")
}

/// The row of an op whose operands of open type have this one.
fn row(op: &OpInfo, dtype: DType) -> Option<String> {
    let branches = op.params.iter().any(|p| p.kind == ParamKind::Branch);
    let receiver = if branches { DType::Bool } else { dtype };
    if !op.accepts.contains(receiver) {
        return None;
    }
    let mut args = vec![receiver];
    for param in op.params.iter().filter(|p| p.kind.is_operand()) {
        args.push(match param.kind {
            ParamKind::TensorOf(given) | ParamKind::ScalarOf(given) => given,
            _ => dtype,
        });
    }
    let types: Vec<Ty> = args.iter().map(|&dtype| Ty::new(dtype, [])).collect();
    let out = (op.infer)(&mut Rules::default(), &types.iter().collect::<Vec<_>>(), &[]).ok()?[0].dtype;
    let mut text = op.scalar.as_ref()?.rust_for(dtype).to_owned();
    for k in 0..args.len() {
        text = text.replace(&format!("{{{k}}}"), &format!("x{k}"));
    }
    let list: String = args.iter().map(|dtype| format!("DType::{dtype:?},")).collect();
    let params: Vec<String> = args.iter().enumerate().map(|(k, dtype)| format!("x{k}: {dtype}")).collect();
    let params = params.join(", ");
    Some(format!("Row {{ op: {:?}, args: &[{list}], run: elementwise!(|{params}| -> {out} {{ {text} }}) }},", op.name))
}
