//! What `grad(w, b)` asks for beside a function: `value_and_grad` for a result of rank 0 or a tuple that begins with one, and
//! `vjp` for any; from `grad(order = 2, ..)` on `hvp`, too.
//!
//! The one graph of a function is replaced by that of forward and backward; its host code stays as it is. A function of
//! several graphs, or of none, is followed on the eager tape.

use super::structure::{Leaf, Structure, first_argument};
use super::{Cut, Mistake, Request, Seed};
use crate::diag::Diagnostics;
use crate::graph::{Graph, Place};
use crate::op::Val;
use crate::parse::{
    Entry, Function, GenericNames, HostTy, Launch, Out, Program, Returned, Step, TensorTy, parameter_name,
};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{FnArg, GenericArgument, PathArguments, ReturnType, Signature, Type, TypePath};

/// A function that gives gradients beside the value.
pub struct Derived {
    /// What it is called.
    pub name: &'static str,
    /// Its head.
    pub signature: Signature,
    /// The parameters whose gradients it gives.
    pub wanted: Vec<Ident>,
    /// The parameters that it has behind those of the function.
    pub further: Vec<Ident>,
    /// Its one graph and the host code around it, or nothing but that it runs eager.
    pub program: Program,
}

/// What `grad(..)` puts beside a function.
#[derive(Default)]
pub struct Gradients {
    /// The functions that give gradients.
    pub derived: Vec<Derived>,
    /// The heads of those that the result has none for. Bounds that are never met have rustc say why at a call.
    pub refused: Vec<(&'static str, Signature)>,
}

/// What `grad(..)` with these parameters asks for; nothing after a mistake.
pub fn run(
    function: &Function,
    program: &Program,
    wanted: &[Ident],
    order: usize,
    diag: &mut Diagnostics,
) -> Gradients {
    let Some(reader) = Reader::read(function, program, wanted, diag) else { return Gradients::default() };
    let undefined = reader.undefined(Form::Vjp);
    if !undefined.is_empty() {
        undefined.iter().for_each(|found| reader.report(found, diag));
        return Gradients::default();
    }
    let forms = [Form::ValueAndGrad, Form::Vjp, Form::Hvp].into_iter().filter(|&form| form != Form::Hvp || order > 1);
    let (possible, refused): (Vec<Form>, Vec<Form>) =
        forms.partition(|&form| form == Form::Vjp || reader.result.has_loss());
    // A tuple may begin with a number that has no gradients, such as an accuracy.
    let is_defined = |form: &Form| *form == Form::Vjp || reader.undefined(*form).is_empty();
    Gradients {
        derived: possible.into_iter().filter(is_defined).map(|form| reader.derive(form)).collect(),
        refused: refused.into_iter().map(|form| (form.name(), reader.refused(form))).collect(),
    }
}

/// Puts the gradients of every `value_and_grad` that was captured in their places.
pub fn derive(function: &Function, program: &mut Program, diag: &mut Diagnostics) {
    for graph in &mut program.segments {
        match super::derive(std::mem::take(graph)) {
            Ok(derived) => *graph = derived,
            Err(Cut { variable, op, place }) => {
                let message =
                    format!("`{}` has no gradient, and `{variable}` reaches the value only through it", op.name);
                let at = found(function.block.to_token_stream(), op.name, &place);
                let at = at.unwrap_or_else(|| function.sig.ident.to_token_stream());
                let help = format!("leave `{variable}` out of `value_and_grad`, or compute with what has a gradient");
                diag.error(at, message, Some(&help));
            }
        }
    }
}

/// Reports a `value_and_grad` inside of a function whose gradients would be of a higher order than it is asked for.
pub fn check_order(function: &Function, program: &Program, order: usize, diag: &mut Diagnostics) {
    for graph in &program.segments {
        let Some((found_order, place)) = super::order(graph) else { continue };
        if found_order < order {
            continue;
        }
        let name = &function.sig.ident;
        let message = format!(
            "the gradient of `{name}` is one of order {} here, and `grad(..)` is of order {order}",
            found_order + 1
        );
        let at =
            found(function.block.to_token_stream(), "value_and_grad", place).unwrap_or_else(|| name.to_token_stream());
        let help = format!("write `grad(order = {}, ..)`, or `detach` what is differentiated here", found_order + 1);
        diag.error(at, message, Some(&help));
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    ValueAndGrad,
    Vjp,
    Hvp,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::ValueAndGrad => "value_and_grad",
            Form::Vjp => "vjp",
            Form::Hvp => "hvp",
        }
    }

    fn seed(self) -> Seed {
        match self {
            Form::ValueAndGrad | Form::Hvp => Seed::One,
            Form::Vjp => Seed::Input,
        }
    }
}

/// A parameter whose gradient is wanted.
struct Wanted {
    name: Ident,
    ty: TensorTy,
    /// The tensor's type as written.
    written: TokenStream,
    /// Which input of the graph it is, if the graph reads it.
    input: Option<u32>,
}

/// A function whose gradients are wanted, as far as they are concerned.
struct Reader<'a> {
    function: &'a Function<'a>,
    program: &'a Program,
    wanted: Vec<Wanted>,
    result: Structure,
    /// The result's type as written, without the `Result` around it.
    written: &'a Type,
    /// The function as one graph, if it is one.
    graph: Option<OneGraph<'a>>,
}

/// A parameter that reaches the results only through an op without a gradient.
struct Undefined<'a> {
    parameter: &'a Ident,
    op: &'static str,
    place: &'a Place,
}

/// A function that is one graph.
#[derive(Clone, Copy)]
struct OneGraph<'a> {
    graph: &'a Graph,
    /// Where its launch stands among the steps.
    at: usize,
    /// That launch.
    launch: &'a Launch,
}

/// What is differentiated of a function that is one graph.
struct Weighted {
    leaves: Vec<Leaf>,
    /// Where they are in the graph.
    vals: Vec<Val>,
    /// Checks of the lists of cotangents.
    counts: Vec<Entry>,
}

impl<'a> OneGraph<'a> {
    /// `None` where host code comes between graphs.
    fn of(program: &'a Program) -> Option<OneGraph<'a>> {
        let launches = |step: &Step| matches!(step, Step::Launch(_) | Step::Loop(_) | Step::Branch(_) | Step::Nest(_));
        let mut found = program.body.iter().enumerate().filter(|(_, step)| launches(step));
        let (Some((at, Step::Launch(launch))), None) = (found.next(), found.next()) else { return None };
        let has_value = matches!(program.body.last(), Some(Step::Value(_)));
        has_value.then_some(OneGraph { graph: program.segments.get(launch.segment)?, at, launch })
    }

    /// Where a tensor is in the graph, if it is there.
    fn val(&self, source: &Returned) -> Option<Val> {
        match source {
            Returned::Result { segment, out } if *segment == self.launch.segment => Some(self.graph.outs[*out]),
            Returned::Parameter(name) => self.input(name).map(|input| self.graph.inputs[input]),
            _ => None,
        }
    }

    /// Which input a parameter is.
    fn input(&self, name: &Ident) -> Option<usize> {
        self.launch.params.iter().position(|param| param.as_ref() == Some(name))
    }

    /// The graph with what is differentiated behind its results, and the request for that.
    fn weighted(&self, vals: &[Val], wanted: &[Wanted], seed: Seed) -> (Graph, Request) {
        let mut graph = self.graph.clone();
        let results = graph.outs.len();
        graph.outs.extend(vals);
        let seeds = (0..graph.outs.len()).map(|out| if out < results { Seed::Nothing } else { seed });
        let request =
            Request { wrt: wanted.iter().filter_map(|wanted| wanted.input).collect(), seeds: seeds.collect() };
        (graph, request)
    }
}

impl<'a> Reader<'a> {
    fn read(
        function: &'a Function,
        program: &'a Program,
        wanted: &[Ident],
        diag: &mut Diagnostics,
    ) -> Option<Reader<'a>> {
        let generics = GenericNames::read(function.outer.into_iter().chain([&function.sig.generics]));
        let found: Vec<Option<Wanted>> = wanted.iter().map(|name| parameter(function, &generics, name, diag)).collect();
        let (written, result) = result(function, &generics, diag)?;
        let mut wanted: Vec<Wanted> = found.into_iter().collect::<Option<_>>()?;
        refuse(function, diag)?;
        let graph = OneGraph::of(program);
        for wanted in &mut wanted {
            wanted.input = graph.and_then(|one| one.input(&wanted.name)).map(|input| input as u32);
        }
        Some(Reader { function, program, wanted, result, written, graph })
    }

    /// What is differentiated of the one graph. `None` where there is none, or it does not have all of that.
    fn weighted(&self, form: Form) -> Option<(OneGraph<'a>, Weighted)> {
        let (one, returned) = (self.graph?, &self.program.returned);
        let (leaves, counts) = match form {
            Form::Vjp => {
                let cotangent = self.cotangent();
                self.result.leaves(returned, quote!(#cotangent))?
            }
            Form::ValueAndGrad | Form::Hvp => (vec![self.result.loss(returned)?], vec![]),
        };
        let vals = leaves.iter().map(|leaf| one.val(&leaf.source)).collect::<Option<_>>()?;
        Some((one, Weighted { leaves, vals, counts }))
    }

    /// The parameters that have no gradient, as far as one graph tells it.
    fn undefined(&self, form: Form) -> Vec<Undefined<'_>> {
        let Some((one, found)) = self.weighted(form) else { return vec![] };
        let undefined = |parameter| {
            let (graph, request) = one.weighted(&found.vals, std::slice::from_ref(parameter), Seed::Input);
            match super::check(&graph, &request) {
                Err(Mistake::Undefined { op, place, .. }) => {
                    let place = &one.graph.places[place as usize];
                    Some(Undefined { parameter: &parameter.name, op: op.name, place })
                }
                _ => None,
            }
        };
        self.wanted.iter().filter_map(undefined).collect()
    }

    /// Reports an op through which alone a parameter reaches the result, and that has no gradient.
    fn report(&self, found: &Undefined, diag: &mut Diagnostics) {
        let Undefined { parameter: name, op, place } = *found;
        let message = format!("`{op}` has no gradient, and `{name}` reaches the result only through it");
        let at =
            self::found(self.function.block.to_token_stream(), op, place).unwrap_or_else(|| name.to_token_stream());
        let help = format!("leave `{name}` out of `grad(..)`, or compute with what has a gradient");
        diag.error(at, message, Some(&help));
    }

    fn derive(&self, form: Form) -> Derived {
        let further = self.further(form);
        let program = match self.weighted(form) {
            Some((one, found)) => self.joint(one, &found, form, &further),
            None => self.beside(vec![], vec![]),
        };
        let wanted = self.wanted.iter().map(|wanted| wanted.name.clone()).collect();
        let signature = self.signature(form, &further);
        let further = further.into_iter().map(|(name, _)| name).collect();
        Derived { name: form.name(), signature, wanted, further, program }
    }

    /// The parameters behind those of the function, and their types: the cotangent of the result, or a vector for each
    /// wanted parameter.
    fn further(&self, form: Form) -> Vec<(Ident, TokenStream)> {
        match form {
            Form::ValueAndGrad => vec![],
            Form::Vjp => vec![(self.cotangent(), self.result.cotangent())],
            Form::Hvp => {
                let vector = |Wanted { name, written, .. }: &Wanted| {
                    (self.free_name(&format!("{name}_vector")), quote!(&#written))
                };
                self.wanted.iter().map(vector).collect()
            }
        }
    }

    fn cotangent(&self) -> Ident {
        self.free_name("cotangent")
    }

    /// The program of forward and backward.
    fn joint(&self, one: OneGraph, found: &Weighted, form: Form, further: &[(Ident, TokenStream)]) -> Program {
        let (graph, request) = one.weighted(&found.vals, &self.wanted, form.seed());
        let results = one.graph.outs.len();
        let mut graph = super::run(graph, &request);
        graph.outs.drain(results..results + found.vals.len());
        match form {
            Form::ValueAndGrad => {}
            Form::Vjp => name_cotangents(&mut graph, &found.leaves),
            Form::Hvp => graph = along(graph, request.wrt, results),
        }
        graph.name = format!("{}::{}", self.program.name, form.name());
        let mut body = self.program.body.clone();
        let Step::Launch(launch) = &mut body[one.at] else { unreachable!("a launch stands there") };
        let inputs = self.further_inputs(found, form, further);
        launch.params.extend(inputs.iter().map(|_| None));
        launch.inputs.extend(inputs);
        let gradients = self.gradients(launch);
        let Some(Step::Value(value)) = body.last_mut() else { unreachable!("the value comes last") };
        *value = match self.is_fallible() {
            true => quote!((#value).map(|value| (value, #gradients))),
            false => quote!((#value, #gradients)),
        };
        let mut program = self.beside(vec![graph], body);
        program.entry.splice(0..0, found.counts.iter().cloned());
        program
    }

    /// What the graph of forward and backward reads beside what the function's graph does.
    fn further_inputs(&self, found: &Weighted, form: Form, further: &[(Ident, TokenStream)]) -> Vec<TokenStream> {
        match form {
            Form::ValueAndGrad => vec![],
            Form::Vjp => found.leaves.iter().map(|leaf| leaf.cotangent.clone()).collect(),
            Form::Hvp => {
                // A parameter that the graph does not read has no vector in it either.
                let pairs = self.wanted.iter().zip(further).filter(|(wanted, _)| wanted.input.is_some());
                pairs.map(|(_, (name, _))| quote!(#name)).collect()
            }
        }
    }

    /// A program with the entry code of the function.
    fn beside(&self, segments: Vec<Graph>, body: Vec<Step>) -> Program {
        let Program { name, generics, entry, needed, .. } = self.program;
        Program {
            name: name.clone(),
            generics: generics.clone(),
            open_rank: None,
            eager: segments.is_empty(),
            segments,
            turns: Default::default(),
            entry: entry.clone(),
            body,
            returned: Returned::Other,
            needed: needed.clone(),
            breaks: vec![],
        }
    }

    /// Lets the launch give the gradients; an expression for all of them.
    fn gradients(&self, launch: &mut Launch) -> TokenStream {
        let gradients = self.wanted.iter().enumerate().map(|(k, Wanted { name, ty, written, input })| {
            if input.is_none() {
                return quote!(<#written>::zeros(#name.dims(), #name.device()));
            }
            let local = format_ident!("__grad{k}", span = Span::mixed_site());
            launch.outs.push(Out { local: local.clone(), mutable: false, dtype: ty.dtype, rank: ty.rank });
            quote!(#local)
        });
        let gradients: Vec<TokenStream> = gradients.collect();
        quote!((#(#gradients),*))
    }

    fn signature(&self, form: Form, further: &[(Ident, TokenStream)]) -> Signature {
        let mut signature = self.function.sig.clone();
        signature.ident = format_ident!("{}", form.name(), span = signature.ident.span());
        let (written, types) = (self.written, self.wanted.iter().map(|wanted| &wanted.written));
        let value = quote!((#written, (#(#types),*)));
        signature.inputs.extend(further.iter().map(|(name, ty)| -> FnArg { syn::parse_quote!(#name: #ty) }));
        let ReturnType::Type(_, output) = &mut signature.output else { unreachable!("the result has a type") };
        match self.is_fallible() {
            true => *first_argument_mut(output).expect("a `Result` of something") = syn::parse_quote!(#value),
            false => **output = syn::parse_quote!(#value),
        }
        signature
    }

    /// A head under bounds that the result does not meet.
    fn refused(&self, form: Form) -> Signature {
        let (mut signature, written) = (self.signature(form, &self.further(form)), self.written);
        // A bound without a lifetime would be checked here, and not where the function is called.
        let bound = syn::parse_quote!(for<'never> #written: ::fuse_runtime::Outcome);
        signature.generics.make_where_clause().predicates.push(bound);
        signature
    }

    fn is_fallible(&self) -> bool {
        matches!(&self.function.sig.output, ReturnType::Type(_, ty) if ty.as_ref() != self.written)
    }

    /// A name for a further parameter: this one, unless a parameter has it.
    fn free_name(&self, wish: &str) -> Ident {
        let is_taken = |name: &Ident| self.parameters().any(|param| param == *name);
        let mut name = format_ident!("{wish}", span = self.function.sig.ident.span());
        while is_taken(&name) {
            name = format_ident!("{name}_");
        }
        name
    }

    fn parameters(&self) -> impl Iterator<Item = Ident> {
        parameters(self.function).map(|(name, _)| name)
    }
}

/// Tells cotangents apart, which are the last inputs, in the text and where their extents are checked.
fn name_cotangents(graph: &mut Graph, leaves: &[Leaf]) {
    let first = graph.inputs.len() - leaves.len();
    for (leaf, input) in leaves.iter().zip(graph.inputs[first..].to_vec()) {
        let name = leaf.name();
        let of_it = graph.checks.iter_mut().filter(|(node, _)| *node == input.node);
        of_it.for_each(|(_, check)| check.text = check.text.replace("`cotangent`", &format!("`{name}`")));
        let words: Vec<&str> = name.split(['.', '[', ']']).filter(|word| !word.is_empty()).collect();
        graph.nodes[input.node as usize].name = Some(words.join("_"));
    }
}

/// The derivative of gradients along vectors, which are further inputs, in the place of the gradients.
fn along(graph: Graph, wrt: Vec<u32>, results: usize) -> Graph {
    let seed = |out| if out < results { Seed::Nothing } else { Seed::Input };
    let seeds = (0..graph.outs.len()).map(seed).collect();
    let gradients = results..graph.outs.len();
    let mut graph = super::run(graph, &Request { wrt, seeds });
    graph.outs.drain(gradients);
    graph
}

/// The parameters but `self`, and their types.
fn parameters<'a>(function: &'a Function) -> impl Iterator<Item = (Ident, &'a Type)> {
    function.sig.inputs.iter().enumerate().filter_map(|(index, input)| match input {
        FnArg::Typed(typed) => Some((parameter_name(index, typed), typed.ty.as_ref())),
        FnArg::Receiver(_) => None,
    })
}

/// A parameter by its name, which must be a tensor of floats.
fn parameter(function: &Function, generics: &GenericNames, name: &Ident, diag: &mut Diagnostics) -> Option<Wanted> {
    let Some((_, written)) = parameters(function).find(|(param, _)| param == name) else {
        let known: Vec<String> = parameters(function).map(|(param, _)| format!("`{param}`")).collect();
        let help = format!("its parameters are {}", known.join(", "));
        diag.error(name, format!("`{}` has no parameter `{name}`", function.sig.ident), Some(&help));
        return None;
    };
    let HostTy::Tensor(ty) = *generics.host_ty(written).behind_refs() else {
        let message = format!("`{name}` is a `{}`: gradients are of tensors", text(written));
        diag.error(name, message, Some("name parameters of type `&Tensor<T, R>` or `Tensor<T, R>`"));
        return None;
    };
    if matches!(generics.host_ty(written), HostTy::Ref(_, true)) {
        let help = "take it by `&`, or leave it out: a gradient is for the value at the call";
        diag.error(name, format!("`{name}` is `&mut`, and may have another value behind the call"), Some(help));
        return None;
    }
    if !ty.dtype.is_float() {
        let message = format!("`{name}` is a tensor of {}, which has no gradient", ty.dtype);
        diag.error(name, message, Some("leave it out: gradients are of floats"));
        return None;
    }
    Some(Wanted { name: name.clone(), ty, written: behind_refs(written).to_token_stream(), input: None })
}

/// The result, in which there must be a tensor of floats: its type without a `Result` around it, and its structure.
fn result<'a>(
    function: &'a Function,
    generics: &GenericNames,
    diag: &mut Diagnostics,
) -> Option<(&'a Type, Structure)> {
    let ReturnType::Type(_, written) = &function.sig.output else {
        let name = &function.sig.ident;
        let help = "return one tensor of floats, such as the loss";
        diag.error(name, format!("`{name}` returns nothing to differentiate"), Some(help));
        return None;
    };
    let inner = without_result(written);
    let (at, help) = match Structure::read(inner, generics) {
        Ok(structure) if structure.has_tensor() => return Some((inner, structure)),
        Ok(_) => (inner, "return a tensor of floats, such as the loss"),
        Err(part) => (part, "return tensors in tuples, arrays and `Vec`s, and numbers beside them"),
    };
    diag.error(at, format!("a result of type `{}` has no gradient", text(at)), Some(help));
    None
}

/// The type itself, or what a `Result` holds.
fn without_result(written: &Type) -> &Type {
    let is_result = |path: &TypePath| path.path.segments.last().is_some_and(|last| last.ident == "Result");
    match written {
        Type::Path(path) if is_result(path) => first_argument(path).unwrap_or(written),
        _ => written,
    }
}

fn first_argument_mut(written: &mut Type) -> Option<&mut Type> {
    let Type::Path(path) = written else { return None };
    let PathArguments::AngleBracketed(list) = &mut path.path.segments.last_mut()?.arguments else { return None };
    list.args.iter_mut().find_map(|arg| match arg {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Functions that a tape cannot follow either.
fn refuse(function: &Function, diag: &mut Diagnostics) -> Option<()> {
    let sig = function.sig;
    let unsafety = matches!(sig.safety, syn::Safety::Unsafe(_)).then(|| sig.safety.to_token_stream());
    let asyncness = sig.asyncness.map(|word| word.to_token_stream());
    let Some(word) = asyncness.or(unsafety).or_else(|| sig.abi.as_ref().map(|abi| abi.to_token_stream())) else {
        return Some(());
    };
    let help = "put what is differentiated into a plain `fn`";
    diag.error(&word, format!("`grad(..)` does not go with `{}` functions", text(&word)), Some(help));
    None
}

/// The name of an op in the source, from a place on.
fn found(tokens: TokenStream, op: &str, place: &Place) -> Option<TokenStream> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Group(group) => found(group.stream(), op, place),
        TokenTree::Ident(ident) => {
            let start = ident.span().start();
            let is_behind = (start.line as u32, start.column as u32 + 1) >= (place.line, place.column);
            (is_behind && ident == op).then(|| ident.into_token_stream())
        }
        _ => None,
    })
}

fn behind_refs(ty: &Type) -> &Type {
    match ty {
        Type::Reference(reference) => behind_refs(&reference.elem),
        Type::Paren(paren) => behind_refs(&paren.elem),
        Type::Group(group) => behind_refs(&group.elem),
        ty => ty,
    }
}

fn text(tokens: &impl ToTokens) -> String {
    crate::diag::place(tokens).text
}
