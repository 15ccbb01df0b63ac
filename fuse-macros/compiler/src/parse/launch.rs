//! The end of a graph: its live values become variables of the emitted code.

use super::Walker;
use super::flow::{Pending, generated};
use super::names::Names;
use super::program::{Launch, Out, Returned, Step};
use super::value::{Home, Maker, Place, TensorKey, Value, Var};
use crate::graph::{Graph, SymDef, SymSource};
use crate::op::Val;
use crate::types::{Dim, Sym};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use std::collections::BTreeMap;

impl Walker<'_> {
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
        let params = pending.inputs.iter().map(|&key| self.parameter_of(key)).collect();
        let sizes = self.close_symbols(&mut graph, &pending.inputs);
        let segment = self.segments.len();
        self.flow.launched.extend(outs.iter().enumerate().map(|(out, &key)| (key, segment, out)));
        let outs: Vec<Out> = outs.into_iter().map(|key| self.materialise(key, live)).collect();
        let at = pending.at.unwrap_or_else(Span::call_site);
        self.segments.push(graph);
        let launch = Launch { segment, inputs, params, scalars: pending.scalars, sizes, outs, at };
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

    /// What a value is made of, all of whose tensors are in the emitted code.
    pub fn returned(&self, value: &Value) -> Returned {
        let is_ok = |maker: &Maker| matches!(maker, Maker::Call(function) if function.to_string() == "Ok");
        match value {
            Value::Tensor { key, .. } => self.source_of(*key),
            Value::Made(maker, parts) if is_ok(maker) && parts.len() == 1 => self.returned(&parts[0]),
            Value::Tuple(parts) | Value::Array(parts) | Value::Made(Maker::Vec, parts) => {
                Returned::Parts(parts.iter().map(|part| self.returned(part)).collect())
            }
            _ => Returned::Other,
        }
    }

    fn source_of(&self, key: TensorKey) -> Returned {
        let launched = self.flow.launched.iter().find(|(result, ..)| *result == key);
        let result = launched.map(|&(_, segment, out)| Returned::Result { segment, out });
        result.or_else(|| self.parameter_of(key).map(Returned::Parameter)).unwrap_or_default()
    }

    fn parameter_of(&self, key: TensorKey) -> Option<Ident> {
        self.params.iter().find(|(own, _)| *own == key).map(|(_, ident)| ident.clone())
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
}
