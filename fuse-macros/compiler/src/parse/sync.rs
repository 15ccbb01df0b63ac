//! Variables of the emitted code hold what the user's hold, when host code reads them.

use super::Walker;
use super::flow::generated;
use super::names::{Name, Names};
use super::program::Step;
use super::types::HostTy;
use super::value::{Home, Place, TensorKey, Value};
use proc_macro2::TokenStream;
use quote::quote;

impl Walker<'_> {
    /// The place of a host tensor.
    pub fn place(&self, key: TensorKey) -> &Place {
        match &self.tensor(key).home {
            Home::Host(place) => place,
            Home::Pending(_) => unreachable!("a pending tensor is launched before host code reads it"),
        }
    }

    /// Makes the emitted code's variables of these names hold what the user's hold; pending tensors are launched.
    pub fn sync(&mut self, names: &Names, live: &Names) {
        let stale: Vec<usize> = (0..self.flow.vars.len())
            .filter(|&index| {
                let var = &self.flow.vars[index];
                names.contains(&var.name)
                    && (!var.bound || var.dirty)
                    && !matches!(var.value, Value::Unset | Value::Poison)
                    && self.var_index(&var.name) == Some(index)
            })
            .collect();
        let pending: Vec<TensorKey> = stale
            .iter()
            .flat_map(|&index| self.flow.vars[index].value.tensors())
            .filter(|&key| matches!(self.tensor(key).home, Home::Pending(_)))
            .collect();
        if !pending.is_empty() {
            self.flush(live, &pending);
        }
        for index in stale {
            self.sync_var(index);
        }
    }

    fn sync_var(&mut self, index: usize) {
        let var = self.flow.vars[index].clone();
        if var.bound && !var.dirty {
            return;
        }
        let value = match &var.source {
            Some(source) if !var.bound => source.clone(),
            // The parts of a group stay values of their own.
            _ if matches!(var.value, Value::Tensor { .. }) => self.moved_tokens(&var.value),
            _ => self.value_tokens(&var.value),
        };
        self.protect(&var.name);
        let ident = &var.ident;
        let step = match (var.bound, var.exclusive) {
            (true, true) if matches!(var.value, Value::Tensor { .. }) => Step::Write { target: ident.clone(), value },
            (true, true) => Step::Host(quote!(*#ident = #value;)),
            (true, false) => Step::Host(quote!(#ident = #value;)),
            (false, _) => {
                let mutability = var.mutable.then(|| quote!(mut));
                Step::Host(quote!(let #mutability #ident = #value;))
            }
        };
        self.flow.steps.push(step);
        if let Value::Tensor { key, by_ref: false } = var.value {
            let place = Place { tokens: quote!(#ident), by_ref: var.exclusive, name: Some(var.name.clone()) };
            let value = self.settle_in(key, place);
            self.flow.vars[index].value = value;
        } else if var.value.has_captured() {
            // A host value without a type cannot be cloned: from here on it is in the variable.
            let ty = self.host_ty_of(&var.value);
            let hides = var.value.has_tensor() && !ty.has_tensor();
            self.flow.vars[index].value = Value::Host(if hides { HostTy::AnyRank } else { ty });
        }
        let var = &mut self.flow.vars[index];
        (var.bound, var.dirty) = (true, false);
    }

    /// A tensor that a variable now holds by value lives there; a copy of another variable's is a tensor of its own.
    fn settle_in(&mut self, key: TensorKey, place: Place) -> Value {
        let key = match self.place(key).name {
            Some(_) => self.add_tensor(self.tensor(key).clone()),
            None => key,
        };
        self.flow.tensors[key.0].home = Home::Host(place);
        Value::Tensor { key, by_ref: false }
    }

    /// An expression for a value all of whose tensors are in the emitted code.
    pub fn value_tokens(&mut self, value: &Value) -> TokenStream {
        self.tokens(value, false)
    }

    /// The same, taking a generated variable by value where the value is its tensor: nothing else reads it later.
    pub fn moved_tokens(&mut self, value: &Value) -> TokenStream {
        let tensors = value.tensors();
        let once = tensors.iter().all(|key| tensors.iter().filter(|other| *other == key).count() == 1);
        self.tokens(value, once && !tensors.is_empty())
    }

    fn tokens(&mut self, value: &Value, take: bool) -> TokenStream {
        match value {
            Value::Tensor { key, by_ref } => {
                let place = self.place(*key);
                let tokens = &place.tokens;
                match (by_ref, place.by_ref, &place.name) {
                    (true, true, _) => quote!(#tokens),
                    (true, false, _) => quote!(&#tokens),
                    (false, false, None) if take => quote!(#tokens),
                    (false, _, _) => quote!(#tokens.clone()),
                }
            }
            Value::Dim(dim) => self.dim_tokens(dim),
            Value::Float(text) => text.parse().expect("a float literal is a token"),
            Value::Bool(flag) => quote!(#flag),
            Value::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.tokens(part, take)).collect::<Vec<_>>();
                quote!((#(#parts,)*))
            }
            Value::Array(parts) => {
                let parts = parts.iter().map(|part| self.tokens(part, take)).collect::<Vec<_>>();
                quote!([#(#parts),*])
            }
            Value::Made(maker, parts) => {
                let parts = parts.iter().map(|part| self.tokens(part, take)).collect();
                maker.tokens(parts)
            }
            Value::Captured(ident, _) => quote!(#ident),
            // After a mistake nothing of this is emitted.
            Value::Poison => quote!(()),
            Value::Host(_) | Value::Unset => {
                unreachable!("host values stand in the user's own variables")
            }
        }
    }

    /// Saves tensors that other values still read from the user's variable `name` before that variable changes.
    pub fn protect(&mut self, name: &Name) {
        for index in 0..self.flow.tensors.len() {
            let key = TensorKey(index);
            let Home::Host(place) = &self.tensor(key).home else { continue };
            if place.name.as_ref() != Some(name) || !self.is_read_elsewhere(key, name) {
                continue;
            }
            let (local, value) = (generated("t", index), place.tokens.clone());
            self.flow.steps.push(Step::Capture { local: local.clone(), value: quote!(#value.clone()) });
            self.flow.tensors[index].home = Home::Host(Place { tokens: quote!(#local), by_ref: false, name: None });
        }
    }

    fn is_read_elsewhere(&self, key: TensorKey, name: &Name) -> bool {
        let by_graph = self.flow.pending.inputs.contains(&key) || self.flow.temps.contains(&key);
        by_graph || self.flow.vars.iter().any(|var| var.name != *name && var.value.tensors().contains(&key))
    }

    /// After host code that may have changed a variable: what is known about it is its type.
    pub fn forget(&mut self, index: usize) {
        let var = self.flow.vars[index].clone();
        let place = |by_ref| {
            let ident = &var.ident;
            Place { tokens: quote!(#ident), by_ref, name: Some(var.name.clone()) }
        };
        self.flow.vars[index].value = match &var.value {
            Value::Tensor { key, by_ref } => {
                let ty = self.tensor(*key).tensor_ty();
                let key = self.add_host(ty, place(*by_ref || var.exclusive));
                Value::Tensor { key, by_ref: *by_ref }
            }
            Value::Poison => Value::Poison,
            other => Value::Host(self.host_ty_of(other)),
        };
    }

    /// The type of a value.
    pub fn host_ty_of(&self, value: &Value) -> HostTy {
        match value {
            Value::Tensor { key, by_ref } => {
                let ty = HostTy::Tensor(self.tensor(*key).tensor_ty());
                if *by_ref { HostTy::Ref(Box::new(ty), false) } else { ty }
            }
            Value::Tuple(parts) => HostTy::Tuple(parts.iter().map(|part| self.host_ty_of(part)).collect()),
            Value::Array(parts) => {
                HostTy::List(Box::new(parts.first().map_or(HostTy::Unknown, |part| self.host_ty_of(part))))
            }
            Value::Captured(_, ty) | Value::Host(ty) => ty.clone(),
            _ => HostTy::Unknown,
        }
    }
}
