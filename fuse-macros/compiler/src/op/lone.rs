//! A tensor of rank 0 along an axis acts as one element, as in PyTorch: it is a line of one for the op, and no line after it.

use super::build::Ops;
use super::rules::{Fault, Rules, Types};
use super::{Attr, Build, OpInfo, Val};
use crate::types::{Dim, Ty};

/// The types of the results where the receiver has rank 0.
pub(super) fn types(op: &OpInfo, rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let lines: Vec<Ty> = args.iter().map(|ty| line(ty)).collect();
    rules.lone = true;
    let types = (op.infer)(rules, &lines.iter().collect::<Vec<_>>(), attrs);
    rules.lone = false;
    let mut types = types?;
    for ty in &mut types {
        let name = op.name;
        let text = || format!("`{name}`: a tensor of rank 0 has {{right}} element, not {{left}}");
        if !rules.equal(&ty.numel(), &Dim::Const(1), text) {
            let count = rules.show(&ty.numel());
            return Err(Fault::new(format!("`{name}`: {{0}} has rank 0 and one element, not {count}"))
                .help("`{0}.unsqueeze(0)` has an axis"));
        }
        ty.dims.clear();
    }
    Ok(types)
}

/// The op on lines of one element.
pub(super) fn open(op: &OpInfo, b: &mut dyn Build, args: &[Val], attrs: &[Attr]) -> Vec<Val> {
    let mut o = Ops(b);
    let lines: Vec<Val> = args.iter().map(|&arg| o.reshape(arg, line(o.ty(arg)).dims)).collect();
    let result = o.with(op.name, &lines, attrs.to_vec());
    vec![o.reshape(result, vec![])]
}

/// A scalar's type as that of a line.
fn line(ty: &Ty) -> Ty {
    match ty.rank() {
        0 => Ty::new(ty.dtype, [Dim::Const(1)]),
        _ => ty.clone(),
    }
}
