//! The program of forward and backward.

use super::one_graph::{OneGraph, Weighted};
use super::reader::{Reader, Wanted};
use super::structure::Leaf;
use super::{Derived, Form};
use crate::autodiff::{Request, Seed, run};
use crate::graph::Graph;
use crate::parse::{Launch, Out, Program, Returned, Step};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

impl Reader<'_> {
    /// The function of this form.
    pub fn derive(&self, form: Form) -> Derived {
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

    /// The program of forward and backward.
    fn joint(&self, one: OneGraph, found: &Weighted, form: Form, further: &[(Ident, TokenStream)]) -> Program {
        let (graph, request) = one.weighted(&found.vals, &self.wanted, form.seed());
        let results = one.graph.outs.len();
        let mut graph = run(graph, &request);
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
    let mut graph = run(graph, &Request { wrt, seeds });
    graph.outs.drain(gradients);
    graph
}
