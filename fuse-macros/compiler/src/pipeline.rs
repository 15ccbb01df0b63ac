//! The whole compiler on one page.

use crate::autodiff::functions::{Derived, Gradients, Refused};
use crate::autodiff::split::{Derivative, Pair};
use crate::diag::Diagnostics;
use crate::emit;
use crate::graph::Graph;
use crate::options::{Backend, Mode, Numerics, Options, Precision};
use crate::parse::{self, Function, Program};
use crate::plan::Plan;
use crate::report::Explanation;
use crate::{autodiff, optimise, schedule};
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::HashMap;
use syn::{AttrStyle, Attribute, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, Meta, Signature};

/// What `#[compile(attribute)] item` becomes.
pub fn compile(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut diag = Diagnostics::default();
    let options = parse::options(Options::default(), attribute.clone(), &mut diag);
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(mut function)) => {
            outside(&mut function.attrs);
            compile_fn(&function, &options, diag)
        }
        Ok(Item::Impl(methods)) => {
            refuse_companion(attribute.clone(), &mut diag);
            refuse_gradients(attribute, &mut diag);
            compile_impl(methods, &options, diag)
        }
        Ok(other) => {
            refuse(&other, &mut diag);
            [diag.compile_errors(), without_dims(item)].into_iter().collect()
        }
        Err(error) => [error.to_compile_error(), item].into_iter().collect(),
    }
}

fn compile_fn(item: &ItemFn, options: &Options, mut diag: Diagnostics) -> TokenStream {
    if let Some(at) = parse::belongs_to_a_type(item) {
        // Beside a method no enum can stand, so there is no companion to emit.
        let help = "put `#[compile]` on the `impl` block; there `#[compile(..)]` on a method sets its options";
        diag.error(at, "`#[compile]` on a method cannot see its type", Some(help));
        return [diag.compile_errors(), item.to_token_stream()].into_iter().collect();
    }
    let (graphs, differentiated) = (options.mode.uses_graphs(), !options.grad.is_empty());
    let function = Function { sig: &item.sig, block: &item.block, outer: None, graphs, differentiated };
    let compiled = compile_body(&function, options, &mut diag);
    let tokens = emit::host::function(item, compiled.as_ref(), options);
    [diag.compile_errors(), tokens].into_iter().collect()
}

fn compile_impl(mut item: ItemImpl, options: &Options, mut diag: Diagnostics) -> TokenStream {
    let mut own = HashMap::new();
    for member in &mut item.items {
        if let ImplItem::Fn(method) = member {
            outside(&mut method.attrs);
            own.insert(method.sig.ident.clone(), own_options(method, options, &mut diag));
        }
    }
    let mut errors = diag.compile_errors();
    let tokens = emit::host::methods(&item, |method| {
        let mut diag = Diagnostics::default();
        let options = &own[&method.sig.ident];
        let (graphs, differentiated) = (options.mode.uses_graphs(), !options.grad.is_empty());
        let outer = Some(&item.generics);
        let function = Function { sig: &method.sig, block: &method.block, outer, graphs, differentiated };
        let compiled = compile_body(&function, options, &mut diag);
        errors.extend(diag.compile_errors());
        compiled
    });
    [errors, tokens].into_iter().collect()
}

/// The options of a method: those of its block, and over them what `#[compile(..)]` on the method says. That attribute goes.
fn own_options(method: &mut ImplItemFn, options: &Options, diag: &mut Diagnostics) -> Options {
    let is_ours = |attr: &Attribute| attr.path().segments.last().is_some_and(|last| last.ident == "compile");
    let (ours, others) = std::mem::take(&mut method.attrs).into_iter().partition::<Vec<_>, _>(is_ours);
    method.attrs = others;
    ours.into_iter().fold(options.clone(), |options, attr| match attr.meta {
        Meta::Path(_) => options,
        Meta::List(list) => {
            refuse_companion(list.tokens.clone(), diag);
            parse::options(options, list.tokens, diag)
        }
        Meta::NameValue(_) => {
            diag.error(&attr, "`#[compile]` takes a list", Some("write `#[compile(option = \"value\")]`"));
            options
        }
    })
}

/// Puts attributes written inside of a body, such as `//!` docs, before the function: they are emitted without it.
fn outside(attrs: &mut [Attribute]) {
    attrs.iter_mut().for_each(|attr| attr.style = AttrStyle::Outer);
}

/// Reports `companion` where there is no function to stand beside.
fn refuse_companion(arguments: TokenStream, diag: &mut Diagnostics) {
    if let Some(name) = parse::option_name(arguments, "companion") {
        let help = "leave it out: what comes beside a method is named after the method";
        diag.error(name, "`companion` is for functions", Some(help));
    }
}

/// Reports `grad(..)` where there are no parameters to name.
fn refuse_gradients(arguments: TokenStream, diag: &mut Diagnostics) {
    if let Some(name) = parse::option_name(arguments, "grad") {
        let help = "put `#[compile(grad(..))]` on the method whose parameters it names";
        diag.error(name, "`grad(..)` is for functions and methods", Some(help));
    }
}

/// A function with a plan for each of its graphs. `None` after a mistake: the original is all that is emitted.
fn compile_body(function: &Function, options: &Options, diag: &mut Diagnostics) -> Option<Compiled> {
    let program = parse::function(function, diag);
    // What rustc rejects is its to report.
    let is_rejected = program.is_none() && !diag.has_errors();
    if is_rejected {
        return None;
    }
    if options.fullgraph || options.deny_breaks {
        diag.deny_breaks(if options.fullgraph { "fullgraph" } else { "deny(breaks)" });
    }
    let mut program = program.filter(|_| !diag.has_errors())?;
    if !options.grad.is_empty() {
        autodiff::functions::check_order(function, &program, options.grad_order, diag);
    }
    autodiff::functions::derive(function, &mut program, diag);
    if diag.has_errors() {
        return None;
    }
    let (gradients, refused) = gradients(function, &program, options, diag)?;
    program.eager |= options.backend == Backend::Eager;
    let plans = match options.backend {
        Backend::Auto => {
            let of = |(k, graph)| plans(k, graph, options, program.turns.contains(&k));
            program.segments.iter().enumerate().map(of).collect()
        }
        Backend::Eager => vec![],
    };
    let mut compiled =
        Compiled { program, plans, gradients, refused, followed: None, mode: options.mode, dynamic: options.dynamic };
    let is_followed = !compiled.gradients.is_empty() && !compiled.program.eager;
    if is_followed {
        compiled.followed = Some(followed(function, &compiled, options));
    }
    Some(compiled)
}

/// The derivatives of a function's graphs.
fn followed(function: &Function, compiled: &Compiled, options: &Options) -> Followed {
    let attended = |graph: &Graph| {
        let special = optimise::assume(graph);
        let graph = optimised(special.as_ref().unwrap_or(graph), options);
        scheduled(&graph, options, false).attended()
    };
    let pairs = autodiff::segments::run(&compiled.program, &options.grad, options.memory(), &attended);
    let first = compiled.plans.len() + compiled.gradients.len();
    let split = |(k, pair): (usize, Option<Pair>)| {
        let Pair { derivative, mut forward, backward, told } = pair?;
        forward.name = format!("{}_forward", forward.name);
        let (forward, backward) =
            (plans(first + 2 * k, &forward, options, false), plans(first + 2 * k + 1, &backward, options, false));
        Some(Split { derivative, forward, backward, told })
    };
    Followed {
        constants: autodiff::segments::constants(function, &options.grad),
        splits: pairs.into_iter().enumerate().map(split).collect(),
    }
}

/// The functions that give gradients, where they are asked for, and those that cannot be. `None` after a mistake.
fn gradients(
    function: &Function,
    program: &Program,
    options: &Options,
    diag: &mut Diagnostics,
) -> Option<(Vec<Differentiated>, Vec<Refused>)> {
    if options.grad.is_empty() {
        return Some((vec![], vec![]));
    }
    let Gradients { derived, refused } =
        autodiff::functions::run(function, program, &options.grad, options.grad_order, diag);
    let compile = |(k, derived): (usize, Derived)| {
        let Derived { name, signature, wanted, further, program: mut derived } = derived;
        derived.eager |= options.backend == Backend::Eager;
        let plans = match derived.eager {
            true => vec![],
            false => vec![plans(program.segments.len() + k, &derived.segments[0], options, false)],
        };
        let (mode, dynamic) = (options.mode, options.dynamic);
        let compiled =
            Compiled { program: derived, plans, gradients: vec![], refused: vec![], followed: None, mode, dynamic };
        Differentiated { name, signature, wanted, further, compiled }
    };
    (!diag.has_errors()).then(|| (derived.into_iter().enumerate().map(compile).collect(), refused))
}

/// A captured function and the plans of its graphs.
pub struct Compiled {
    /// Host code and launches.
    pub program: Program,
    /// The plans of each graph: one for operands that do not broadcast where nothing says whether they do, then one for all.
    pub plans: Vec<Vec<Plan>>,
    /// The functions beside it that give gradients.
    pub gradients: Vec<Differentiated>,
    /// The functions that the result has no gradients for.
    pub refused: Vec<Refused>,
    /// How a tape follows the function from graph to graph, if its gradients are asked for.
    pub followed: Option<Followed>,
    /// What the graphs' calls are tuned for.
    pub mode: Mode,
    /// Whether extents may differ from call to call, where the attribute says so.
    pub dynamic: Option<bool>,
}

/// What a tape needs to follow a function's graphs.
pub struct Followed {
    /// The tensors among the parameters through which no gradient is wanted.
    pub constants: Vec<Ident>,
    /// For each graph its forward and backward, if gradients go through it.
    pub splits: Vec<Option<Split>>,
}

/// A graph as forward and backward.
pub struct Split {
    /// How the two go together.
    pub derivative: Derivative,
    /// The plans of the forward graph, the most special one first.
    pub forward: Vec<Plan>,
    /// Those of the backward graph.
    pub backward: Vec<Plan>,
    /// What is kept between the two.
    pub told: Vec<String>,
}

/// A function that gives gradients beside the value of another.
pub struct Differentiated {
    /// What it is called: `value_and_grad`, `vjp` or `hvp`.
    pub name: &'static str,
    /// Its head.
    pub signature: Signature,
    /// The parameters whose gradients it gives.
    pub wanted: Vec<Ident>,
    /// The parameters that it has behind those of the function.
    pub further: Vec<Ident>,
    /// Its graph of forward and backward.
    pub compiled: Compiled,
}

impl Compiled {
    /// The report, of the most special plan of each graph.
    pub fn explanation(&self) -> Explanation {
        let gradients = self.gradients.iter().flat_map(|found| found.compiled.special_plans());
        let followed = self.splits().flat_map(|split| [&split.forward, &split.backward]);
        let followed = followed.filter_map(|plans| plans.first().cloned());
        let gradients: Vec<Plan> = gradients.chain(followed).collect();
        let explanation =
            Explanation::new(self.program.name.clone(), &self.special_plans(), self.program.breaks.clone())
                .with_gradients(&gradients)
                .in_mode(self.mode);
        self.splits().fold(explanation, |explanation, split| match split.forward.first() {
            Some(plan) => explanation.keeping(&plan.name, &split.told),
            None => explanation,
        })
    }

    /// The CUDA source of the whole function, and of those that give gradients.
    pub fn cuda(&self) -> String {
        let gradients = self.gradients.iter().flat_map(|found| &found.compiled.plans);
        let followed = self.splits().flat_map(|split| [&split.forward, &split.backward]);
        emit::cuda::source(&self.program.name, self.plans.iter().chain(gradients).chain(followed).flatten())
    }

    fn splits(&self) -> impl Iterator<Item = &Split> {
        self.followed.iter().flat_map(|followed| followed.splits.iter().flatten())
    }

    fn special_plans(&self) -> Vec<Plan> {
        self.plans.iter().filter_map(|plans| plans.first().cloned()).collect()
    }
}

/// The plans of a graph, the most special one first; `is_turn`: of a loop on tensor data.
fn plans(segment: usize, graph: &Graph, options: &Options, is_turn: bool) -> Vec<Plan> {
    let special = optimise::assume(graph);
    special.iter().chain([graph]).map(|graph| plan(segment, graph, options, is_turn)).collect()
}

/// From a graph to a plan: optimise, then schedule.
fn plan(segment: usize, graph: &Graph, options: &Options, is_turn: bool) -> Plan {
    dump("graph", graph);
    let graph = optimised(graph, options);
    dump("opt", &graph);
    let plan = with_own_names(scheduled(&graph, options, is_turn), segment);
    dump("plan", &crate::plan::print::plan(&plan));
    dump("cuda", &emit::cuda::text(&plan));
    plan
}

fn optimised(graph: &Graph, options: &Options) -> Graph {
    optimise::run(graph.clone(), optimise::Options { fast: options.numerics == Numerics::Fast })
}

fn scheduled(graph: &Graph, options: &Options, is_turn: bool) -> Plan {
    let options = schedule::Options {
        tf32: options.precision == Precision::High,
        contract: options.numerics == Numerics::Fast,
        is_turn,
    };
    schedule::run(graph, options)
}

/// Kernels of all graphs of a function stand in one source, so those after the first are named after their graph too.
fn with_own_names(mut plan: Plan, segment: usize) -> Plan {
    if segment > 0 {
        let rename = |name: &mut String| *name = format!("g{segment}_{name}");
        plan.kernels_mut().for_each(|kernel| rename(&mut kernel.name));
        plan.small.iter_mut().for_each(|small| rename(&mut small.name));
    }
    plan
}

/// Shows a stage's result while the user's crate compiles, where `FUSE_DUMP` names the stage.
fn dump(stage: &str, result: &impl std::fmt::Display) {
    let wanted = std::env::var("FUSE_DUMP").unwrap_or_default();
    if wanted.split(',').any(|name| name.trim() == stage) {
        eprintln!("{stage}:\n{result}");
    }
}

/// Reports `#[compile]` on what is neither a function nor an `impl` block.
fn refuse(item: &Item, diag: &mut Diagnostics) {
    const HELP: &str = "it goes on a `fn` or an `impl` block";
    let (keyword, message, help) = match item {
        Item::Mod(item) => {
            let help = "put it on each `fn` and `impl` block inside";
            (item.mod_token.to_token_stream(), "`#[compile]` on a `mod` is not supported yet", help)
        }
        Item::Struct(item) => (item.struct_token.to_token_stream(), "`#[compile]` does not go on a `struct`", HELP),
        Item::Enum(item) => (item.enum_token.to_token_stream(), "`#[compile]` does not go on an `enum`", HELP),
        Item::Trait(item) => {
            (item.trait_token.to_token_stream(), "`#[compile]` does not go on a `trait`", "put it on the `impl` blocks")
        }
        other => {
            let first = other.to_token_stream().into_iter().take(1).collect();
            (first, "`#[compile]` needs a body to compile", HELP)
        }
    };
    diag.error(keyword, message, Some(help));
}

/// Tokens without `#[dims(..)]`, which rustc does not know.
fn without_dims(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            kept.push(token);
            continue;
        };
        let is_dims = matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "dims");
        let after_hash = matches!(kept.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
        if is_dims && after_hash {
            kept.pop();
            continue;
        }
        let mut inner = Group::new(group.delimiter(), without_dims(group.stream()));
        inner.set_span(group.span());
        kept.push(inner.into());
    }
    kept.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn segments_are_told_the_mode_unless_it_is_the_default() {
        let item = quote! { fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> { x * 2.0 } };
        let emitted = |attribute: TokenStream| compile(attribute, item.clone()).to_string().replace(' ', "");
        let told = "Config{mode:::fuse_runtime::rt::Mode::ReduceOverhead,dynamic:::core::option::Option::None";
        assert!(emitted(quote!(mode = "reduce-overhead")).contains(told));
        assert!(emitted(quote!(dynamic = true)).contains("dynamic:::core::option::Option::Some(true)"));
        assert!(!emitted(quote!(mode = "default")).contains("Config"));
    }

    #[test]
    fn a_turn_asks_whether_there_is_one_unless_the_library_is_part_of_it() {
        let emitted = |turn: TokenStream| {
            let item = quote! {
                fn f(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
                    let mut x: Tensor<f32, 2> = x.clone();
                    while x.abs().max_all().item() > 1.0 {
                        x = #turn;
                    }
                    x.gelu()
                }
            };
            compile(quote!(), item).to_string()
        };
        let asking = |text: &str| text.matches("if (goes_on && !*goes_on) return;").count();
        // A row has a body for each way it may be walked.
        let (plain, product) = (emitted(quote!(x * 0.5)), emitted(quote!(x.matmul(&x))));
        assert!(asking(&plain) > 0 && asking(&plain) < plain.matches("fuse_behind();").count());
        assert_eq!(asking(&product), 0);
    }

    #[test]
    fn plans_say_whether_products_may_contract() {
        let item = quote! { fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> { x * 2.0 + 1.0 } };
        let emitted = |numerics: &str| compile(quote!(numerics = #numerics), item.clone()).to_string();
        assert!(emitted("fast").contains("contract:true"));
        assert!(!emitted("strict").contains("contract"));
    }
}
