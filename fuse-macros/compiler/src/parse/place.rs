//! Variables of the host and parts of them, as far as the signature tells their types.

use super::Walker;
use super::eval::Eval;
use super::names::{Name, as_ident};
use super::syntax::strip;
use super::types::HostTy;
use super::value::Value;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Expr;

impl Walker<'_> {
    /// A field or element: of a value that capture sees through, of a variable whose type is known, or of the host.
    pub fn projection(&mut self, expr: &Expr) -> Eval<Value> {
        if let Some(value) = self.shape_query(expr) {
            return Ok(value);
        }
        if let Some(value) = self.part_of_gradients(expr) {
            return value;
        }
        match self.typed_place(expr) {
            Some((tokens, ty)) if ty.has_tensor() => Ok(self.read_place(tokens, &ty).unwrap_or(Value::Host(ty))),
            Some((_, ty)) => Ok(Value::Host(ty)),
            None => self.host(expr),
        }
    }

    /// The type of a host variable, or of a part of one, if the signature tells it.
    pub fn place_type(&mut self, expr: &Expr) -> Option<HostTy> {
        match strip(expr) {
            Expr::Reference(reference) if reference.mutability.is_none() => {
                self.place_type(&reference.expr).map(|ty| HostTy::Ref(Box::new(ty), false))
            }
            Expr::MethodCall(call) if call.args.is_empty() && call.method == "as_ref" => {
                match self.place_type(&call.receiver)?.behind_refs() {
                    HostTy::Option(inner) => Some(HostTy::Option(Box::new(HostTy::Ref(inner.clone(), false)))),
                    _ => None,
                }
            }
            other => {
                let saved = self.save();
                let ty = self.typed_place(other).map(|(_, ty)| ty);
                self.restore(saved);
                let like = self.comes_from_tensors(other).then_some(HostTy::TensorLike);
                ty.filter(|ty| *ty != HostTy::Unknown).or(like)
            }
        }
    }

    /// A part of a host variable whose type the signature tells: `pair.0`, `weights[i]`.
    fn typed_place(&mut self, expr: &Expr) -> Option<(TokenStream, HostTy)> {
        match strip(expr) {
            Expr::Path(_) => {
                let ident = as_ident(expr)?;
                match &self.var(&Name::of(ident))?.value {
                    Value::Host(ty) => Some((quote!(#ident), ty.clone())),
                    _ => None,
                }
            }
            Expr::Field(field) => {
                let (base, ty) = self.typed_place(&field.base)?;
                let syn::Member::Unnamed(member) = &field.member else { return None };
                match ty.behind_refs() {
                    HostTy::Tuple(parts) => Some((quote!(#base.#member), parts.get(member.index as usize)?.clone())),
                    _ => None,
                }
            }
            Expr::Index(index) => {
                let (base, ty) = self.typed_place(&index.expr)?;
                let HostTy::List(elem) = ty.behind_refs() else { return None };
                if matches!(strip(&index.index), Expr::Range(_)) || self.mentions_tensor(&index.index) {
                    return None;
                }
                let at = self.host_tokens(&index.index);
                Some((quote!(#base[#at]), elem.as_ref().clone()))
            }
            _ => None,
        }
    }

    /// A tensor that a part of a host variable holds: its handle is cloned now.
    fn read_place(&mut self, tokens: TokenStream, ty: &HostTy) -> Option<Value> {
        let HostTy::Tensor(tensor) = ty.behind_refs() else { return None };
        let local = self.fresh("p");
        self.flow.steps.push(super::program::Step::Capture { local: local.clone(), value: quote!(#tokens.clone()) });
        let place = super::value::Place { tokens: quote!(#local), by_ref: matches!(ty, HostTy::Ref(..)), name: None };
        let key = self.add_host(*tensor, place);
        Some(Value::Tensor { key, by_ref: matches!(ty, HostTy::Ref(..)) })
    }
}
