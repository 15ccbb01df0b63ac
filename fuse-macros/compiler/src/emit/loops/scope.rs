//! What a kernel's loops call their operands and values, and how a statement is written in Rust.

use crate::emit::names::Names;
use crate::emit::substitute;
use crate::op::{Literal, Op};
use crate::plan::abi::{divides_integers, leaf_dtype, store_dtype};
use crate::plan::{Expr, Kernel, LeafSource, Level, Phases, Plan, StmtId};
use crate::types::DType;
use std::collections::{BTreeMap, BTreeSet};

/// Names of one kernel.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    pub(super) plan: &'a Plan,
    pub(super) kernel: &'a Kernel,
    pub(super) phases: Phases,
    /// Slices and gathers of the leaves.
    pub(super) leaves: Vec<String>,
    /// Slices and scatters of the stores.
    pub(super) stores: Vec<String>,
    /// The slice of the product that an epilogue follows.
    pub(super) product: Option<(StmtId, String)>,
    /// Random draws, by their numbers in the plan.
    draws: BTreeMap<u32, String>,
    values: Vec<String>,
    /// Whether a loop runs over neighbouring rows or columns, of which each has values of its own.
    neighbours: bool,
}

/// What the loops use themselves, and Rust's keywords.
const RESERVED: &str = "m rt i n row start ins outs sums self Self Element as async await break const continue crate dyn else enum extern false fn for gen if \
    impl in let loop match mod move mut pub ref return static struct super trait true try type unsafe use where while yield abstract become box \
    do final macro override priv typeof unsized virtual union f8e4m3 f16 f32 f64 bf16 i32 i64 u8 bool";

impl<'a> Scope<'a> {
    pub(super) fn new(plan: &'a Plan, kernel: &'a Kernel) -> Self {
        let mut names = Names::new(RESERVED);
        let mut fresh = |wanted: &str| names.fresh(wanted, &["_acc", "_block", "_lane", "_lanes"]);
        let values: Vec<String> =
            kernel.stmts.iter().map(|s| fresh(&stem_of(plan, kernel, &s.expr, &s.name))).collect();
        let leaves =
            kernel.leaves.iter().map(|leaf| fresh(&format!("{}_in", source_name(plan, &leaf.source)))).collect();
        let buf = |buf: crate::plan::BufId| &plan.bufs[buf.0 as usize].name;
        let stores = kernel.stores.iter().map(|s| fresh(&format!("{}_out", buf(s.to.buf)))).collect();
        let product = kernel.ids().find(|s| matches!(kernel.stmt(*s).expr, Expr::Product(_)));
        let product = product.map(|s| (s, fresh("product_in")));
        let drawn: BTreeSet<u32> = kernel.stmts.iter().filter_map(|s| Some(s.expr.draw()?.0)).collect();
        let draws = drawn.into_iter().map(|draw| (draw, fresh("draw"))).collect();
        Scope { plan, kernel, phases: Phases::of(kernel), leaves, stores, product, draws, values, neighbours: false }
    }

    /// The same names in a loop over neighbouring columns.
    pub(super) fn of_neighbours(&self) -> Self {
        Scope { neighbours: true, ..self.clone() }
    }

    /// The element type of a leaf in memory.
    pub(super) fn leaf_type(&self, leaf: usize) -> String {
        rust_type(leaf_dtype(self.plan, &self.kernel.leaves[leaf]))
    }

    /// The element type of a store in memory.
    pub(super) fn store_type(&self, store: usize) -> String {
        rust_type(store_dtype(self.plan, &self.kernel.stores[store]))
    }

    /// The lines before any loop that look up where draws start.
    pub(super) fn define_draws(&self) -> impl Iterator<Item = String> {
        self.draws.iter().map(|(draw, name)| format!("let {name}: rt::Draw = ins.draw({draw});"))
    }

    /// The name of a statement's variable.
    pub(super) fn name(&self, s: StmtId) -> &str {
        &self.values[s.0 as usize]
    }

    /// The compute type of a statement's value.
    pub(super) fn ty(&self, s: StmtId) -> String {
        rust_type(self.kernel.stmt(s).dtype.compute())
    }

    /// What the value of a statement is called where it is used.
    pub(super) fn value(&self, s: StmtId) -> String {
        let stmt = self.kernel.stmt(s);
        match &stmt.expr {
            Expr::Const(value) => literal(*value, stmt.dtype),
            _ => self.name(s).to_owned(),
        }
    }

    /// The value of a store in the element type of its buffer.
    pub(super) fn outgoing(&self, store: usize) -> String {
        let target = &self.kernel.stores[store];
        from_compute(store_dtype(self.plan, target), &self.value(target.value))
    }

    /// The line that computes a statement, or nothing where its value needs none.
    pub(super) fn define(&self, s: StmtId) -> Option<String> {
        let stmt = self.kernel.stmt(s);
        if matches!(stmt.expr, Expr::Const(_)) {
            return None;
        }
        let text = self.expression(s);
        let rounded = if stmt.round { round(text, stmt.dtype, &stmt.expr) } else { text };
        Some(format!("let {}: {} = {rounded};", self.name(s), self.ty(s)))
    }

    fn expression(&self, s: StmtId) -> String {
        let stmt = self.kernel.stmt(s);
        let ty = self.ty(s);
        match &stmt.expr {
            Expr::Load(leaf) => self.load(*leaf as usize),
            Expr::Gather { leaf, index } => self.gather(*leaf as usize, *index),
            Expr::Const(_) => self.value(s),
            Expr::Scalar(k) => format!("ins.scalar::<{ty}>({k})"),
            Expr::Size(_) => format!("m::cast::<i64, {ty}>(ins.size({}))", s.0),
            Expr::Apply(op, args) => self.apply(s, *op, args),
            Expr::Cast(x) => convert(&self.ty(*x), &ty, &self.value(*x)),
            Expr::Uniform(draw, at) => {
                convert("f32", &ty, &format!("{}.uniform({})", self.draws[draw], self.value(*at)))
            }
            Expr::Normal(draw, at) => convert("f32", &ty, &format!("{}.normal({})", self.draws[draw], self.value(*at))),
            Expr::Product(_) => format!("{}[i]", self.product.as_ref().expect("an epilogue has a product").1),
            Expr::Reduce(..) | Expr::Scan(..) => unreachable!("the walk of a kernel writes its reductions and scans"),
        }
    }

    fn load(&self, leaf: usize) -> String {
        let element = match self.kernel.leaves[leaf].level {
            Level::Elem => format!("{}[i]", self.leaves[leaf]),
            Level::Row if self.neighbours => format!("{}[i]", self.leaves[leaf]),
            Level::Row | Level::All => format!("ins.row::<{}>({leaf})", self.leaf_type(leaf)),
        };
        to_compute(leaf_dtype(self.plan, &self.kernel.leaves[leaf]), &element)
    }

    fn gather(&self, leaf: usize, index: StmtId) -> String {
        let point = if self.kernel.leaves[leaf].level == Level::Elem { "i" } else { "0" };
        let element = format!("{}.get({point}, {})", self.leaves[leaf], self.index(index));
        to_compute(leaf_dtype(self.plan, &self.kernel.leaves[leaf]), &element)
    }

    /// A computed position as i64.
    pub(super) fn index(&self, s: StmtId) -> String {
        convert(&self.ty(s), "i64", &self.value(s))
    }

    fn apply(&self, s: StmtId, op: Op, args: &[StmtId]) -> String {
        let texts: Vec<String> = args.iter().map(|a| self.value(*a)).collect();
        let dtype = self.kernel.stmt(args[0]).dtype;
        let row = op.scalar.as_ref().expect("only elementwise ops stand in kernels");
        let text = substitute(row.rust_for(dtype), &texts);
        if divides_integers(op, dtype) {
            return format!("{{ if {} == 0 {{ ins.fault({}); }} {text} }}", texts[1], s.0);
        }
        text
    }
}

/// An element type in emitted code.
pub(super) fn rust_type(dtype: DType) -> String {
    match dtype {
        DType::F16 => "::fuse_runtime::prelude::f16".to_owned(),
        DType::BF16 => "::fuse_runtime::prelude::bf16".to_owned(),
        DType::F8E4M3 => "::fuse_runtime::prelude::f8e4m3".to_owned(),
        DType::Compute(n) => format!("<T{n} as Element>::Compute"),
        dtype => dtype.name().to_owned(),
    }
}

/// An element in its compute type.
fn to_compute(dtype: DType, element: &str) -> String {
    if is_stored_narrow(dtype) { format!("Element::to_compute({element})") } else { element.to_owned() }
}

/// A value of the compute type as an element.
pub(super) fn from_compute(dtype: DType, value: &str) -> String {
    match is_stored_narrow(dtype) {
        true => format!("<{} as Element>::from_compute({value})", rust_type(dtype)),
        false => value.to_owned(),
    }
}

/// Whether elements may differ from the values they are computed in.
fn is_stored_narrow(dtype: DType) -> bool {
    dtype.is_narrow() || matches!(dtype, DType::Param(_))
}

/// A conversion between compute types.
pub(super) fn convert(from: &str, to: &str, value: &str) -> String {
    if from == to { value.to_owned() } else { format!("m::cast::<{from}, {to}>({value})") }
}

/// A value rounded to its element type. What comes from memory or enters at the compute type stays as it is.
pub(super) fn round(text: String, dtype: DType, expr: &Expr) -> String {
    let exact = matches!(expr, Expr::Load(_) | Expr::Gather { .. } | Expr::Scalar(_));
    match dtype {
        _ if exact => text,
        DType::F16 => format!("m::round_f16({text})"),
        DType::BF16 => format!("m::round_bf16({text})"),
        DType::F8E4M3 => format!("m::round_f8e4m3({text})"),
        DType::Param(n) => format!("m::round_to::<T{n}>({text})"),
        _ => text,
    }
}

/// A constant in the compute type of an element type, exact to the bit.
pub(super) fn literal(value: Literal, dtype: DType) -> String {
    let float = match value {
        Literal::Float(v) => v,
        Literal::Int(v) => v as f64,
        Literal::Bool(v) => f64::from(u8::from(v)),
    };
    let int = match value {
        Literal::Float(v) => v as i64,
        Literal::Int(v) => v,
        Literal::Bool(v) => i64::from(v),
    };
    let text = match dtype.compute() {
        DType::F32 if (float as f32).is_finite() => format!("{:?}f32", float as f32),
        DType::F32 => format!("f32::from_bits({})", (float as f32).to_bits()),
        DType::F64 => double(float),
        DType::Compute(_) => format!("<{} as Element>::from_f64({})", rust_type(dtype.compute()), double(float)),
        DType::I64 => format!("{int}i64"),
        DType::I32 => format!("{}i32", int as i32),
        DType::U8 => format!("{}u8", int as u8),
        _ => (float != 0.0).to_string(),
    };
    if text.starts_with('-') { format!("({text})") } else { text }
}

fn double(v: f64) -> String {
    if v.is_finite() { format!("{v:?}f64") } else { format!("f64::from_bits({})", v.to_bits()) }
}

fn source_name(plan: &Plan, source: &LeafSource) -> String {
    match source {
        LeafSource::Buf(buf) => plan.bufs[buf.0 as usize].name.clone(),
        LeafSource::Index(_) => "position".to_owned(),
    }
}

fn stem_of(plan: &Plan, kernel: &Kernel, expr: &Expr, name: &Option<String>) -> String {
    match (name, expr) {
        (_, Expr::Load(leaf)) => source_name(plan, &kernel.leaves[*leaf as usize].source),
        (Some(name), _) => name.clone(),
        (None, Expr::Apply(op, _)) => op.name.to_owned(),
        (None, Expr::Reduce(r, _) | Expr::Scan(r, _)) => format!("{r:?}").to_lowercase(),
        (None, Expr::Gather { .. }) => "gathered".to_owned(),
        (None, Expr::Scalar(k)) => format!("scalar{k}"),
        (None, Expr::Size(_)) => "extent".to_owned(),
        (None, Expr::Cast(_)) => "cast".to_owned(),
        (None, Expr::Uniform(..)) => "uniform".to_owned(),
        (None, Expr::Normal(..)) => "normal".to_owned(),
        (None, Expr::Product(_)) => "product".to_owned(),
        (None, Expr::Const(_)) => "constant".to_owned(),
    }
}
