//! The state of one path through the function: variables, tensors, the graph being built, the code emitted so far.

use super::Walker;
use super::names::{Name, Names};
use super::program::{Launch, Out, Step};
use super::types::{HostTy, TensorTy};
use super::value::{Home, Place, TensorInfo, TensorKey, Value, Var};
use crate::graph::{Graph, SymDef, SymSource};
use crate::op::{Attr, Op, Val};
use crate::types::{Dim, Sym, Ty};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::BTreeMap;

/// One path through the function.
#[derive(Clone, Default)]
pub struct Flow {
    /// Variables in scope, innermost last.
    pub vars: Vec<Var>,
    /// Every tensor this path has met.
    pub tensors: Vec<TensorInfo>,
    /// The graph being built.
    pub pending: Pending,
    /// The code of the current block.
    pub steps: Vec<Step>,
    /// Into how many paths this one may still split.
    pub budget: usize,
    /// Host flags whose value is known on this path, by their text.
    pub facts: BTreeMap<String, bool>,
    /// Host integers that are read already and cannot change, by their text.
    pub host_ints: BTreeMap<String, Sym>,
    /// Tensors that an expression in the middle of its evaluation still needs.
    pub temps: Vec<TensorKey>,
}

/// The graph being built.
#[derive(Clone, Default)]
pub struct Pending {
    /// The graph. Its symbols are those of the function until it is launched.
    pub graph: Graph,
    /// The tensors it reads, in the order of its inputs.
    pub inputs: Vec<TensorKey>,
    /// The variables that hold its scalars.
    pub scalars: Vec<Ident>,
    /// Whether an op in it draws random numbers, or may fail on the values it meets.
    pub effects: bool,
    /// The last op.
    pub at: Option<Span>,
}

/// A generated name. Mixed-site spans keep it apart from everything the user writes.
pub fn generated(prefix: &str, number: usize) -> Ident {
    format_ident!("__{prefix}{number}", span = Span::mixed_site())
}

impl Flow {
    /// Forgets what is known of a name that from here on means another variable.
    fn unlearn(&mut self, name: &Name) {
        let other = |text: &String| text.split(['.', ' ']).next() != Some(name.text());
        self.facts.retain(|text, _| other(text));
        self.host_ints.retain(|text, _| other(text));
    }
}

impl Pending {
    /// Whether there is nothing to launch.
    pub fn is_empty(&self) -> bool {
        self.graph.nodes.len() == self.graph.inputs.len() + self.graph.scalars.len()
    }
}

/// A state to come back to.
pub struct Saved {
    flow: Flow,
    segments: usize,
    breaks: usize,
}

impl Walker<'_> {
    /// The state of now.
    pub fn save(&self) -> Saved {
        Saved { flow: self.flow.clone(), segments: self.segments.len(), breaks: self.diag.break_count() }
    }

    /// Goes back to a state: graphs launched and breaks found since then have not happened.
    pub fn restore(&mut self, saved: Saved) {
        self.flow = saved.flow;
        self.segments.truncate(saved.segments);
        self.diag.forget_breaks(saved.breaks);
    }

    /// The visible variable of a name.
    pub fn var(&self, name: &Name) -> Option<&Var> {
        self.var_index(name).map(|index| &self.flow.vars[index])
    }

    /// Where the visible variable of a name is.
    pub fn var_index(&self, name: &Name) -> Option<usize> {
        self.flow.vars.iter().rposition(|var| var.name == *name)
    }

    /// Brings a variable into scope.
    pub fn declare(&mut self, var: Var) {
        self.flow.unlearn(&var.name);
        self.flow.vars.push(var);
    }

    /// Takes the variables after the first `count` out of scope.
    pub fn leave_scope(&mut self, count: usize) {
        for var in self.flow.vars.split_off(count) {
            self.flow.unlearn(&var.name);
        }
    }

    /// What is known about a tensor.
    pub fn tensor(&self, key: TensorKey) -> &TensorInfo {
        &self.flow.tensors[key.0]
    }

    /// A tensor in the graph being built.
    pub fn add_pending(&mut self, val: Val) -> TensorKey {
        let ty = self.flow.pending.graph.nodes[val.node as usize].outs[val.out as usize].clone();
        self.add_tensor(TensorInfo { ty, home: Home::Pending(val) })
    }

    /// A tensor of known element type and rank in a variable of the emitted code. Its extents get symbols of their own.
    pub fn add_host(&mut self, ty: TensorTy, place: Place) -> TensorKey {
        let label = place.tokens.to_string().replace(' ', "");
        let dims = (0..ty.rank)
            .map(|axis| {
                let sym = self.new_sym(format!("{label}.{axis}"));
                let (local, of) = (self.sym_local(sym), place.tokens.clone());
                self.flow.steps.push(Step::Size { local, sym, of, axis });
                Dim::Sym(sym)
            })
            .collect::<Vec<_>>();
        self.add_tensor(TensorInfo { ty: Ty::new(ty.dtype, dims), home: Home::Host(place) })
    }

    /// A tensor.
    pub fn add_tensor(&mut self, info: TensorInfo) -> TensorKey {
        self.flow.tensors.push(info);
        TensorKey(self.flow.tensors.len() - 1)
    }

    /// The tensor as a value of the graph being built; a host tensor becomes an input.
    pub fn val(&mut self, key: TensorKey) -> Val {
        if let Home::Pending(val) = self.tensor(key).home {
            return val;
        }
        let pending = &self.flow.pending;
        if let Some(input) = pending.inputs.iter().position(|&known| known == key) {
            return pending.graph.inputs[input];
        }
        let ty = self.tensor(key).ty.clone();
        let name = match &self.tensor(key).home {
            Home::Host(place) => place.name.as_ref().map(|name| name.text().to_owned()),
            Home::Pending(_) => None,
        };
        let pending = &mut self.flow.pending;
        let attrs = vec![Attr::Int(pending.inputs.len() as i64)];
        let val = pending.graph.push_typed(Op::named("input"), vec![], attrs, vec![ty]);
        pending.graph.nodes[val.node as usize].name = name;
        pending.graph.inputs.push(val);
        pending.inputs.push(key);
        val
    }

    /// Ends the graph being built: what is live of it becomes variables of the emitted code.
    ///
    /// `live` are the names read later; `wanted` are tensors needed beside them.
    pub fn flush(&mut self, live: &Names, wanted: &[TensorKey]) {
        let outs = self.live_tensors(live, wanted);
        if outs.is_empty() && !self.flow.pending.effects {
            self.flow.pending = Pending::default();
            return;
        }
        let pending = std::mem::take(&mut self.flow.pending);
        let mut graph = pending.graph;
        graph.name = match self.segments.len() {
            0 => self.name.clone(),
            n => format!("{}_{n}", self.name),
        };
        graph.outs = outs.iter().map(|&key| self.pending_val(key)).collect();
        let inputs: Vec<TokenStream> = pending.inputs.iter().map(|&key| self.place(key).tokens.clone()).collect();
        let sizes = self.close_symbols(&mut graph, &pending.inputs);
        let outs: Vec<Out> = outs.into_iter().map(|key| self.materialise(key, live)).collect();
        let at = pending.at.unwrap_or_else(Span::call_site);
        let segment = self.segments.len();
        self.segments.push(graph);
        let launch = Launch { segment, inputs, scalars: pending.scalars, sizes, outs, at };
        self.flow.steps.push(Step::Launch(launch));
    }

    /// Tensors of the pending graph that somebody still needs, each once, in the order of the variables.
    fn live_tensors(&self, live: &Names, wanted: &[TensorKey]) -> Vec<TensorKey> {
        let vars = self.flow.vars.iter().enumerate();
        let read_later = vars
            .filter(|(index, var)| self.var_index(&var.name) == Some(*index))
            .filter(|(_, var)| live.contains(&var.name) || (var.exclusive && var.dirty))
            .flat_map(|(_, var)| var.value.tensors());
        let mut outs = Vec::new();
        for key in read_later.chain(wanted.iter().copied()).chain(self.flow.temps.iter().copied()) {
            if matches!(self.tensor(key).home, Home::Pending(_)) && !outs.contains(&key) {
                outs.push(key);
            }
        }
        outs
    }

    fn pending_val(&self, key: TensorKey) -> Val {
        match self.tensor(key).home {
            Home::Pending(val) => val,
            Home::Host(_) => unreachable!("only tensors of the graph are its results"),
        }
    }

    /// Gives a result of a launch a variable: the user's own where exactly that is the value.
    fn materialise(&mut self, key: TensorKey, live: &Names) -> Out {
        let own = |var: &Var| {
            !var.bound
                && live.contains(&var.name)
                && matches!(var.value, Value::Tensor { key: k, by_ref: false } if k == key)
        };
        let owner = (0..self.flow.vars.len())
            .rev()
            .find(|&index| own(&self.flow.vars[index]) && self.var_index(&self.flow.vars[index].name) == Some(index));
        let ty = self.tensor(key).tensor_ty();
        let (local, mutable, name) = match owner {
            Some(index) => {
                let name = self.flow.vars[index].name.clone();
                self.protect(&name);
                let var = &mut self.flow.vars[index];
                (var.bound, var.dirty) = (true, false);
                (var.ident.clone(), var.mutable, Some(name))
            }
            None => (generated("t", key.0), false, None),
        };
        self.flow.tensors[key.0].home = Home::Host(Place { tokens: quote!(#local), by_ref: false, name });
        Out { local, mutable, dtype: ty.dtype, rank: ty.rank }
    }

    /// Renumbers the graph's symbols from 0: extents of its inputs, then host integers, which are returned.
    fn close_symbols(&mut self, graph: &mut Graph, inputs: &[TensorKey]) -> Vec<TokenStream> {
        let mut closed = BTreeMap::<Sym, Sym>::new();
        let mut syms = Vec::new();
        for (input, &key) in inputs.iter().enumerate() {
            for (axis, dim) in self.tensor(key).ty.dims.iter().enumerate() {
                if let Dim::Sym(sym) = dim
                    && !closed.contains_key(sym)
                {
                    closed.insert(*sym, Sym(syms.len() as u32));
                    let source = SymSource::Input { input: input as u32, axis: axis as u32 };
                    syms.push(SymDef { name: self.sym_name(*sym), source });
                }
            }
        }
        let mut host = Vec::new();
        graph.for_each_dim(&mut |dim| {
            dim.for_each_sym(&mut |sym| {
                closed.entry(sym).or_insert_with(|| {
                    syms.push(SymDef { name: self.sym_name(sym), source: SymSource::Host(host.len() as u32) });
                    host.push(sym);
                    Sym(syms.len() as u32 - 1)
                });
            })
        });
        graph.map_dims(&|dim| dim.substitute(&|sym| Dim::Sym(closed[&sym])));
        graph.syms = syms;
        host.into_iter().map(|sym| self.sym_tokens(sym)).collect()
    }

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
            _ => self.moved_tokens(&var.value),
        };
        self.protect(&var.name);
        let ident = &var.ident;
        let tokens = match (var.bound, var.exclusive) {
            (true, true) => quote!(*#ident = #value;),
            (true, false) => quote!(#ident = #value;),
            (false, _) => {
                let mutability = var.mutable.then(|| quote!(mut));
                quote!(let #mutability #ident = #value;)
            }
        };
        self.flow.steps.push(Step::Host(tokens));
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
