//! Patterns: what the names of a `let`, a parameter or a match arm stand for.

use super::Walker;
use super::cont::HostCode;
use super::names::{Name, Names, bound};
use super::program::Step;
use super::syntax::single_binding;
use super::types::HostTy;
use super::value::{Home, Place, Value, Var};
use proc_macro2::Ident;
use quote::quote;
use syn::{Local, Pat};

impl Walker<'_> {
    /// Binds a pattern to a value. `live` are the names read later.
    pub fn bind(&mut self, pat: &Pat, value: Value, live: &Names) {
        match (pat, value) {
            (Pat::Type(typed), value) => self.bind(&typed.pat, value, live),
            (Pat::Paren(paren), value) => self.bind(&paren.pat, value, live),
            (Pat::Wild(_), _) => {}
            (Pat::Ident(pat), value) if pat.subpat.is_none() && pat.by_ref.is_none() => {
                self.name_node(&value, &pat.ident);
                let mutable = pat.mutability.is_some();
                match value {
                    Value::Dim(_) | Value::Float(_) | Value::Bool(_) if mutable => {
                        self.bind_tokens(&Pat::Ident(pat.clone()), value, live)
                    }
                    Value::Captured(local, ty) => {
                        let var = Var::unbound(&pat.ident, Value::Host(ty), mutable);
                        self.declare(Var { source: Some(quote!(#local)), ..var });
                    }
                    value => self.declare(Var::unbound(&pat.ident, value, mutable)),
                }
            }
            (Pat::Reference(reference), Value::Tensor { key, .. }) => {
                self.bind(&reference.pat, Value::Tensor { key, by_ref: false }, live)
            }
            (Pat::Tuple(tuple), Value::Tuple(parts)) if tuple.elems.len() == parts.len() && no_rest(&tuple.elems) => {
                tuple.elems.iter().zip(parts).for_each(|(pat, part)| self.bind(pat, part, live));
            }
            (Pat::Slice(slice), Value::Array(parts)) if slice.elems.len() == parts.len() && no_rest(&slice.elems) => {
                slice.elems.iter().zip(parts).for_each(|(pat, part)| self.bind(pat, part, live));
            }
            (pat, Value::Poison) => {
                for ident in bound(pat) {
                    self.declare(Var::unbound(&ident, Value::Poison, false));
                }
            }
            (pat, value) => self.bind_tokens(pat, value, live),
        }
    }

    /// Binds a pattern that capture does not see through: its value becomes one of the emitted code.
    fn bind_tokens(&mut self, pat: &Pat, value: Value, live: &Names) {
        let ty = self.host_ty_of(&value);
        let wanted = value.tensors();
        let pending = wanted.iter().any(|&key| matches!(self.tensor(key).home, Home::Pending(_)));
        if pending {
            self.flush(live, &wanted);
        }
        let tokens = self.value_tokens(&value);
        self.shadow(pat);
        self.flow.steps.push(Step::Host(quote!(let #pat = #tokens;)));
        self.bind_typed(pat, &ty, !wanted.is_empty());
    }

    /// A `let` with host code on its right side.
    pub fn bind_host(&mut self, local: &Local, code: HostCode) {
        let HostCode { tokens, ty, needs_annotation, changes } = code;
        self.shadow(&local.pat);
        let (attrs, pat) = (&local.attrs, &local.pat);
        self.flow.steps.push(Step::Host(quote!(#(#attrs)* let #pat = #tokens;)));
        self.forget_all(&changes);
        self.bind_typed(pat, &ty, needs_annotation);
    }

    /// A `let` of numbers that are also variables of the emitted code.
    pub fn bind_numbers(&mut self, pat: &Pat, value: Value) {
        match (pat, value) {
            (Pat::Type(typed), value) => match single_binding(pat) {
                Some(binding) if binding.mutability.is_some() => {
                    self.bind_typed(&typed.pat, &self.generics.host_ty(&typed.ty), false)
                }
                _ => self.bind_numbers(&typed.pat, value),
            },
            (Pat::Ident(pat), value) if pat.mutability.is_none() && pat.subpat.is_none() && pat.by_ref.is_none() => {
                self.declare(Var::bound(&pat.ident, value, false));
            }
            (Pat::Tuple(tuple), Value::Tuple(parts)) if tuple.elems.len() == parts.len() && no_rest(&tuple.elems) => {
                tuple.elems.iter().zip(parts).for_each(|(pat, part)| self.bind_numbers(pat, part));
            }
            (Pat::Slice(slice), Value::Array(parts)) if slice.elems.len() == parts.len() && no_rest(&slice.elems) => {
                slice.elems.iter().zip(parts).for_each(|(pat, part)| self.bind_numbers(pat, part));
            }
            (pat, _) => self.bind_typed(pat, &HostTy::Unknown, false),
        }
    }

    /// Saves what a new variable of the emitted code is about to hide.
    pub fn shadow(&mut self, pat: &Pat) {
        for ident in bound(pat) {
            self.protect(&Name::of(&ident));
        }
    }

    /// The variables of a pattern in the emitted code, as far as the type of what is matched tells what they hold.
    pub fn bind_typed(&mut self, pat: &Pat, ty: &HostTy, needs_annotation: bool) {
        match (pat, ty) {
            (Pat::Type(typed), _) => {
                let written = self.generics.host_ty(&typed.ty);
                let known = written != HostTy::Unknown;
                self.bind_typed(&typed.pat, &written, needs_annotation && !known);
            }
            (Pat::Paren(paren), _) => self.bind_typed(&paren.pat, ty, needs_annotation),
            (Pat::Ident(pat), _) if pat.subpat.is_none() => {
                let ty = match &pat.by_ref {
                    Some(_) => HostTy::Ref(Box::new(ty.clone()), pat.mutability.is_some()),
                    None => ty.clone(),
                };
                self.bind_ident(&pat.ident, &ty, pat.mutability.is_some() && pat.by_ref.is_none(), needs_annotation);
            }
            (Pat::Reference(reference), HostTy::Ref(inner, _)) => {
                self.bind_typed(&reference.pat, inner, needs_annotation)
            }
            (Pat::Tuple(tuple), ty) if no_rest(&tuple.elems) && matches!(ty.behind_refs(), HostTy::Tuple(_)) => {
                let HostTy::Tuple(parts) = ty.behind_refs() else { return };
                for (pat, part) in tuple.elems.iter().zip(parts) {
                    self.bind_typed(pat, &through(ty, part), needs_annotation);
                }
            }
            (Pat::Slice(slice), ty) if no_rest(&slice.elems) && matches!(ty.behind_refs(), HostTy::List(_)) => {
                let HostTy::List(elem) = ty.behind_refs() else { return };
                for pat in &slice.elems {
                    self.bind_typed(pat, &through(ty, elem), needs_annotation);
                }
            }
            (Pat::TupleStruct(variant), ty)
                if variant.elems.len() == 1 && matches!(ty.behind_refs(), HostTy::Option(_)) =>
            {
                let HostTy::Option(inner) = ty.behind_refs() else { return };
                self.bind_typed(&variant.elems[0], &through(ty, inner), needs_annotation);
            }
            (pat, ty) => {
                let part = match ty {
                    HostTy::Ref(_, exclusive) => HostTy::Ref(Box::new(HostTy::Unknown), *exclusive),
                    ty if ty.may_be_tensor() => HostTy::TensorLike,
                    _ => HostTy::Unknown,
                };
                for ident in bound(pat) {
                    self.bind_ident(&ident, &part, true, needs_annotation);
                }
            }
        }
    }

    fn bind_ident(&mut self, ident: &Ident, ty: &HostTy, mutable: bool, needs_annotation: bool) {
        let (value, exclusive) = match ty.behind_refs() {
            HostTy::Tensor(tensor) => {
                let by_ref = matches!(ty, HostTy::Ref(..));
                let place = Place { tokens: quote!(#ident), by_ref, name: Some(Name::of(ident)) };
                let key = self.add_host(*tensor, place);
                (Value::Tensor { key, by_ref }, matches!(ty, HostTy::Ref(_, true)))
            }
            _ => (Value::Host(ty.clone()), false),
        };
        let known = *ty != HostTy::Unknown;
        let var = Var::bound(ident, value, mutable);
        self.declare(Var { exclusive, needs_annotation: needs_annotation && !known, ..var });
    }

    /// Names the node that computes a value after the user's variable.
    pub fn name_node(&mut self, value: &Value, ident: &Ident) {
        let Value::Tensor { key, .. } = value else { return };
        if let Home::Pending(val) = self.tensor(*key).home {
            let node = &mut self.flow.pending.graph.nodes[val.node as usize];
            if node.op.name != "input" {
                node.name.get_or_insert_with(|| ident.to_string());
            }
        }
    }
}

/// Matching through a reference binds references.
fn through(outer: &HostTy, inner: &HostTy) -> HostTy {
    match (outer, inner) {
        (HostTy::Ref(..), HostTy::Ref(..)) => inner.clone(),
        (HostTy::Ref(_, exclusive), _) => HostTy::Ref(Box::new(inner.clone()), *exclusive),
        _ => inner.clone(),
    }
}

fn no_rest<'a>(elems: impl IntoIterator<Item = &'a Pat>) -> bool {
    !elems.into_iter().any(|elem| matches!(elem, Pat::Rest(_)))
}
