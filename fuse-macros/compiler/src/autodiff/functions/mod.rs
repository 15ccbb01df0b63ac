//! What `grad(w, b)` asks for beside a function: `value_and_grad` for a result of rank 0 or a tuple that begins with one, and
//! `vjp` for any; from `grad(order = 2, ..)` on `hvp`, too.
//!
//! The one graph of a function is replaced by that of forward and backward; its host code stays as it is. A function of
//! several graphs, or of none, is followed on the eager tape.

mod joint;
mod one_graph;
mod reader;
mod signature;
mod structure;

use super::{Cut, Seed};
use crate::diag::Diagnostics;
use crate::graph::Place;
use crate::parse::{Function, Program};
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use reader::Reader;
use syn::Signature;

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
    /// Those that the result has none for. Bounds that are never met have rustc say why at a call.
    pub refused: Vec<Refused>,
}

/// A function that the result has no gradients for.
pub struct Refused {
    /// What it is called.
    pub name: &'static str,
    /// Its head.
    pub signature: Signature,
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
        refused: refused.into_iter().map(|form| reader.refused(form)).collect(),
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
