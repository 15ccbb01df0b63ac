//! Which tensors a function gives up to its launch, so that a result may take over their storage.
//!
//! An owned parameter is given up if nothing reads it behind the launch, a `&mut` one if it gets its new value there. That
//! can be told in a function that is one graph and whose host code does not name the tensor: elsewhere a loop may come
//! back to it, or host code hold a reference. Whether anything else holds the storage is seen when it runs.

use super::signature::{Signature, Taken};
use crate::parse::{Launch, Step};
use proc_macro2::{Ident, TokenStream, TokenTree};

/// For each input of the one launch whether it is given up; empty where none is.
pub fn given(body: &[Step], signature: &Signature) -> Vec<bool> {
    let Some((before, launch, after)) = only_launch(body) else { return vec![] };
    let gives = |input: &TokenStream| {
        let Some((name, taken)) = parameter(input, signature) else { return false };
        let unseen = !before.iter().any(|step| may_keep(step, name));
        unseen
            && match taken {
                Taken::Owned => is_shadowed(launch, name) || !after.iter().any(|step| mentions(step, name)),
                Taken::Exclusive => is_written_first(after, name),
                Taken::Shared => false,
            }
    };
    let given: Vec<bool> = launch.inputs.iter().map(gives).collect();
    if given.contains(&true) { given } else { vec![] }
}

/// Whether a body is one launch, without host control flow.
pub fn is_one_launch(body: &[Step]) -> bool {
    only_launch(body).is_some()
}

/// The one launch of a body without host control flow, and what comes before and after.
fn only_launch(body: &[Step]) -> Option<(&[Step], &Launch, &[Step])> {
    let at = body.iter().position(|step| matches!(step, Step::Launch(_)))?;
    let (before, after) = (&body[..at], &body[at + 1..]);
    let other = |step: &Step| matches!(step, Step::Launch(_) | Step::Loop(_) | Step::Branch(_) | Step::Nest(_));
    let Step::Launch(launch) = &body[at] else { return None };
    (!before.iter().chain(after).any(other)).then_some((before, launch, after))
}

/// The parameter an input is, if it is nothing more.
fn parameter<'a>(input: &TokenStream, signature: &'a Signature) -> Option<(&'a Ident, Taken)> {
    let mut tokens = input.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Ident(ident)), None) => signature.parameter(&ident),
        _ => None,
    }
}

/// Whether a step before the launch may hold on to a tensor; reading a number of it does not.
fn may_keep(step: &Step, name: &Ident) -> bool {
    match step {
        Step::Size(_) | Step::Scalar { .. } => false,
        Step::Host(tokens) => !rebinds(tokens, name) && mentions(step, name),
        _ => mentions(step, name),
    }
}

/// Whether a statement is `let mut x = x;`, as a parameter that is written `mut x` has it.
fn rebinds(tokens: &TokenStream, name: &Ident) -> bool {
    tokens.clone().into_iter().all(|token| match token {
        TokenTree::Ident(ident) => ident == "let" || ident == "mut" || ident == *name,
        TokenTree::Punct(punct) => matches!(punct.as_char(), '=' | ';'),
        TokenTree::Group(_) | TokenTree::Literal(_) => false,
    })
}

/// Whether a result takes the name of the tensor, so that what follows means the result.
fn is_shadowed(launch: &Launch, name: &Ident) -> bool {
    launch.outs.iter().any(|out| out.local == *name)
}

/// Whether the first that is done with a tensor is that it gets another value.
fn is_written_first(steps: &[Step], name: &Ident) -> bool {
    let first = steps.iter().find(|step| mentions(step, name));
    matches!(first, Some(Step::Write { target, value }) if target == name && !has(value, name))
}

fn mentions(step: &Step, name: &Ident) -> bool {
    match step {
        Step::Host(tokens) | Step::Value(tokens) => has(tokens, name),
        Step::Capture { value, .. } | Step::Scalar { value, .. } => has(value, name),
        Step::Size(size) => has(&size.of, name),
        Step::Write { target, value } => target == name || has(value, name),
        Step::Launch(_) | Step::Loop(_) | Step::Branch(_) | Step::Nest(_) => true,
    }
}

/// Whether tokens have a name in them, or a text that may have it in braces.
fn has(tokens: &TokenStream, name: &Ident) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *name,
        TokenTree::Group(group) => has(&group.stream(), name),
        TokenTree::Literal(literal) => literal.to_string().contains(&name.to_string()),
        TokenTree::Punct(_) => false,
    })
}
