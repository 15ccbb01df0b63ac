//! Tokens to segments: a function is read statement by statement, and its tensor ops are collected into graphs.
//!
//! The walk is in continuation style: what comes after an expression is data (`cont::Cont`), so that a branch on a host
//! value can hand it to each of its arms. What cannot be analysed stays host code, before which the graph ends.

mod bind;
mod branch;
mod call;
mod closure;
mod cont;
mod device_branch;
mod device_loop;
mod entry;
mod eval;
mod flags;
mod flow;
mod head;
mod hoist;
mod host;
mod launch;
mod loops;
mod method;
mod mistake;
mod names;
mod node;
mod open_rank;
mod operand;
mod options;
mod outcome;
mod place;
mod program;
mod region;
mod select;
mod shape;
mod stmts;
mod sync;
mod syntax;
mod types;
mod unroll;
mod usage;
mod value;

pub use entry::parameter_name;
pub use open_rank::OpenRank;
pub use options::{option_name, options};
pub use program::{Branch, DimAt, Entry, Joined, Launch, Loop, Out, Piece, Program, Returned, Size, State, Step};
pub use types::{GenericNames, HostTy, TensorTy, may_hold_tensor, speaks_of_tensors};

use crate::diag::{BreakKind, Diagnostics};
use crate::graph::Graph;
use crate::types::Sym;
use closure::Closure;
use cont::Cont;
use flow::Flow;
use names::Names;
use proc_macro2::Ident;
use quote::ToTokens;
use shape::SymInfo;
use std::collections::BTreeSet;
use syn::visit::Visit;
use syn::{Block, Generics, ReturnType, Signature};
use value::TensorKey;

/// Into how many paths a function may split.
const MAX_PATHS: usize = 16;

/// What is captured: a function or method.
pub struct Function<'a> {
    /// Its signature, `#[dims]` attributes included.
    pub sig: &'a Signature,
    /// Its body.
    pub block: &'a Block,
    /// The generics of the `impl` it stands in.
    pub outer: Option<&'a Generics>,
    /// Whether its calls are CUDA graphs, which may hold a branch.
    pub graphs: bool,
    /// Whether its gradients are asked for. Then a branch that is not taken is not computed: it has no gradient, while
    /// one of 0 through it may be no number.
    pub differentiated: bool,
}

/// Reads a function. `None`: rustc rejects it, and says so at the original.
pub fn function(function: &Function, diag: &mut Diagnostics) -> Option<Program> {
    let generics = GenericNames::read(function.outer.into_iter().chain([&function.sig.generics]));
    let Some(name) = open_rank::of(function, &generics) else { return read(function, generics, None, diag) };
    let open = GenericNames { rank: Some(name.clone()), ..generics.clone() };
    let mut found = Diagnostics::default();
    let captured = read(function, open, None, &mut found).filter(|_| !found.has_errors());
    let least = captured.as_ref().map(open_rank::least);
    match (captured, least) {
        (Some(program), Some(Ok(least))) => {
            diag.extend(found);
            Some(Program { open_rank: Some(OpenRank { name, least }), ..program })
        }
        (_, least) => read(function, generics, least.and_then(Result::err), diag),
    }
}

/// Reads a function with what is known of its generic parameters; `differs` says why it is not captured for any rank.
fn read(
    function: &Function,
    generics: GenericNames,
    differs: Option<String>,
    diag: &mut Diagnostics,
) -> Option<Program> {
    let returns = match &function.sig.output {
        ReturnType::Default => HostTy::Unknown,
        ReturnType::Type(_, ty) => generics.host_ty(ty),
    };
    let walker = Walker {
        name: function.sig.ident.to_string(),
        graphs: function.graphs,
        generics,
        returns,
        diag,
        syms: vec![],
        needed: BTreeSet::new(),
        params: vec![],
        segments: vec![],
        turns: BTreeSet::new(),
        returned: Returned::Other,
        flow: Flow { budget: MAX_PATHS, ..Flow::default() },
        live: Names::new(),
        expected_count: None,
        regions: 0,
        generated: 0,
        silent: false,
        whole: false,
        cannot_unroll: false,
        closure: Closure::default(),
        differentiated: function.differentiated,
        differs,
    };
    walker.run(function)
}

/// What tells that a function is one of a type: its receiver, or where it says `Self`.
pub fn belongs_to_a_type(item: &syn::ItemFn) -> Option<proc_macro2::TokenStream> {
    let names_its_type = || {
        let mut names = names::mentions(&item.sig);
        names.extend(names::mentions(&item.block));
        names.iter().any(|name| name.text() == "Self")
    };
    match item.sig.receiver() {
        Some(receiver) => Some(receiver.to_token_stream()),
        None => names_its_type().then(|| item.sig.ident.to_token_stream()),
    }
}

/// Walks a function and collects what it finds.
pub(crate) struct Walker<'a> {
    name: String,
    /// Whether calls are CUDA graphs.
    graphs: bool,
    generics: GenericNames,
    returns: HostTy,
    diag: &'a mut Diagnostics,
    syms: Vec<SymInfo>,
    needed: BTreeSet<Sym>,
    /// The parameters that are tensors.
    params: Vec<(TensorKey, Ident)>,
    segments: Vec<Graph>,
    turns: BTreeSet<usize>,
    /// What the function's value is made of.
    returned: Returned,
    flow: Flow,
    /// The names read in the current statement and after it.
    live: Names,
    /// How many parts the current `let` takes.
    expected_count: Option<usize>,
    /// In how many regions of host control flow the walk is.
    regions: usize,
    /// How many variables were generated.
    generated: usize,
    /// Whether rustc rejects the function.
    silent: bool,
    /// Whether the whole function stays as it is.
    whole: bool,
    /// Whether the loop that is being unrolled has to stay a loop.
    cannot_unroll: bool,
    /// The closure that is being captured.
    closure: Closure,
    /// Whether gradients of the function are asked for.
    differentiated: bool,
    /// Why a function of open rank is not captured for all of them.
    differs: Option<String>,
}

impl Walker<'_> {
    fn run(mut self, function: &Function) -> Option<Program> {
        let is_whole = self.refuse(function);
        let entry = if checks_entry(function) { self.parameters(function) } else { vec![] };
        if !is_whole {
            self.all_stmts(&function.block.stmts, &Cont::Return);
        }
        if self.silent {
            return None;
        }
        self.note_what_is_missing(function);
        let eager = self.whole || self.segments.is_empty();
        let body = if eager { vec![] } else { self.flow.steps };
        let segments = if eager { vec![] } else { self.segments };
        let breaks = self.diag.breaks();
        let generics = self.generics.floats;
        let Walker { name, turns, needed, returned, .. } = self;
        let open_rank = None;
        Some(Program { name, generics, open_rank, segments, turns, entry, body, returned, needed, breaks, eager })
    }

    /// Functions that are not captured at all; the reason is recorded.
    fn refuse(&mut self, function: &Function) -> bool {
        let sig = function.sig;
        let unsafety = matches!(sig.safety, syn::Safety::Unsafe(_)).then(|| sig.safety.to_token_stream());
        let open = self.differs.as_deref().unwrap_or("a tensor's rank or element type is not written out");
        let reasons = [
            (sig.asyncness.map(|token| token.to_token_stream()), "an `async` function"),
            (sig.constness.map(|token| token.to_token_stream()), "a `const` function"),
            (unsafety, "an `unsafe` function"),
            (sig.abi.as_ref().map(|abi| abi.to_token_stream()), "an `extern` function"),
            (conditional(function), "code under `#[cfg]` may or may not be there, so the function"),
            (opaque(&sig.output), "a type in `impl` is that of one body alone, so the function"),
            (self.open_type(function), &format!("{open}, so the function")),
        ];
        let reason = reasons.into_iter().find_map(|(at, why)| Some((at?, format!("{why} runs op by op"))));
        if reason.is_some() {
            self.refuse_open_dims(function);
        }
        if let Some((at, reason)) = &reason {
            self.diag.graph_break(BreakKind::EAGER, at, reason);
            self.whole = true;
        }
        reason.is_some()
    }

    /// A function in which nothing is written as a `Tensor` is not captured at all.
    fn note_what_is_missing(&mut self, function: &Function) {
        let mut names = names::mentions(function.sig);
        names.extend(names::mentions(function.block));
        // Among methods there are some that have nothing to do with tensors.
        let is_method = function.sig.receiver().is_some();
        if !is_method && !self.whole && names.iter().all(|name| name.text() != "Tensor") {
            let reason = format!("nothing in `{}` has a type written as `Tensor`, so it runs op by op", self.name);
            self.diag.graph_break(BreakKind::TYPE, &function.sig.ident, reason);
        }
    }

    /// The first parameter whose tensors have a generic rank or an unknown element type.
    fn open_type(&self, function: &Function) -> Option<proc_macro2::TokenStream> {
        function.sig.inputs.iter().find_map(|input| match input {
            syn::FnArg::Typed(typed) if self.generics.host_ty(&typed.ty).is_open() => Some(typed.ty.to_token_stream()),
            _ => None,
        })
    }

    /// What `#[dims]` says of tensors of open rank would not be checked.
    fn refuse_open_dims(&mut self, function: &Function) {
        for input in &function.sig.inputs {
            if let syn::FnArg::Typed(typed) = input
                && self.generics.host_ty(&typed.ty).is_open()
            {
                self.refuse_dims(&typed.attrs, &eval::text(&typed.ty));
            }
        }
    }

    /// Whether there is no use in walking on.
    fn is_over(&self) -> bool {
        self.silent || self.whole || self.closure.refused.is_some()
    }

    /// A new variable of the emitted code.
    fn fresh(&mut self, prefix: &str) -> Ident {
        self.generated += 1;
        flow::generated(prefix, self.generated)
    }
}

/// Whether what `#[dims]` says can be checked where a function begins: in a `const` one nothing can, and a parameter under `#[cfg]` may
/// not be there.
fn checks_entry(function: &Function) -> bool {
    let is_certain = |input: &syn::FnArg| {
        let attrs = match input {
            syn::FnArg::Receiver(receiver) => &receiver.attrs,
            syn::FnArg::Typed(typed) => &typed.attrs,
        };
        !attrs.iter().any(is_conditional)
    };
    function.sig.constness.is_none() && function.sig.inputs.iter().all(is_certain)
}

/// The first `impl Trait` in what a function returns: the body that stays beside the compiled one would have another type.
fn opaque(output: &ReturnType) -> Option<proc_macro2::TokenStream> {
    struct Opaque(Option<proc_macro2::TokenStream>);
    impl<'ast> Visit<'ast> for Opaque {
        fn visit_type_impl_trait(&mut self, ty: &'ast syn::TypeImplTrait) {
            self.0.get_or_insert_with(|| ty.to_token_stream());
        }
    }
    let mut opaque = Opaque(None);
    opaque.visit_return_type(output);
    opaque.0
}

fn is_conditional(attr: &syn::Attribute) -> bool {
    ["cfg", "cfg_attr"].iter().any(|name| attr.path().is_ident(name))
}

/// The first `#[cfg]` in a function: what it stands on is not known to be there.
fn conditional(function: &Function) -> Option<proc_macro2::TokenStream> {
    struct Conditional(Option<proc_macro2::TokenStream>);
    impl<'ast> Visit<'ast> for Conditional {
        fn visit_attribute(&mut self, attr: &'ast syn::Attribute) {
            if is_conditional(attr) {
                self.0.get_or_insert_with(|| attr.to_token_stream());
            }
        }
    }
    let mut conditional = Conditional(None);
    conditional.visit_signature(function.sig);
    conditional.visit_block(function.block);
    conditional.0
}

#[cfg(test)]
mod tests;
