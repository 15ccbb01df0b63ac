//! Rust loops for a plan: for every kernel a unit struct that implements the runtime's `Body`.
//!
//! Loops are plain: slices of one length, values in single assignment, so that LLVM vectorises them. Reductions go
//! through the runtime's functions, which keep the canonical order.

mod column;
mod parked;
mod row;
mod scope;
mod stages;

use crate::emit::writer::Writer;
use crate::plan::{Expr, Kernel, Kind, Level, Phase, Plan, Step, StmtId, print};
use crate::types::DType;
use proc_macro2::TokenStream;
use scope::Scope;

/// The kernels a processor runs, in the order of the steps; for a product of matrices it is the whole epilogue.
pub fn kernels(plan: &Plan) -> impl Iterator<Item = &Kernel> {
    plan.steps.iter().map(Step::program)
}

/// The items of a plan: one struct a kernel, generic over the element types the plan is generic over.
pub fn tokens(plan: &Plan) -> TokenStream {
    let text = text(plan);
    text.parse().unwrap_or_else(|fault| panic!("emitted loops are no Rust: {fault}\n{text}"))
}

/// An expression for each body, in the order the runtime expects them; `params` are the function's element types.
pub fn instances(plan: &Plan, params: &[TokenStream]) -> Vec<TokenStream> {
    let generics = generics(plan);
    let params = &params[..generics.len()];
    let instance = |kernel: &Kernel| {
        let name = quote::format_ident!("{}", kernel.name);
        match generics.is_empty() {
            true => quote::quote!(#name),
            false => quote::quote!(#name::<#(#params),*>(::core::marker::PhantomData)),
        }
    };
    kernels(plan).map(instance).collect()
}

/// The items as text.
pub fn text(plan: &Plan) -> String {
    let mut w = Writer::default();
    for kernel in kernels(plan) {
        item(&mut w, plan, kernel);
    }
    w.finish()
}

/// The numbers of the generic element types of a plan.
fn generics(plan: &Plan) -> Vec<u8> {
    let dtypes = plan.bufs.iter().map(|b| b.ty.dtype).chain(plan.scalars.iter().copied());
    let last = dtypes.filter_map(|d| if let DType::Param(n) | DType::Compute(n) = d { Some(n) } else { None }).max();
    (0..last.map_or(0, |n| n + 1)).collect()
}

fn item(w: &mut Writer, plan: &Plan, kernel: &Kernel) {
    let generics = generics(plan);
    let (name, list) = (&kernel.name, |bound: &str| {
        let names: Vec<String> = generics.iter().map(|n| format!("T{n}{bound}")).collect();
        if names.is_empty() { String::new() } else { format!("<{}>", names.join(", ")) }
    });
    w.line(format!("#[doc = {:?}]", print::kernel(plan, kernel)));
    w.line("#[allow(non_camel_case_types)]");
    match generics.is_empty() {
        true => w.line(format!("struct {name};")),
        false => {
            let types: Vec<String> = generics.iter().map(|n| format!("T{n}")).collect();
            let marker = format!("::core::marker::PhantomData<fn() -> ({},)>", types.join(", "));
            w.line(format!("struct {name}{}({marker});", list("")));
        }
    }
    let scope = Scope::new(plan, kernel);
    w.line("#[allow(unused, clippy::all)]");
    let head = format!("impl{} ::fuse_runtime::rt::Body for {name}{}", list(": ::fuse_runtime::Float"), list(""));
    w.block(head, |w| {
        w.line("#[inline(always)]");
        let run = "fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>)";
        w.block(run, |w| body(w, &scope));
        if column::is_possible(&scope) {
            column::sums(w, &scope);
        }
        if scope.phases.has_finish() {
            w.line("#[inline(always)]");
            let finish = "fn finish(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>)";
            w.block(finish, |w| row::finish(w, &scope));
        }
    });
}

fn body(w: &mut Writer, scope: &Scope<'_>) {
    w.line("use ::fuse_runtime::{Element, rt, rt::math as m};");
    w.line("let n = ins.len();");
    operands(w, scope);
    w.lines(scope.define_draws());
    w.lines(scope.phases.uniform.iter().filter_map(|s| scope.define(*s)));
    match scope.kernel.kind {
        Kind::Map | Kind::Line => scope.phases.walks.iter().for_each(|walk| each_point(w, scope, walk)),
        Kind::Row | Kind::Column => row::walks(w, scope),
    }
}

/// Slices of everything that is read or written at every point; one length, so that no index is checked twice.
fn operands(w: &mut Writer, scope: &Scope<'_>) {
    if let Some((stmt, name)) = &scope.product {
        w.line(format!("let {name} = &ins.product::<{}>()[..n];", scope.ty(*stmt)));
    }
    for (k, leaf) in scope.kernel.leaves.iter().enumerate() {
        let (name, ty) = (&scope.leaves[k], scope.leaf_type(k));
        match (leaf.indexed, leaf.level) {
            (Some(_), _) => w.line(format!("let {name} = ins.gather::<{ty}>({k});")),
            (None, Level::Elem) => w.line(format!("let {name} = &ins.elem::<{ty}>({k})[..n];")),
            (None, Level::Row | Level::All) => {}
        }
    }
    for (k, store) in scope.kernel.stores.iter().enumerate() {
        let (name, ty) = (&scope.stores[k], scope.store_type(k));
        match (&store.scatter, scope.kernel.store_level(store)) {
            (Some(_), _) => w.line(format!("let mut {name} = outs.scatter::<{ty}>({k});")),
            (None, Level::Elem) => w.line(format!("let {name} = &mut outs.elem::<{ty}>({k})[..n];")),
            (None, Level::Row | Level::All) => {}
        }
    }
}

/// The loop of a map, or along a line.
fn each_point(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    w.lines(walk.before.iter().filter_map(|s| scope.define(*s)));
    if stages::write(w, scope, walk) {
        return;
    }
    for s in &walk.fresh {
        if let Expr::Scan(kind, _) = scope.kernel.stmt(*s).expr {
            let identity = crate::op::Literal::Float(f64::from(u8::from(kind == crate::op::Reduction::Prod)));
            let start = scope::literal(identity, scope.kernel.stmt(*s).dtype);
            w.line(format!("let mut {}_acc: {} = {start};", scope.name(*s), scope.ty(*s)));
        }
    }
    w.block("for i in 0..n", |w| {
        walk.fresh.iter().for_each(|s| point_value(w, scope, *s));
        walk.stores.iter().for_each(|store| w.line(point_store(scope, *store)));
    });
}

fn point_value(w: &mut Writer, scope: &Scope<'_>, s: StmtId) {
    let stmt = scope.kernel.stmt(s);
    let Expr::Scan(kind, operand) = stmt.expr else {
        return w.lines(scope.define(s));
    };
    // The running value stays unrounded, each result is rounded.
    let (name, ty) = (scope.name(s), scope.ty(s));
    let combine = match kind {
        crate::op::Reduction::Prod => "mul",
        _ => "add",
    };
    let term = scope::convert(&scope.ty(operand), &ty, &scope.value(operand));
    w.line(format!("{name}_acc = m::{combine}({name}_acc, {term});"));
    let value = format!("{name}_acc");
    let rounded = if stmt.round { scope::round(value, stmt.dtype, &stmt.expr) } else { value };
    w.line(format!("let {name}: {ty} = {rounded};"));
}

fn point_store(scope: &Scope<'_>, store: usize) -> String {
    let (name, value) = (&scope.stores[store], scope.outgoing(store));
    match &scope.kernel.stores[store].scatter {
        None => format!("{name}[i] = {value};"),
        Some(scatter) => {
            let call = if scatter.add { "add" } else { "set" };
            format!("{name}.{call}(i, {}, {value});", scope.index(scatter.index))
        }
    }
}
