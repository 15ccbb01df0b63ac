//! Shape values: host integers as formulas in the extents of tensors.

use super::Walker;
use super::eval::text;
use super::names::Name;
use super::program::Step;
use super::syntax::strip;
use super::types::HostTy;
use super::value::{Value, Var};
use crate::types::{Dim, Sym};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{BinOp, Expr, ExprBinary, ExprCast, ExprLit, Lit, Type, UnOp};

/// A symbol of the function: the extent of a tensor, or a host integer.
pub struct SymInfo {
    /// What users know it by.
    pub name: String,
    /// Where a `#[dims]` name comes from, such as `x: #[dims(B, D)]`.
    pub origin: Option<String>,
    /// The i64 variable or expression of the emitted code.
    pub host: TokenStream,
}

impl Walker<'_> {
    /// A new symbol with a variable of its own.
    pub fn new_sym(&mut self, name: String) -> Sym {
        let sym = Sym(self.syms.len() as u32);
        let local = self.sym_local(sym);
        self.syms.push(SymInfo { name, origin: None, host: quote!(#local) });
        sym
    }

    /// The variable that holds a symbol in the emitted code.
    pub fn sym_local(&self, sym: Sym) -> Ident {
        format_ident!("__d{}", sym.0, span = Span::mixed_site())
    }

    /// What users know a symbol by.
    pub fn sym_name(&self, sym: Sym) -> String {
        self.syms[sym.0 as usize].name.clone()
    }

    /// A symbol as an i64 expression of the emitted code.
    pub fn sym_tokens(&mut self, sym: Sym) -> TokenStream {
        self.needed.insert(sym);
        self.syms[sym.0 as usize].host.clone()
    }

    /// A formula as a host integer.
    pub fn dim_tokens(&mut self, dim: &Dim) -> TokenStream {
        match dim {
            Dim::Const(k) => {
                let literal = proc_macro2::Literal::i64_unsuffixed(*k);
                quote!(#literal)
            }
            dim => {
                let value = self.dim_i64(dim);
                quote!((#value) as usize)
            }
        }
    }

    /// A formula as an i64 expression.
    pub fn dim_i64(&mut self, dim: &Dim) -> TokenStream {
        let pair = |w: &mut Self, a: &Dim, b: &Dim| (w.dim_i64(a), w.dim_i64(b));
        match dim {
            Dim::Const(k) => {
                let literal = proc_macro2::Literal::i64_suffixed(*k);
                quote!(#literal)
            }
            Dim::Sym(sym) => self.sym_tokens(*sym),
            Dim::Add(terms) => {
                let terms = terms.iter().map(|term| self.dim_i64(term)).collect::<Vec<_>>();
                quote!((#(#terms)+*))
            }
            Dim::Mul(factors) => {
                let mut factors = factors.iter().map(|factor| self.dim_i64(factor)).collect::<Vec<_>>().into_iter();
                let first = factors.next();
                quote!((#first #(* #factors)*))
            }
            Dim::FloorDiv(a, b) => {
                let (a, b) = pair(self, a, b);
                quote!(#a.div_euclid(#b))
            }
            Dim::CeilDiv(a, b) => {
                let (a, b) = pair(self, a, b);
                quote!((#a + #b - 1).div_euclid(#b))
            }
            Dim::Min(a, b) => {
                let (a, b) = pair(self, a, b);
                quote!(#a.min(#b))
            }
            Dim::Max(a, b) => {
                let (a, b) = pair(self, a, b);
                quote!(#a.max(#b))
            }
            Dim::Broadcast(a, b) => {
                let (a, b) = pair(self, a, b);
                quote!((if #a == 1 { #b } else { #a }))
            }
        }
    }

    /// A host integer as a formula, where it is arithmetic on shapes, constants and `usize` variables.
    pub fn dim(&mut self, expr: &Expr) -> Option<Dim> {
        match strip(expr) {
            Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => int.base10_parse().ok().map(Dim::Const),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
                let inner = self.dim(&unary.expr)?;
                inner.as_const().map(|k| Dim::Const(-k))
            }
            Expr::Binary(binary) => self.dim_binary(binary),
            Expr::Cast(ExprCast { expr, ty, .. }) if is_wide_integer(ty) => self.dim(expr),
            Expr::Path(_) => self.dim_path(expr),
            Expr::MethodCall(_) | Expr::Index(_) | Expr::Field(_) => match self.shape_query(expr)? {
                Value::Dim(dim) => Some(dim),
                _ => None,
            },
            _ => None,
        }
    }

    fn dim_binary(&mut self, binary: &ExprBinary) -> Option<Dim> {
        let build: fn(Dim, Dim) -> Dim = match binary.op {
            BinOp::Add(_) => Dim::add,
            BinOp::Sub(_) => Dim::sub,
            BinOp::Mul(_) => Dim::mul,
            BinOp::Div(_) => Dim::floor_div,
            _ => return None,
        };
        let (left, right) = match (self.dim(&binary.left), self.dim(&binary.right)) {
            (Some(left), Some(right)) => (left, right),
            // Beside an integer stands an integer.
            (Some(left), None) => (left, self.host_dim(&binary.right)?),
            (None, Some(right)) => (self.host_dim(&binary.left)?, right),
            (None, None) => return None,
        };
        // A division by zero panics on the host, and numbers with a sign divide differently there.
        let is_division = matches!(binary.op, BinOp::Div(_));
        let is_signed = [&binary.left, &binary.right].iter().any(|side| self.is_other_integer(side));
        let is_negative = [&left, &right].iter().any(|dim| dim.as_const().is_some_and(|k| k < 0));
        let differs = right == Dim::Const(0) || is_signed || is_negative;
        if is_division && !differs && right.as_const().is_none() {
            self.divide_by(&right, &binary.right);
        }
        (!is_division || !differs).then(|| build(left, right))
    }

    /// Where a divisor is known only at run time, the host divides by it once, for the panic that 0 means.
    fn divide_by(&mut self, divisor: &Dim, at: &Expr) {
        let divisor = self.dim_i64(divisor);
        let span = at.to_token_stream().into_iter().next().map_or_else(Span::mixed_site, |first| first.span());
        self.flow.steps.push(Step::Host(quote_spanned!(span=> let _ = 1i64 / #divisor;)));
    }

    fn dim_path(&mut self, expr: &Expr) -> Option<Dim> {
        let ident = super::names::as_ident(expr)?;
        let Some(index) = self.var_index(&Name::of(ident)) else {
            return self.const_param(ident);
        };
        let var = &self.flow.vars[index];
        if let Some(dim) = &var.formula {
            return Some(dim.clone());
        }
        match &var.value {
            Value::Dim(dim) => Some(dim.clone()),
            Value::Host(HostTy::Size) => {
                // The symbol holds the variable's value of now, whatever becomes of the variable.
                let sym = self.new_sym(ident.to_string());
                let local = self.sym_local(sym);
                let value = quote!(#ident as i64);
                self.flow.steps.push(Step::Capture { local, value });
                if !self.flow.vars[index].mutable {
                    self.flow.vars[index].value = Value::Dim(Dim::Sym(sym));
                }
                Some(Dim::Sym(sym))
            }
            _ => None,
        }
    }

    /// Whether a formula stands for an integer that is written as one of another type than `usize`.
    pub fn is_other_integer(&self, expr: &Expr) -> bool {
        match strip(expr) {
            Expr::Cast(cast) => !is_index_type(&cast.ty),
            Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => !["", "usize"].contains(&int.suffix()),
            Expr::Unary(unary) => self.is_other_integer(&unary.expr),
            Expr::Binary(binary) => self.is_other_integer(&binary.left) || self.is_other_integer(&binary.right),
            other => super::names::as_ident(other)
                .and_then(|ident| self.var(&Name::of(ident)))
                .is_some_and(|var| var.formula.is_some()),
        }
    }

    /// An integer that is a variable of the emitted code, too.
    pub fn declare_number(&mut self, ident: &Ident, dim: Dim, is_index: bool) {
        self.declare(match is_index {
            true => Var::bound(ident, Value::Dim(dim), false),
            false => Var { formula: Some(dim), ..Var::bound(ident, Value::Host(HostTy::Unknown), false) },
        });
    }

    /// A host integer in a variable or field, read now. One that nothing can change is read once.
    fn host_dim(&mut self, expr: &Expr) -> Option<Dim> {
        let plain = matches!(strip(expr), Expr::Path(_) | Expr::Field(_)) && !self.mentions_tensor(expr);
        let fixed = plain && self.is_fixed(expr);
        if !plain {
            return None;
        }
        let key = text(expr);
        if let Some(sym) = self.flow.host_ints.get(&key).filter(|_| fixed) {
            return Some(Dim::Sym(*sym));
        }
        let value = self.host_tokens(expr);
        let dim = self.host_int(key.clone(), value);
        if let (true, Dim::Sym(sym)) = (fixed, &dim) {
            self.flow.host_ints.insert(key, *sym);
        }
        Some(dim)
    }

    /// A symbol for a host integer that is read now.
    pub fn host_int(&mut self, name: String, value: TokenStream) -> Dim {
        let sym = self.new_sym(name);
        let local = self.sym_local(sym);
        self.flow.steps.push(Step::Capture { local, value: quote!(::fuse_runtime::rt::int(#value)) });
        Dim::Sym(sym)
    }

    fn const_param(&mut self, ident: &Ident) -> Option<Dim> {
        if !self.generics.consts.contains(ident) {
            return None;
        }
        let name = ident.to_string();
        if let Some(known) = self.syms.iter().position(|sym| sym.name == name && sym.origin.is_none()) {
            return Some(Dim::Sym(Sym(known as u32)));
        }
        let sym = self.new_sym(name);
        self.syms[sym.0 as usize].host = quote!((#ident as i64));
        Some(Dim::Sym(sym))
    }

    /// What a method reads of a tensor's type: `x.dims()`, `x.size(1)`, `x.numel()`; also `x.dims()[1]`.
    pub fn shape_query(&mut self, expr: &Expr) -> Option<Value> {
        match strip(expr) {
            Expr::MethodCall(call) => {
                let query = call.method.to_string();
                if !["dims", "size", "numel"].contains(&query.as_str()) {
                    return None;
                }
                let dims = self.known_dims(&call.receiver)?;
                match query.as_str() {
                    "dims" => Some(Value::Array(dims.into_iter().map(Value::Dim).collect())),
                    "numel" => Some(Value::Dim(dims.into_iter().fold(Dim::Const(1), Dim::mul))),
                    _ => {
                        let axis = self.dim(call.args.first()?)?.as_const()?;
                        let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
                        dims.get(usize::try_from(axis).ok()?).cloned().map(Value::Dim)
                    }
                }
            }
            Expr::Index(index) => {
                let at = self.dim(&index.index)?.as_const()?;
                self.element(&index.expr, usize::try_from(at).ok()?)
            }
            Expr::Field(field) => match &field.member {
                syn::Member::Unnamed(member) => self.element(&field.base, member.index as usize),
                syn::Member::Named(_) => None,
            },
            Expr::Path(_) => {
                let name = Name::of(super::names::as_ident(strip(expr))?);
                self.var(&name).map(|var| var.value.clone())
            }
            Expr::Reference(reference) if reference.mutability.is_none() => self.shape_query(&reference.expr),
            _ => None,
        }
    }

    /// An element of a tuple or array that capture sees through.
    pub fn element(&mut self, base: &Expr, at: usize) -> Option<Value> {
        match self.shape_query(base)? {
            Value::Array(parts) | Value::Tuple(parts) => parts.get(at).cloned(),
            _ => None,
        }
    }

    /// The extents of a tensor that a variable, or an element of one, holds.
    fn known_dims(&mut self, receiver: &Expr) -> Option<Vec<Dim>> {
        match self.shape_query(receiver)? {
            Value::Tensor { key, .. } => Some(self.tensor(key).ty.dims.clone()),
            _ => None,
        }
    }
}

/// `usize`, the type of extents.
pub fn is_index_type(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident("usize"))
}

/// A type that every extent fits in.
fn is_wide_integer(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if ["usize", "isize", "i64", "u64"].iter().any(|name| path.path.is_ident(name)))
}
