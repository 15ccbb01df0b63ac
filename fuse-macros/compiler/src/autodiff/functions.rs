//! What `grad(w, b)` asks for beside a function: `value_and_grad` for a result of rank 0, and `vjp` for any; from
//! `grad(order = 2, ..)` on `hvp`, too.
//!
//! The one graph of a function is replaced by that of forward and backward; its host code stays as it is. A function of
//! several graphs, or of none, is followed on the eager tape.

use super::{Cut, Mistake, Request, Seed};
use crate::diag::Diagnostics;
use crate::graph::{Graph, Place};
use crate::parse::{Function, GenericNames, HostTy, Launch, Out, Program, Step, TensorTy, parameter_name};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{FnArg, GenericArgument, PathArguments, ReturnType, Signature, Type};

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

/// The functions that `grad(..)` with these parameters asks for; none after a mistake.
pub fn run(
    function: &Function,
    program: &Program,
    wanted: &[Ident],
    order: usize,
    diag: &mut Diagnostics,
) -> Vec<Derived> {
    let Some(reader) = Reader::read(function, program, wanted, diag) else { return vec![] };
    if reader.graph.is_some_and(|graph| !reader.is_defined(graph, diag)) {
        return vec![];
    }
    let is_scalar = reader.result.rank == 0;
    let forms =
        [is_scalar.then_some(Form::ValueAndGrad), Some(Form::Vjp), (is_scalar && order > 1).then_some(Form::Hvp)];
    forms.into_iter().flatten().map(|form| reader.derive(form)).collect()
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
    result: TensorTy,
    /// The result's type as written, and the `Result` around it.
    written: &'a Type,
    /// The function as one graph, if it is one.
    graph: Option<OneGraph<'a>>,
}

/// A function that is one graph.
#[derive(Clone, Copy)]
struct OneGraph<'a> {
    graph: &'a Graph,
    /// Where its launch stands among the steps.
    at: usize,
    /// Which of its results the function's is.
    out: usize,
}

impl<'a> OneGraph<'a> {
    /// `None` where host code comes between graphs, or makes the result.
    fn of(program: &'a Program) -> Option<OneGraph<'a>> {
        let launches = |step: &Step| matches!(step, Step::Launch(_) | Step::Loop(_) | Step::Branch(_) | Step::Nest(_));
        let mut found = program.body.iter().enumerate().filter(|(_, step)| launches(step));
        let (Some((at, Step::Launch(launch))), None) = (found.next(), found.next()) else { return None };
        let Some(Step::Value(value)) = program.body.last() else { return None };
        let out = launch.outs.iter().position(|out| names(value, &out.local))?;
        Some(OneGraph { graph: program.segments.get(launch.segment)?, at, out })
    }

    fn request(&self, wanted: &[Wanted], seed: Seed) -> Request {
        let seeds = (0..self.graph.outs.len()).map(|out| if out == self.out { seed } else { Seed::Nothing });
        Request { wrt: wanted.iter().filter_map(|wanted| wanted.input).collect(), seeds: seeds.collect() }
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
        if let Some(Step::Launch(launch)) = graph.map(|graph| &program.body[graph.at]) {
            for wanted in &mut wanted {
                let is_it = |param: &Option<Ident>| param.as_ref() == Some(&wanted.name);
                wanted.input = launch.params.iter().position(is_it).map(|input| input as u32);
            }
        }
        Some(Reader { function, program, wanted, result, written, graph })
    }

    /// Whether every parameter has a gradient; if not, the ops that have none are reported.
    fn is_defined(&self, one: OneGraph, diag: &mut Diagnostics) -> bool {
        let mut defined = true;
        for wanted in &self.wanted {
            let request = one.request(std::slice::from_ref(wanted), Seed::Input);
            if let Err(Mistake::Undefined { op, place, .. }) = super::check(one.graph, &request) {
                self.report(&wanted.name, op.name, &one.graph.places[place as usize], diag);
                defined = false;
            }
        }
        defined
    }

    /// Reports an op through which alone a parameter reaches the result, and that has no gradient.
    fn report(&self, name: &Ident, op: &str, place: &Place, diag: &mut Diagnostics) {
        let message = format!("`{op}` has no gradient, and `{name}` reaches the result only through it");
        let at = found(self.function.block.to_token_stream(), op, place).unwrap_or_else(|| name.to_token_stream());
        let help = format!("leave `{name}` out of `grad(..)`, or compute with what has a gradient");
        diag.error(at, message, Some(&help));
    }

    fn derive(&self, form: Form) -> Derived {
        let further = self.further(form);
        let program = match self.graph {
            Some(one) => self.joint(one, form, &further),
            None => self.beside(vec![], vec![]),
        };
        let wanted = self.wanted.iter().map(|wanted| wanted.name.clone()).collect();
        let signature = self.signature(form, &further);
        let further = further.into_iter().map(|(name, _)| name).collect();
        Derived { name: form.name(), signature, wanted, further, program }
    }

    /// The parameters behind those of the function, and their types as written: the cotangent of the result, or a vector
    /// for each wanted parameter.
    fn further(&self, form: Form) -> Vec<(Ident, TokenStream)> {
        match form {
            Form::ValueAndGrad => vec![],
            Form::Vjp => vec![(self.free_name("cotangent"), self.written.to_token_stream())],
            Form::Hvp => {
                let vector =
                    |wanted: &Wanted| (self.free_name(&format!("{}_vector", wanted.name)), wanted.written.clone());
                self.wanted.iter().map(vector).collect()
            }
        }
    }

    /// The program of forward and backward.
    fn joint(&self, one: OneGraph, form: Form, further: &[(Ident, TokenStream)]) -> Program {
        let request = one.request(&self.wanted, form.seed());
        let mut graph = super::run(one.graph.clone(), &request);
        if form == Form::Hvp {
            graph = along(graph, request.wrt, one.graph.outs.len());
        }
        graph.name = format!("{}::{}", self.program.name, form.name());
        let mut body = self.program.body.clone();
        let Step::Launch(launch) = &mut body[one.at] else { unreachable!("a launch stands there") };
        // A parameter that the graph does not read has no vector in it either.
        let is_read = |k: &usize| form != Form::Hvp || self.wanted[*k].input.is_some();
        for (name, _) in (0..further.len()).filter(is_read).map(|k| &further[k]) {
            launch.inputs.push(quote!(#name));
            launch.params.push(Some(name.clone()));
        }
        let gradients = self.gradients(launch);
        let Some(Step::Value(value)) = body.last_mut() else { unreachable!("the value comes last") };
        *value = match self.is_fallible() {
            true => quote!((#value).map(|value| (value, #gradients))),
            false => quote!((#value, #gradients)),
        };
        self.beside(vec![graph], body)
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
        signature.inputs.extend(further.iter().map(|(name, ty)| -> FnArg { syn::parse_quote!(#name: &#ty) }));
        let ReturnType::Type(_, output) = &mut signature.output else { unreachable!("the result has a type") };
        match self.is_fallible() {
            true => *first_argument(output).expect("a `Result` of a tensor") = syn::parse_quote!(#value),
            false => **output = syn::parse_quote!(#value),
        }
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

/// The result, which must be one tensor of floats, perhaps in a `Result`.
fn result<'a>(function: &'a Function, generics: &GenericNames, diag: &mut Diagnostics) -> Option<(&'a Type, TensorTy)> {
    let help = "return one tensor of floats, such as the loss";
    let ReturnType::Type(_, written) = &function.sig.output else {
        diag.error(
            &function.sig.ident,
            format!("`{}` returns nothing to differentiate", function.sig.ident),
            Some(help),
        );
        return None;
    };
    let inner = tensor_in(written, generics);
    match inner.map(|inner| (inner, generics.host_ty(inner))) {
        Some((inner, HostTy::Tensor(ty))) if ty.dtype.is_float() => Some((inner, ty)),
        _ => {
            diag.error(written, format!("a result of type `{}` has no gradient", text(written)), Some(help));
            None
        }
    }
}

/// The type itself, or what a `Result` holds.
fn tensor_in<'a>(written: &'a Type, generics: &GenericNames) -> Option<&'a Type> {
    if matches!(generics.host_ty(written), HostTy::Tensor(_)) {
        return Some(written);
    }
    let Type::Path(path) = written else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Result")?;
    let PathArguments::AngleBracketed(list) = &last.arguments else { return None };
    list.args.iter().find_map(|arg| match arg {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

fn first_argument(written: &mut Type) -> Option<&mut Type> {
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

/// Whether an expression is a variable, perhaps in `Ok(..)`.
fn names(value: &TokenStream, local: &Ident) -> bool {
    let tokens: Vec<TokenTree> = value.clone().into_iter().collect();
    match &tokens[..] {
        [TokenTree::Ident(ident)] => ident == local,
        [TokenTree::Group(group)] => names(&group.stream(), local),
        [TokenTree::Ident(ok), TokenTree::Group(group)] => ok == "Ok" && names(&group.stream(), local),
        _ => false,
    }
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
