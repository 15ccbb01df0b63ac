//! What became of a function: its graphs, their kernels with the ops fused in them, the bytes they move, and its breaks.
//!
//! The macro writes the report at compile time, the runtime reads it back; it needs neither a GPU nor a run.

mod bytes;
mod html;

use crate::diag::Break;
use crate::graph::Place;
use crate::options::{GRAPHS_IN_ALL, GRAPHS_OF_A_PLAN, Mode};
use crate::plan::abi::Texts;
use crate::plan::{Attention, BufId, Plan, Step, print};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What became of a compiled function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    function: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    graphs: Vec<GraphReport>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gradients: Vec<GraphReport>,
    breaks: Vec<Break>,
}

/// One graph: the tensor ops between two breaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphReport {
    /// Its name.
    pub name: String,
    /// Its kernels in launch order.
    pub kernels: Vec<KernelReport>,
    /// How many launches one call takes; a product of matrices by a library and what is left of its epilogue are two.
    pub launches: usize,
    /// Bytes that op by op execution would have written and read again, as a formula in the dims.
    pub saved: String,
    /// Kernels that run together where the device does so: some rows at a time, and what they hand on then never lies in memory as a
    /// whole; products of one left operand; small kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<String>,
    /// Of the forward graph of a graph that is walked back over: what it keeps for the backward one, and what that computes
    /// again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// Ops that stayed apart, and why.
    pub missed: Vec<MissedFusion>,
}

/// One kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    /// Its entry point.
    pub name: String,
    /// How it walks its domain, such as `row[B | D]` with the reduced dims behind the bar.
    pub domain: String,
    /// What it computes, in one line.
    pub program: String,
    /// The places of the ops in it, in program order.
    pub ops: Vec<Place>,
    /// Bytes read, as a formula in the dims.
    pub read: String,
    /// Bytes written, as a formula in the dims.
    pub written: String,
    /// The most variants of it that are compiled for one GPU, whatever sizes and layouts it meets.
    #[serde(default)]
    pub variants: usize,
}

/// Two ops that might have shared a kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MissedFusion {
    /// Why they do not.
    pub reason: String,
    /// The op that starts a kernel of its own.
    pub place: Place,
}

impl Explanation {
    /// The report of a function from its plans, one a graph in program order, and its breaks.
    pub fn new(function: impl Into<String>, plans: &[Plan], breaks: Vec<Break>) -> Self {
        let graphs = plans.iter().map(graph).collect();
        Explanation { function: function.into(), notes: vec![], graphs, gradients: vec![], breaks }
    }

    /// The same with the plans of the functions that give gradients.
    pub fn with_gradients(self, plans: &[Plan]) -> Self {
        Explanation { gradients: plans.iter().map(graph).collect(), ..self }
    }

    /// The same with what a graph of this name keeps.
    pub fn keeping(mut self, name: &str, kept: &[String]) -> Self {
        let found = self.gradients.iter_mut().filter(|graph| graph.name == name);
        found.for_each(|graph| graph.kept = kept.to_vec());
        self
    }

    /// The same with what its mode means for a call.
    pub fn in_mode(mut self, mode: Mode) -> Self {
        if mode.uses_graphs() {
            self.notes.push(format!(
                "a graph that is called again with the same layouts is launched as one CUDA graph; {GRAPHS_OF_A_PLAN} of them are \
                 kept of a graph and {GRAPHS_IN_ALL} in all, beyond that launches are made one by one"
            ));
        }
        self
    }

    /// The report as text that [`Explanation::from_text`] reads back.
    pub fn to_text(&self) -> String {
        ron::to_string(self).expect("a report is plain data")
    }

    /// The report behind a text of [`Explanation::to_text`].
    ///
    /// # Panics
    /// If it is none.
    pub fn from_text(text: &str) -> Self {
        ron::from_str(text).expect("the text was written by this version")
    }

    /// The name of the function.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// The graphs in program order.
    pub fn graphs(&self) -> &[GraphReport] {
        &self.graphs
    }

    /// The graphs of forward and backward of `value_and_grad` and `vjp`, where they were asked for. They are not among
    /// [`Explanation::graphs`], for a call of the function does not run them.
    pub fn gradients(&self) -> &[GraphReport] {
        &self.gradients
    }

    /// The kernels of all graphs in launch order.
    pub fn kernels(&self) -> Vec<&KernelReport> {
        self.graphs.iter().flat_map(|g| &g.kernels).collect()
    }

    /// How many launches one call takes that goes through every graph once.
    pub fn launches(&self) -> usize {
        self.graphs.iter().map(|g| g.launches).sum()
    }

    /// Where host code runs between graphs.
    pub fn breaks(&self) -> &[Break] {
        &self.breaks
    }

    /// The graphs as a page of their own, a box a kernel, for people who would rather look.
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}

fn graph(plan: &Plan) -> GraphReport {
    let missed = plan.decisions.iter().filter(|d| !d.fused);
    GraphReport {
        name: plan.name.clone(),
        kernels: plan.steps.iter().map(|step| step_report(plan, step)).collect(),
        launches: plan.launches(),
        saved: bytes::saved(plan),
        kept: vec![],
        together: together(plan),
        missed: missed.map(|d| MissedFusion { reason: d.reason.clone(), place: place(plan, d.place) }).collect(),
    }
}

/// What runs together, and how many launches that makes of a call.
fn together(plan: &Plan) -> Vec<String> {
    let mut lines: Vec<String> = plan.attention.iter().map(|attention| on_a_processor(plan, attention)).collect();
    lines.extend(plan.fused.iter().map(|fused| {
        let (scores, weights, values) = fused.parts(plan);
        let last = if fused.values.is_some() { weights } else { &values.epilogue };
        let (first, last) = (&scores.epilogue.name, &last.name);
        let forward = format!("`{first}` to `{last}` are one kernel of halves or floats, `{}`", fused.score.name);
        let back = fused.back.as_ref().map(|back| {
            let (of_values, .., of_keys) = back.steps(plan);
            let (first, last) = (&of_values.epilogue.name, &of_keys.epilogue.name);
            let names = format!("`{}` and `{}`", back.of_queries.name, back.of_keys.name);
            format!(", and back, `{first}` to `{last}`, two, {names}")
        });
        format!("{HOPPER} {forward}{}; the matrices between are never in memory", back.unwrap_or_default())
    }));
    if !plan.fused.is_empty() {
        lines.push(format!("{HOPPER} that makes {}", count(plan.launches_where_fused(), "launch")));
    }
    lines.extend(plan.products.iter().map(|products| {
        let names: Vec<String> = products.steps(plan).map(|matmul| format!("`{}`", matmul.epilogue.name)).collect();
        let name = &products.program.name;
        format!("{PRODUCTS} {} are one kernel, `{name}`, which reads their left operand once", names.join(" and "))
    }));
    lines.extend(plan.small.iter().map(|small| {
        let names: Vec<String> = small.steps(plan).map(|kernel| format!("`{}`", kernel.name)).collect();
        format!("on a GPU, {} are one launch, `{}`, where each has few points", names.join(" and "), small.name)
    }));
    if !plan.products.is_empty() || !plan.small.is_empty() {
        lines.push(format!("all that makes {}", count(plan.launches_where_together(), "launch")));
    }
    lines
}

const HOPPER: &str = "on a GPU of compute capability 9.0";
const PRODUCTS: &str = "on a GPU, of few rows and on tensor cores of 9.0,";

fn on_a_processor(plan: &Plan, attention: &Attention) -> String {
    let name = |buf: BufId| &plan.bufs[buf.0 as usize].name;
    let (scores, weights) = (name(attention.scores), name(attention.weights));
    format!("{}; on a processor `{scores}` and `{weights}` stay in its caches", print::attention(plan, attention))
}

fn step_report(plan: &Plan, step: &Step) -> KernelReport {
    let (domain, program, variants) = match step {
        Step::Kernel(kernel) => (print::domain(plan, kernel), print::kernel(plan, kernel), Texts::most(kernel)),
        Step::Matmul(matmul) => {
            (print::product(plan, matmul), print::matmul(plan, matmul), Texts::most_of_product(matmul.dtype))
        }
    };
    let kernel = step.program();
    let mut ops: Vec<Place> = kernel.ops.iter().map(|p| place(plan, *p)).collect();
    ops.dedup();
    let (read, written) = bytes::moved(plan, step);
    KernelReport { name: kernel.name.clone(), domain, program, ops, read, written, variants }
}

fn place(plan: &Plan, index: u32) -> Place {
    plan.places.get(index as usize).cloned().unwrap_or_default()
}

/// A count with its noun.
fn count(n: usize, noun: &str) -> String {
    let plural = match (n, noun) {
        (1, _) => "",
        (_, "launch") => "es",
        _ => "s",
    };
    format!("{n} {noun}{plural}")
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            count(self.graphs.len(), "graph"),
            count(self.kernels().len(), "kernel"),
            count(self.launches(), "launch"),
            count(self.breaks.len(), "break"),
        ];
        writeln!(f, "{}: {}", self.function, counts.join(", "))?;
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        for graph in self.graphs.iter().chain(&self.gradients) {
            write!(f, "\n{graph}")?;
        }
        for b in &self.breaks {
            writeln!(f, "\nbreak {} at {}:{}:{}: {}", b.code, b.file, b.line, b.column, b.reason)?;
            writeln!(f, "  help: {}", b.hint)?;
        }
        Ok(())
    }
}

impl fmt::Display for GraphReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "graph {}: {}", self.name, count(self.launches, "launch"))?;
        for kernel in &self.kernels {
            write!(f, "{kernel}")?;
        }
        if self.saved != "0" {
            writeln!(f, "  fusion saved {} bytes of writes and reads", self.saved)?;
        }
        for line in self.kept.iter().chain(&self.together) {
            writeln!(f, "  {line}")?;
        }
        if let Some(most) = self.kernels.iter().map(|kernel| kernel.variants).max() {
            writeln!(f, "  at most {} of a kernel for each GPU, whatever sizes there are", count(most, "variant"))?;
        }
        for missed in &self.missed {
            writeln!(f, "  not fused: {}{}", missed.reason, at(&missed.place))?;
        }
        Ok(())
    }
}

impl fmt::Display for KernelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}  {}", self.name, self.domain)?;
        for place in self.ops.iter().filter(|p| !p.text.is_empty()) {
            let text = place.text.split_whitespace().collect::<Vec<_>>().join(" ");
            writeln!(f, "    {}:{}  {text}", place.file, place.line)?;
        }
        writeln!(f, "    reads {} bytes, writes {} bytes", self.read, self.written)
    }
}

fn at(place: &Place) -> String {
    if place.file.is_empty() { String::new() } else { format!(" ({}:{}  {})", place.file, place.line, place.text) }
}
