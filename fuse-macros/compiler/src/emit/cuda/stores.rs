//! Writing values.

use super::scope::Scope;
use crate::plan::abi::{c_type, store_dtype};

/// The value of a store in the element type of its buffer.
pub(super) fn outgoing(scope: &Scope<'_>, store: usize) -> String {
    let target = &scope.kernel.stores[store];
    let value = scope.value(target.value);
    format!("fuse_element<{}>::of({value})", c_type(store_dtype(scope.plan, target)))
}

/// The lines that write a value at a computed position behind `base`.
pub(super) fn scatter(scope: &Scope<'_>, store: usize, base: &str) -> Vec<String> {
    let target = &scope.kernel.stores[store];
    let scatter = target.scatter.as_ref().expect("only scatters have a position");
    let (name, place) = (&scope.stores[store], scatter.place);
    let index = scope.value(scatter.index);
    let to = format!("{}* {name}_row_at", scope.store_type(store));
    let element = c_type(store_dtype(scope.plan, target));
    let value = match (scatter.add, store_dtype(scope.plan, target)) {
        (false, _) => outgoing(scope, store),
        (true, dtype) if dtype.is_float() => {
            format!("fuse_element<{element}>::of(fuse_to_compute(*{name}_row_at) + {})", scope.value(target.value))
        }
        // Unsigned, since integers wrap.
        (true, _) => format!(
            "({element})((unsigned long long)*{name}_row_at + (unsigned long long){})",
            scope.value(target.value)
        ),
    };
    vec![
        format!("{to} = fuse_target({base}, {name}_axis, {index}, fault, call, {place});"),
        format!("if ({name}_row_at) *{name}_row_at = {value};"),
    ]
}
