//! The derivatives of the graphs of a function that a tape follows, across its graph breaks if it has any.

use super::split::{self, Attended, Pair};
use crate::op::{Build, Val};
use crate::parse::{Function, GenericNames, HostTy, Launch, Piece, Program, Step, parameter_name};
use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::FnArg;

/// For each graph of the function its forward and backward, if cotangents of these parameters go through it. What does not
/// come from another parameter as it was given may depend on them.
pub fn run(program: &Program, wanted: &[Ident], memory: f64, attended: Attended<'_>) -> Vec<Option<Pair>> {
    let mut launches = vec![None; program.segments.len()];
    visit(&program.body, &mut |step| {
        if let Step::Launch(launch) = step {
            launches[launch.segment] = Some(launch.clone());
        }
    });
    let pair = |(segment, launch): (usize, Option<Launch>)| {
        let (graph, launch) = (&program.segments[segment], launch?);
        let is_float = |val: &Val| graph.ty(*val).dtype.is_float();
        let may_depend = |k: usize| launch.params[k].as_ref().is_none_or(|param| wanted.contains(param));
        let wrt = (0..launch.inputs.len()).filter(|&k| is_float(&graph.inputs[k]) && may_depend(k));
        let is_used = |k: usize| !is_only_read(&program.body, &launch.outs[k].local);
        let seeds = (0..graph.outs.len()).filter(|&k| is_float(&graph.outs[k]) && is_used(k));
        let numbers = |list: Vec<usize>| list.into_iter().map(|k| k as u32).collect::<Vec<u32>>();
        split::run(graph, &numbers(wrt.collect()), &numbers(seeds.collect()), memory, attended)
    };
    launches.into_iter().enumerate().map(pair).collect()
}

/// The tensors among the parameters whose gradients are not wanted.
pub fn constants(function: &Function, wanted: &[Ident]) -> Vec<Ident> {
    let generics = GenericNames::read(function.outer.into_iter().chain([&function.sig.generics]));
    let inputs = function.sig.inputs.iter().enumerate();
    let constant = |(index, input): (usize, &FnArg)| match input {
        FnArg::Typed(typed) if matches!(generics.host_ty(&typed.ty).behind_refs(), HostTy::Tensor(_)) => {
            Some(parameter_name(index, typed)).filter(|name| !wanted.contains(name))
        }
        _ => None,
    };
    inputs.filter_map(constant).collect()
}

/// Every step, those in the blocks of host control flow included.
fn visit<'a>(steps: &'a [Step], see: &mut impl FnMut(&'a Step)) {
    fn pieces<'a>(list: &'a [Piece], see: &mut impl FnMut(&'a Step)) {
        for piece in list {
            match piece {
                Piece::Tokens(_) => {}
                Piece::Block(steps) => visit(steps, see),
                Piece::Braces(inner) => pieces(inner, see),
            }
        }
    }
    for step in steps {
        see(step);
        if let Step::Nest(list) = step {
            pieces(list, see);
        }
    }
}

/// Whether nothing is done with a result but that its values are read, as constants.
fn is_only_read(body: &[Step], local: &Ident) -> bool {
    fn heads(list: &[Piece], check: &mut impl FnMut(&TokenStream)) {
        for piece in list {
            match piece {
                Piece::Tokens(tokens) => check(tokens),
                Piece::Block(_) => {}
                Piece::Braces(inner) => heads(inner, check),
            }
        }
    }
    let mut only = true;
    let mut check = |tokens: &TokenStream| only &= reads_only(tokens.clone(), local);
    visit(body, &mut |step| match step {
        Step::Host(tokens) | Step::Value(tokens) => check(tokens),
        Step::Capture { value, .. } | Step::Scalar { value, .. } | Step::Write { value, .. } => check(value),
        Step::Launch(launch) => launch.inputs.iter().for_each(&mut check),
        Step::Nest(list) => heads(list, &mut check),
        Step::Size(_) | Step::Loop(_) | Step::Branch(_) => {}
    });
    only
}

/// Whether a variable stands in tokens only as `local.item()` or `local.to_vec()`.
fn reads_only(tokens: TokenStream, local: &Ident) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens.iter().enumerate().all(|(k, token)| match token {
        TokenTree::Ident(ident) if ident == local => match (tokens.get(k + 1), tokens.get(k + 2)) {
            (Some(TokenTree::Punct(dot)), Some(TokenTree::Ident(method))) => {
                dot.as_char() == '.' && (method == "item" || method == "to_vec")
            }
            _ => false,
        },
        TokenTree::Group(group) => reads_only(group.stream(), local),
        _ => true,
    })
}
