//! Reads what gradients of a function are for and of, and reports where there are none.

use super::Form;
use super::one_graph::{OneGraph, Weighted};
use super::structure::{Structure, first_argument};
use crate::autodiff::{Mistake, Seed, check};
use crate::diag::Diagnostics;
use crate::graph::Place;
use crate::parse::{Function, GenericNames, HostTy, Program, TensorTy, parameter_name};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{FnArg, ReturnType, Type, TypePath};

/// A parameter whose gradient is wanted.
pub struct Wanted {
    /// Its name.
    pub name: Ident,
    /// Its element type and rank.
    pub ty: TensorTy,
    /// The tensor's type as written.
    pub written: TokenStream,
    /// Which input of the graph it is, if the graph reads it.
    pub input: Option<u32>,
}

/// A function whose gradients are wanted, as far as they are concerned.
pub struct Reader<'a> {
    /// The function.
    pub function: &'a Function<'a>,
    /// What parsing has made of it.
    pub program: &'a Program,
    /// What its gradients are for.
    pub wanted: Vec<Wanted>,
    /// What they are of.
    pub result: Structure,
    /// The result's type as written, without the `Result` around it.
    pub written: &'a Type,
    /// The function as one graph, if it is one.
    graph: Option<OneGraph<'a>>,
}

/// A parameter that reaches the results only through an op without a gradient.
pub struct Undefined<'a> {
    parameter: &'a Ident,
    op: &'static str,
    place: &'a Place,
}

impl<'a> Reader<'a> {
    /// Reads it; `None` after a mistake.
    pub fn read(
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
    pub fn weighted(&self, form: Form) -> Option<(OneGraph<'a>, Weighted)> {
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
    pub fn undefined(&self, form: Form) -> Vec<Undefined<'_>> {
        let Some((one, found)) = self.weighted(form) else { return vec![] };
        let undefined = |parameter| {
            let (graph, request) = one.weighted(&found.vals, std::slice::from_ref(parameter), Seed::Input);
            match check(&graph, &request) {
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
    pub fn report(&self, found: &Undefined, diag: &mut Diagnostics) {
        let Undefined { parameter: name, op, place } = *found;
        let message = format!("`{op}` has no gradient, and `{name}` reaches the result only through it");
        let at =
            super::found(self.function.block.to_token_stream(), op, place).unwrap_or_else(|| name.to_token_stream());
        let help = format!("leave `{name}` out of `grad(..)`, or compute with what has a gradient");
        diag.error(at, message, Some(&help));
    }
}

/// The parameters but `self`, and their types.
pub fn parameters<'a>(function: &'a Function) -> impl Iterator<Item = (Ident, &'a Type)> {
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
