//! A function that is one graph, and what of it is differentiated.

use super::reader::Wanted;
use super::structure::Leaf;
use crate::autodiff::{Request, Seed};
use crate::graph::Graph;
use crate::op::Val;
use crate::parse::{Entry, Launch, Program, Returned, Step};
use proc_macro2::Ident;

/// A function that is one graph.
#[derive(Clone, Copy)]
pub struct OneGraph<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Where its launch stands among the steps.
    pub at: usize,
    /// That launch.
    launch: &'a Launch,
}

/// What is differentiated of a function that is one graph.
pub struct Weighted {
    /// The tensors.
    pub leaves: Vec<Leaf>,
    /// Where they are in the graph.
    pub vals: Vec<Val>,
    /// Checks of the lists of cotangents.
    pub counts: Vec<Entry>,
}

impl<'a> OneGraph<'a> {
    /// `None` where host code comes between graphs.
    pub fn of(program: &'a Program) -> Option<OneGraph<'a>> {
        let launches = |step: &Step| matches!(step, Step::Launch(_) | Step::Loop(_) | Step::Branch(_) | Step::Nest(_));
        let mut found = program.body.iter().enumerate().filter(|(_, step)| launches(step));
        let (Some((at, Step::Launch(launch))), None) = (found.next(), found.next()) else { return None };
        let has_value = matches!(program.body.last(), Some(Step::Value(_)));
        has_value.then_some(OneGraph { graph: program.segments.get(launch.segment)?, at, launch })
    }

    /// Where a tensor is in the graph, if it is there.
    pub fn val(&self, source: &Returned) -> Option<Val> {
        match source {
            Returned::Result { segment, out } if *segment == self.launch.segment => Some(self.graph.outs[*out]),
            Returned::Parameter(name) => self.input(name).map(|input| self.graph.inputs[input]),
            _ => None,
        }
    }

    /// Which input a parameter is.
    pub fn input(&self, name: &Ident) -> Option<usize> {
        self.launch.params.iter().position(|param| param.as_ref() == Some(name))
    }

    /// The graph with what is differentiated behind its results, and the request for that.
    pub fn weighted(&self, vals: &[Val], wanted: &[Wanted], seed: Seed) -> (Graph, Request) {
        let mut graph = self.graph.clone();
        let results = graph.outs.len();
        graph.outs.extend(vals);
        let seeds = (0..graph.outs.len()).map(|out| if out < results { Seed::Nothing } else { seed });
        let request =
            Request { wrt: wanted.iter().filter_map(|wanted| wanted.input).collect(), seeds: seeds.collect() };
        (graph, request)
    }
}
