//! Parameters: their types, and the extents that `#[dims]` names.

use super::eval::text;
use super::names::Name;
use super::program::{DimAt, Entry, Size, Step};
use super::shape::SymInfo;
use super::syntax::strip;
use super::types::{HostTy, TensorTy};
use super::value::{Home, Place, TensorInfo, Value, Var};
use super::{Function, Walker};
use crate::infer::{Extent, NamedDims};
use crate::types::{Dim, Sym, Ty};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, BinOp, Expr, ExprLit, FnArg, Lit, Pat, PatType, Token};

/// The name a parameter has in the emitted signature: its own, or one that stands for its pattern.
pub fn parameter_name(index: usize, typed: &PatType) -> Ident {
    match typed.pat.as_ref() {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => pat.ident.clone(),
        _ => super::flow::generated("arg", index),
    }
}

impl Walker<'_> {
    /// Brings the parameters into scope; what `#[dims]` says about them becomes entry code.
    pub fn parameters(&mut self, function: &Function) -> Vec<Entry> {
        let mut named = NamedDims::default();
        let mut entry = Vec::new();
        let mut patterns = Vec::new();
        for (index, input) in function.sig.inputs.iter().enumerate() {
            match input {
                FnArg::Receiver(receiver) => {
                    self.refuse_dims(&receiver.attrs, "self");
                    let ident = Ident::new("self", receiver.self_token.span);
                    let exclusive = matches!(receiver.kind, syn::ReceiverKind::Reference(_, _, Some(_)));
                    let mutable = receiver.mutability.is_some() || exclusive;
                    self.declare(Var::bound(&ident, Value::Host(HostTy::Unknown), mutable));
                }
                FnArg::Typed(typed) => {
                    let ident = parameter_name(index, typed);
                    self.parameter(typed, &ident, &mut named, &mut entry);
                    if !matches!(typed.pat.as_ref(), Pat::Ident(pat) if pat.mutability.is_none() && pat.ident == ident)
                    {
                        patterns.push((typed, ident));
                    }
                }
            }
        }
        self.solve(named, &mut entry);
        for (typed, ident) in patterns {
            self.pattern(typed, &ident);
        }
        entry
    }

    /// `mut x: T` and `(a, b): T` are unpacked by the body's first statements.
    fn pattern(&mut self, typed: &PatType, ident: &Ident) {
        let pat = &typed.pat;
        self.flow.steps.push(Step::Host(quote!(let #pat = #ident;)));
        match pat.as_ref() {
            Pat::Ident(pat) => {
                if let Some(index) = self.var_index(&Name::of(&pat.ident)) {
                    self.flow.vars[index].mutable = pat.mutability.is_some();
                }
            }
            pat => {
                let ty = self.generics.host_ty(&typed.ty);
                self.bind_typed(pat, &ty, false);
            }
        }
    }

    fn parameter(&mut self, typed: &PatType, ident: &Ident, named: &mut NamedDims, entry: &mut Vec<Entry>) {
        let ty = self.generics.host_ty(&typed.ty);
        let mut attrs = typed.attrs.iter().filter(|attr| attr.path().is_ident("dims"));
        let attr = attrs.next();
        if let Some(again) = attrs.next() {
            let message = format!("`#[dims]` is given twice for `{}`", text(&typed.pat));
            self.diag.error(again, message, Some("leave one of them out"));
        }
        let HostTy::Tensor(tensor) = ty.behind_refs() else {
            match (attr, optional_tensor(&ty)) {
                (Some(attr), Some(tensor)) => self.optional_dims(attr, tensor, ident, named),
                _ => self.refuse_dims(&typed.attrs, &text(&typed.ty)),
            }
            self.declare(Var::bound(ident, Value::Host(ty), false));
            return;
        };
        let written = attr.and_then(|attr| self.written_dims(attr, *tensor, ident));
        let mut dims = Vec::new();
        for axis in 0..tensor.rank {
            let at = DimAt { param: ident.clone(), axis, text: String::new(), is_optional: false };
            dims.push(match written.as_ref().map(|written| &written[axis]) {
                Some(expr) => self.named_dim(expr, at, ident, attr, named),
                None => {
                    let sym = self.new_sym(format!("{ident}.{axis}"));
                    let is_open = self.generics.leaves_open(tensor.rank);
                    entry.push(Entry::Size(Size {
                        local: self.sym_local(sym),
                        sym,
                        of: quote!(#ident),
                        axis,
                        is_open,
                    }));
                    Dim::Sym(sym)
                }
            });
        }
        let (by_ref, exclusive) = match &ty {
            HostTy::Ref(_, exclusive) => (true, *exclusive),
            _ => (false, false),
        };
        let home = Home::Host(Place { tokens: quote!(#ident), by_ref, name: Some(Name::of(ident)) });
        let key = self.add_tensor(TensorInfo { ty: Ty::new(tensor.dtype, dims), home });
        self.params.push((key, ident.clone()));
        let var = Var::bound(ident, Value::Tensor { key, by_ref }, false);
        self.declare(Var { exclusive, ..var });
    }

    /// The extents of a tensor that may not be there: they are checked where it is, and no name gets its value from them.
    fn optional_dims(&mut self, attr: &Attribute, tensor: TensorTy, ident: &Ident, named: &mut NamedDims) {
        for (axis, expr) in self.written_dims(attr, tensor, ident).into_iter().flatten().enumerate() {
            let at = DimAt { param: ident.clone(), axis, text: String::new(), is_optional: true };
            self.named_dim(&expr, at, ident, Some(attr), named);
        }
    }

    /// Reports `#[dims]` where there are no extents to name.
    pub fn refuse_dims(&mut self, attrs: &[Attribute], what: &str) {
        if let Some(attr) = attrs.iter().find(|attr| attr.path().is_ident("dims")) {
            let help = "it names the extents of a `Tensor` or `&Tensor` whose rank is written out";
            self.diag.error(attr, format!("`#[dims]` does not go with `{what}`"), Some(help));
        }
    }

    fn written_dims(&mut self, attr: &Attribute, tensor: TensorTy, ident: &Ident) -> Option<Vec<Expr>> {
        match attr.parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            Ok(dims) if dims.len() == tensor.rank => Some(dims.into_iter().collect()),
            Ok(dims) => {
                let extents = if dims.len() == 1 { "extent" } else { "extents" };
                let message =
                    format!("`#[dims]` names {} {extents}, but `{ident}` has rank {}", dims.len(), tensor.rank);
                self.diag.error(attr, message, Some("name one extent for each dimension"));
                None
            }
            Err(_) => {
                let names: Vec<String> = (b'A'..).take(tensor.rank).map(|name| char::from(name).to_string()).collect();
                let help = format!("write `#[dims({})]`, with a name, number or formula for each", names.join(", "));
                self.diag.error(attr, format!("`{}` is no list of extents", text(attr)), Some(&help));
                None
            }
        }
    }

    /// One extent of a `#[dims]` attribute.
    fn named_dim(
        &mut self,
        expr: &Expr,
        at: DimAt,
        ident: &Ident,
        attr: Option<&Attribute>,
        named: &mut NamedDims,
    ) -> Dim {
        let at = DimAt { text: text(expr), ..at };
        let origin = format!("{ident}: {}", attr.map(text).unwrap_or_default());
        let dim = self.dims_formula(expr, &origin).unwrap_or_else(|| {
            let help = "write names, numbers, and `+`, `-`, `*` of them";
            self.diag.error(expr, format!("`{}` is no extent", text(expr)), Some(help));
            Dim::Const(1)
        });
        named.extents.push(Extent { dim: dim.clone(), at, tokens: expr.to_token_stream() });
        dim
    }

    fn dims_formula(&mut self, expr: &Expr, origin: &str) -> Option<Dim> {
        match strip(expr) {
            Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => int.base10_parse().ok().map(Dim::Const),
            Expr::Path(_) => {
                let ident = super::names::as_ident(expr)?;
                if self.generics.consts.contains(ident) {
                    return self.dim(expr);
                }
                let name = ident.to_string();
                let known = self.syms.iter().position(|sym| sym.name == name && sym.origin.is_some());
                let sym = known.map(|known| Sym(known as u32)).unwrap_or_else(|| self.new_sym(name));
                let info: &mut SymInfo = &mut self.syms[sym.0 as usize];
                info.origin.get_or_insert_with(|| origin.to_owned());
                Some(Dim::Sym(sym))
            }
            Expr::Binary(binary) => {
                let build: fn(Dim, Dim) -> Dim = match binary.op {
                    BinOp::Add(_) => Dim::add,
                    BinOp::Sub(_) => Dim::sub,
                    BinOp::Mul(_) => Dim::mul,
                    _ => return None,
                };
                let (left, right) =
                    (self.dims_formula(&binary.left, origin)?, self.dims_formula(&binary.right, origin)?);
                Some(build(left, right))
            }
            _ => None,
        }
    }

    /// Turns named extents into entry code: each name is read once, every other mention is checked.
    fn solve(&mut self, named: NamedDims, entry: &mut Vec<Entry>) {
        let is_param = |sym: Sym| self.syms[sym.0 as usize].origin.is_none();
        let solution = named.solve(&is_param);
        for definition in solution.definitions {
            let local = self.sym_local(definition.sym);
            entry.push(match (definition.factor, definition.offset) {
                (1, 0) => {
                    let param = &definition.extent.param;
                    let axis = definition.extent.axis;
                    Entry::Size(Size { local, sym: definition.sym, of: quote!(#param), axis, is_open: false })
                }
                (factor, offset) => {
                    Entry::Solved { local, sym: definition.sym, factor, offset, extent: definition.extent }
                }
            });
        }
        for Extent { dim, at, .. } in solution.checks {
            let expected: TokenStream = self.dim_i64(&dim);
            entry.push(Entry::Check { extent: at, expected });
        }
        for Extent { at, tokens, .. } in solution.unsolved {
            let message = format!("the dims in `{}` cannot be told from the extents", at.text);
            self.diag.error(tokens, message, Some("use each name alone for one extent at least"));
        }
    }
}

/// The tensor in an `Option`.
fn optional_tensor(ty: &HostTy) -> Option<TensorTy> {
    match ty.behind_refs() {
        HostTy::Option(inner) => match inner.behind_refs() {
            HostTy::Tensor(tensor) => Some(*tensor),
            _ => None,
        },
        _ => None,
    }
}
