//! Plans as text for people and snapshots: a line per kernel.

use super::{Attention, Expr, Kernel, Kind, LeafSource, Matmul, Plan, Products, Step, StmtId, Store};
use crate::op::Literal;
use crate::types::{Dim, Sym};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A plan, a line per step: `k0: map[n] y = add(mul(x, 2), b)`.
///
/// Values that several others use are named first; everything else stands where it is used.
pub fn plan(plan: &Plan) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        let line = match step {
            Step::Kernel(k) => format!("{}: {}", k.name, kernel(plan, k)),
            Step::Matmul(m) => format!("{}: {}", m.epilogue.name, matmul(plan, m)),
        };
        writeln!(text, "{line}").expect("writing to a string succeeds");
    }
    for attention in &plan.attention {
        writeln!(text, "{}", self::attention(plan, attention)).expect("writing to a string succeeds");
    }
    for fused in &plan.fused {
        let causal = if fused.is_causal { ", causal" } else { "" };
        let line = format!("{}: attention{causal} of {}", fused.score.name, kernel(plan, &fused.score));
        writeln!(text, "{line}").expect("writing to a string succeeds");
        if let Some(back) = &fused.back {
            let names = format!("{}, {}", back.of_queries.name, back.of_keys.name);
            let line = format!("{names}: back from step {} of {}", back.first, kernel(plan, &back.of_keys));
            writeln!(text, "{line}").expect("writing to a string succeeds");
        }
        if let Some(drops) = fused.drops() {
            writeln!(text, "{}: what is kept of the weights", drops.program.name)
                .expect("writing to a string succeeds");
        }
    }
    for products in &plan.products {
        let line = format!("{}: {}", products.program.name, self::products(plan, products));
        writeln!(text, "{line}").expect("writing to a string succeeds");
    }
    for small in &plan.small {
        let names: Vec<&str> = small.steps(plan).map(|kernel| kernel.name.as_str()).collect();
        writeln!(text, "{}: {}", small.name, names.join(", ")).expect("writing to a string succeeds");
    }
    text
}

/// Attention, by the kernels it is made of: `attention: k0_matmul, k1_max, k2_matmul`.
pub fn attention(plan: &Plan, attention: &Attention) -> String {
    let (scores, weights, values) = attention.steps(plan);
    format!("attention: {}, {}, {}", scores.epilogue.name, weights.name, values.epilogue.name)
}

/// One kernel: how it walks its domain, then what it computes.
pub fn kernel(plan: &Plan, kernel: &Kernel) -> String {
    format!("{} {}", domain(plan, kernel), Body::of(plan, kernel).text())
}

/// A product of matrices: its extents, then what it and its epilogue compute.
pub fn matmul(plan: &Plan, matmul: &Matmul) -> String {
    let mut body = Body::of(plan, &matmul.epilogue);
    body.products = vec![operands(plan, matmul)];
    format!("{} {}", product(plan, matmul), body.text())
}

/// Products that one kernel may make: their extents, then what it computes.
pub fn products(plan: &Plan, products: &Products) -> String {
    let mut body = Body::of(plan, &products.program);
    body.products = products.steps(plan).map(|matmul| operands(plan, matmul)).collect();
    let extents = products.steps(plan).map(|matmul| product(plan, matmul)).next().unwrap_or_default();
    format!("{} x {extents} {}", products.count, body.text())
}

/// A product of matrices and what is multiplied: `matmul(x, w)`.
fn operands(plan: &Plan, matmul: &Matmul) -> String {
    let name = |operand: &super::Operand| &plan.bufs[operand.buf.0 as usize].name;
    format!("matmul({}, {})", name(&matmul.a), name(&matmul.b))
}

/// The extents of a product: `matmul[b, m, n, k]`.
pub fn product(plan: &Plan, matmul: &Matmul) -> String {
    let extents = [matmul.batch.as_slice(), &[matmul.m.clone(), matmul.n.clone(), matmul.k.clone()]].concat();
    format!("matmul[{}]", dims(plan, &extents))
}

/// How a kernel walks its domain: `map[n]`, `row[b | d]` with the reduced axes behind the bar.
pub fn domain(plan: &Plan, kernel: &Kernel) -> String {
    let kind = match kernel.kind {
        Kind::Map => "map",
        Kind::Row => "row",
        Kind::Column => "column",
        Kind::Line => "line",
    };
    let (outer, inner) = kernel.domain.split_at(kernel.domain.len() - kernel.reduced as usize);
    let bar = if inner.is_empty() { "" } else { " | " };
    format!("{kind}[{}{bar}{}]", dims(plan, outer), dims(plan, inner))
}

/// A formula with the names of its symbols.
pub fn dim(plan: &Plan, formula: &Dim) -> String {
    let name = |s: Sym| plan.syms.get(s.0 as usize).map_or_else(|| format!("s{}", s.0), |def| def.name.clone());
    formula.display(&name).to_string()
}

fn dims(plan: &Plan, formulas: &[Dim]) -> String {
    formulas.iter().map(|d| dim(plan, d)).collect::<Vec<_>>().join(", ")
}

/// Prints statements, the shared ones by name.
struct Body<'a> {
    plan: &'a Plan,
    kernel: &'a Kernel,
    uses: BTreeMap<StmtId, usize>,
    products: Vec<String>,
}

impl<'a> Body<'a> {
    fn of(plan: &'a Plan, kernel: &'a Kernel) -> Self {
        let mut uses = BTreeMap::new();
        let read = kernel.stmts.iter().flat_map(|s| s.expr.operands());
        for used in read.chain(kernel.stores.iter().flat_map(|s| kernel.store_operands(s))) {
            *uses.entry(used).or_insert(0) += 1;
        }
        Body { plan, kernel, uses, products: vec![] }
    }

    fn text(&self) -> String {
        let shared = self.kernel.ids().filter(|s| self.is_named(*s));
        let mut parts: Vec<String> = shared.map(|s| format!("{} = {}", self.name(s), self.expression(s))).collect();
        parts.extend(self.kernel.stores.iter().map(|s| self.store(s)));
        parts.join("; ")
    }

    fn store(&self, store: &Store) -> String {
        let target = &self.plan.bufs[store.to.buf.0 as usize].name;
        let value = self.value(store.value);
        match &store.scatter {
            None => format!("{target} = {value}"),
            Some(s) => format!("{target}[{}] {}= {value}", self.value(s.index), if s.add { "+" } else { "" }),
        }
    }

    fn is_named(&self, s: StmtId) -> bool {
        let expr = &self.kernel.stmt(s).expr;
        let is_trivial = expr.is_uniform() || matches!(expr, Expr::Load(_) | Expr::Product(_));
        !is_trivial && self.uses.get(&s).copied().unwrap_or(0) > 1
    }

    fn name(&self, s: StmtId) -> String {
        self.kernel.stmt(s).name.clone().unwrap_or_else(|| format!("t{}", s.0))
    }

    fn value(&self, s: StmtId) -> String {
        if self.is_named(s) { self.name(s) } else { self.expression(s) }
    }

    fn expression(&self, s: StmtId) -> String {
        let call = |name: &str, args: &[StmtId]| {
            format!("{name}({})", args.iter().map(|a| self.value(*a)).collect::<Vec<_>>().join(", "))
        };
        let stmt = self.kernel.stmt(s);
        match &stmt.expr {
            Expr::Load(leaf) => self.leaf(*leaf),
            Expr::Gather { leaf, index } => format!("{}[{}]", self.leaf(*leaf), self.value(*index)),
            Expr::Const(Literal::Float(v)) => format!("{v}"),
            Expr::Const(Literal::Int(v)) => format!("{v}"),
            Expr::Const(Literal::Bool(v)) => format!("{v}"),
            Expr::Scalar(k) => format!("scalar{k}"),
            Expr::Size(formula) => dim(self.plan, formula),
            Expr::Apply(op, args) => call(op.name, args),
            Expr::Cast(x) => call(stmt.dtype.name(), &[*x]),
            Expr::Reduce(reduction, x) => call(&format!("{reduction:?}").to_lowercase(), &[*x]),
            Expr::Scan(reduction, x) => call(&format!("scan_{reduction:?}").to_lowercase(), &[*x]),
            Expr::Uniform(draw, at) => call(&format!("uniform{draw}"), &[*at]),
            Expr::Normal(draw, at) => call(&format!("normal{draw}"), &[*at]),
            Expr::Product(n) => self.products.get(*n as usize).cloned().unwrap_or_else(|| "product".to_owned()),
        }
    }

    fn leaf(&self, leaf: u32) -> String {
        match &self.kernel.leaves[leaf as usize].source {
            LeafSource::Buf(buf) => self.plan.bufs[buf.0 as usize].name.clone(),
            LeafSource::Index(_) => "position".to_owned(),
        }
    }
}
