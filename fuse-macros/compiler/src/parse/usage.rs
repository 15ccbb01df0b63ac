//! What a value is used as tells that it is a tensor where no type does.

use super::Walker;
use super::names::{Name, as_ident, bound};
use super::syntax::{SAME_VALUE, SHAPE_QUERIES, only_of_tensors, strip};
use super::types::HostTy;
use super::value::Value;
use crate::op::Op;
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, Pat, Stmt};

impl Walker<'_> {
    /// Marks the variables of a pattern whose types are unknown and that the code after it uses as tensors.
    pub fn learn_from_use(&mut self, pat: &Pat, after: &[Stmt]) {
        for name in bound(pat).iter().map(Name::of) {
            if let Some(index) = self.var_index(&name)
                && matches!(self.flow.vars[index].value, Value::Host(HostTy::Unknown))
                && is_used_as_tensor(&name, after)
            {
                self.flow.vars[index].value = Value::Host(HostTy::TensorLike);
            }
        }
    }

    /// Whether an expression is a part of a variable that holds tensors in a way that capture does not see through.
    pub fn comes_from_tensors(&self, expr: &Expr) -> bool {
        match strip(expr) {
            Expr::MethodCall(call) if SHAPE_QUERIES.iter().any(|query| call.method == query) => false,
            Expr::MethodCall(call) => self.comes_from_tensors(&call.receiver),
            Expr::Field(field) => self.comes_from_tensors(&field.base),
            Expr::Index(index) => self.comes_from_tensors(&index.expr),
            Expr::Reference(reference) => self.comes_from_tensors(&reference.expr),
            Expr::Unary(unary) => self.comes_from_tensors(&unary.expr),
            Expr::Try(tried) => self.comes_from_tensors(&tried.expr),
            other => match as_ident(other).and_then(|ident| self.var(&Name::of(ident))).map(|var| &var.value) {
                Some(Value::Host(ty)) => *ty.behind_refs() == HostTy::TensorLike,
                _ => false,
            },
        }
    }
}

/// Whether a method that only tensors have is called on a variable before another hides it.
fn is_used_as_tensor(name: &Name, stmts: &[Stmt]) -> bool {
    let mut uses = Uses { name, found: false };
    for stmt in stmts {
        uses.visit_stmt(stmt);
        let hides = |pat: &Pat| bound(pat).iter().any(|ident| Name::of(ident) == *name);
        if uses.found || matches!(stmt, Stmt::Local(local) if hides(&local.pat)) {
            break;
        }
    }
    uses.found
}

struct Uses<'n> {
    name: &'n Name,
    found: bool,
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let is_ours = root(&call.receiver).is_some_and(|ident| Name::of(ident) == *self.name);
        self.found |= is_ours && only_of_tensors(&call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }
}

/// The variable at the start of a chain of ops: `s` of `s.abs().gelu()`.
fn root(expr: &Expr) -> Option<&syn::Ident> {
    match strip(expr) {
        Expr::MethodCall(call) => {
            let method = call.method.to_string();
            let is_op = Op::find(&method).is_some() || SAME_VALUE.contains(&method.as_str());
            root(&call.receiver).filter(|_| is_op)
        }
        Expr::Reference(reference) => root(&reference.expr),
        other => as_ident(other),
    }
}
