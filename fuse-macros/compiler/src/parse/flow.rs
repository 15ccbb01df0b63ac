//! The state of one path through the function: variables, tensors, the graph being built, the code emitted so far.

use super::Walker;
use super::names::Name;
use super::program::{Size, Step};
use super::types::TensorTy;
use super::value::{Home, Place, TensorInfo, TensorKey, Var};
use crate::graph::Graph;
use crate::op::{Attr, Op, Val};
use crate::types::{Dim, Sym, Ty};
use proc_macro2::{Ident, Span};
use quote::format_ident;
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
    /// Results of launches: the tensor, the segment, and which of its results it is.
    pub launched: Vec<(TensorKey, usize, usize)>,
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
        self.turns.retain(|turn| *turn < saved.segments);
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
        let is_open = self.generics.leaves_open(ty.rank);
        let dims = (0..ty.rank)
            .map(|axis| {
                let sym = self.new_sym(format!("{label}.{axis}"));
                let (local, of) = (self.sym_local(sym), place.tokens.clone());
                self.flow.steps.push(Step::Size(Size { local, sym, of, axis, is_open }));
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
}
