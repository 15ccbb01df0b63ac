//! What a kernel's text calls its operands and values, and how a statement is written.

use super::literal::literal;
use crate::emit::names::Names;
use crate::emit::substitute;
use crate::op::{Literal, Op, Reduction};
use crate::plan::abi::{c_type, divides_integers, leaf_dtype, store_dtype};
use crate::plan::{Expr, Kernel, LeafSource, Level, Phases, Plan, StmtId};
use crate::types::DType;

/// What the text and its helpers use themselves, C++ keywords, and CUDA functions that op texts may call.
const RESERVED: &str = "RANK INNER_RANK VEC IDX TEAM ITEMS WHOLE STREAM SPLIT TILE FEW PASSES ACROSS DOWN KEPT LEGS LEFT RIGHT THREADS GROUPS UNROLL SOME THIRDS HALVES SLIM STRIP SHARES LIST part work turn piece value first access accesses at live row rows lane len \
    outer inner u v e i j k m n base block blocks chunk chunks counters fault call failed seed list member item column columns tile tiles product shape left right rights right_0 right_1 right_2 right_3 \
    start end batch of_queries of_keys of_values of_result of_queries_strides of_keys_strides of_values_strides of_result_strides \
    of_gradient of_gradient_strides of_gradient_of_queries of_gradient_of_queries_strides of_gradient_of_keys of_gradient_of_keys_strides \
    of_gradient_of_values of_gradient_of_values_strides of_logs of_sums given keeps place to_weight of_weight of_score nullptr \
    HEAD_DEPTH HEAD_COLUMNS HEAD_GROUPS HEAD_KEYS HEAD_ROWS HEAD_PIECES HEAD_THREADS attend to_score found alignas asm auto bool step whole some next more leg arrivals lanes_room turned pack strip strips parts break case catch char class const constexpr continue default delete do double else enum explicit \
    export extern false float for friend goto if inline int long mutable namespace new noexcept operator private protected public \
    register return short signed sizeof static struct switch template this throw true try typedef typeid typename union unsigned using virtual \
    void volatile while abs acos asin atan ceil cos cosh erf exp exp2 expm1 floor fmod log log1p log2 max min pow round rsqrt sin sinh sqrt tan \
    tanh threadIdx blockIdx blockDim gridDim and or not xor signbit isnan isinf isfinite y0 y1 yn j0 j1 jn";

/// Names of one kernel.
pub(super) struct Scope<'a> {
    pub(super) plan: &'a Plan,
    pub(super) kernel: &'a Kernel,
    pub(super) phases: Phases,
    /// Stems of the leaves' names.
    pub(super) leaves: Vec<String>,
    /// Stems of the stores' names.
    pub(super) stores: Vec<String>,
    values: Vec<String>,
    scalars: Vec<(u32, DType, String)>,
}

/// Names that belong to an operand, behind its stem.
const OPERAND: &[&str] = &[
    "_ptr", "_strides", "_axis", "_in", "_out", "_row", "_stage", "_part", "_lanes", "_kept", "_blocks", "_room",
    "_chunk", "_tile", "_next", "_here", "_size",
];

/// How the text of a kind of kernel reaches its operands at the current point.
pub(super) trait Reach {
    /// The value of a leaf.
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String;
    /// The address a gather starts from.
    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String;
    /// Which point of an access this is.
    fn point(&self) -> &'static str {
        "v"
    }
    /// The element of the n-th product.
    fn product(&self, _: u32) -> String {
        unreachable!("only the epilogue of a matmul reads the product")
    }
}

impl<'a> Scope<'a> {
    pub(super) fn new(plan: &'a Plan, kernel: &'a Kernel) -> Self {
        let mut names = Names::new(RESERVED);
        names.reserve(&kernel.name);
        let mut stem = |wanted: &str| names.fresh(wanted, OPERAND);
        let leaves = kernel.leaves.iter().map(|leaf| match &leaf.source {
            LeafSource::Buf(buf) => stem(&plan.bufs[buf.0 as usize].name),
            LeafSource::Index(_) => stem("position"),
        });
        let leaves: Vec<String> = leaves.collect();
        let stores: Vec<String> = kernel.stores.iter().map(|s| stem(&plan.bufs[s.to.buf.0 as usize].name)).collect();
        let (mut values, mut scalars): (Vec<String>, Vec<(u32, DType, String)>) = (vec![], vec![]);
        for stmt in &kernel.stmts {
            let wanted = stmt.name.clone().unwrap_or_else(|| stem_of(&stmt.expr));
            let value = match (&stmt.expr, &stmt.name) {
                (Expr::Load(leaf), _) => leaves[*leaf as usize].clone(),
                (Expr::Scalar(k), _) => match scalars.iter().find(|(n, d, _)| n == k && *d == stmt.dtype.compute()) {
                    Some((_, _, name)) => name.clone(),
                    None => {
                        let name = names.fresh(&wanted, &[]);
                        scalars.push((*k, stmt.dtype.compute(), name.clone()));
                        name
                    }
                },
                _ => names.fresh(&wanted, OPERAND),
            };
            values.push(value);
        }
        // Two loads of one leaf are one value.
        Scope { plan, kernel, phases: Phases::of(kernel), leaves, stores, values, scalars }
    }

    /// The element type of a leaf in memory.
    pub(super) fn leaf_type(&self, leaf: usize) -> &'static str {
        c_type(leaf_dtype(self.plan, &self.kernel.leaves[leaf]))
    }

    /// The element type of a store in memory.
    pub(super) fn store_type(&self, store: usize) -> &'static str {
        c_type(store_dtype(self.plan, &self.kernel.stores[store]))
    }

    /// Whether a leaf is a virtual tensor of positions.
    pub(super) fn is_index(&self, leaf: usize) -> bool {
        matches!(self.kernel.leaves[leaf].source, LeafSource::Index(_))
    }

    /// The level of a leaf.
    pub(super) fn leaf_level(&self, leaf: usize) -> Level {
        self.kernel.leaves[leaf].level
    }

    /// The name of a statement's variable.
    pub(super) fn name(&self, s: StmtId) -> &str {
        &self.values[s.0 as usize]
    }

    /// The name of a host scalar's parameter.
    pub(super) fn scalar(&self, k: u32, dtype: DType) -> &str {
        let found = self.scalars.iter().find(|(n, d, _)| *n == k && *d == dtype);
        &found.expect("every scalar argument stands in a statement").2
    }

    /// What the value of a statement is called where it is used.
    pub(super) fn value(&self, s: StmtId) -> String {
        let stmt = self.kernel.stmt(s);
        match &stmt.expr {
            Expr::Const(value) => literal(*value, stmt.dtype),
            _ => self.name(s).to_owned(),
        }
    }

    /// The compute type of a statement's value.
    pub(super) fn ty(&self, s: StmtId) -> String {
        compute_type(self.kernel.stmt(s).dtype)
    }

    /// The line that computes a statement, or nothing where its value needs none.
    pub(super) fn define(&self, s: StmtId, reach: &dyn Reach) -> Option<String> {
        let stmt = self.kernel.stmt(s);
        let is_no_line = matches!(stmt.expr, Expr::Const(_) | Expr::Scalar(_));
        if is_no_line || self.is_only_compared(s) {
            return None;
        }
        let text = self.expression(s, reach);
        let rounds = stmt.round && !self.is_rounded_by_stores(s);
        let rounded = if rounds { round(text, stmt.dtype, &stmt.expr) } else { text };
        Some(format!("const {} {} = {rounded};", self.ty(s), self.name(s)))
    }

    /// Whether a statement is computed at the points of a walk, and not once a row or once in all.
    pub(super) fn is_in_a_walk(&self, s: StmtId) -> bool {
        self.phases.walks.iter().any(|walk| walk.fresh.contains(&s))
    }

    /// Whether a value goes nowhere but to memory, as it is: then writing it is its rounding.
    fn is_rounded_by_stores(&self, s: StmtId) -> bool {
        let used = self.kernel.stmts.iter().any(|t| t.expr.operands().contains(&s));
        let mut stores = self.kernel.stores.iter().filter(|store| store.value == s).peekable();
        let dtype = self.kernel.stmt(s).dtype;
        !used && stores.peek().is_some() && stores.all(|t| t.scatter.is_none() && store_dtype(self.plan, t) == dtype)
    }

    /// The uniform draw that a statement compares with a constant, and the least word that reaches it.
    fn reached(&self, s: StmtId) -> Option<(StmtId, u32)> {
        let Expr::Apply(op, args) = &self.kernel.stmt(s).expr else { return None };
        let (&[draw, least], true) = (&args[..], op.name == "ge") else { return None };
        let (of, bound) = (self.kernel.stmt(draw), self.kernel.stmt(least));
        let (Expr::Uniform(..), Expr::Const(Literal::Float(bound)), DType::F32) = (&of.expr, &bound.expr, of.dtype)
        else {
            return None;
        };
        least_word(*bound as f32).map(|word| (draw, word))
    }

    /// The number of the draw that a statement compares with a constant, the position it is asked at, and the least word.
    pub(super) fn compared_draw(&self, s: StmtId) -> Option<(u32, StmtId, u32)> {
        let (draw, word) = self.reached(s)?;
        let Expr::Uniform(number, at) = self.kernel.stmt(draw).expr else { return None };
        Some((number, at, word))
    }

    /// Whether nothing is asked of a uniform draw but once whether it reaches a constant: that is told by its bits. What is asked
    /// twice may be asked in two walks, and is then kept as a number.
    fn is_only_compared(&self, s: StmtId) -> bool {
        let is_user = |user: &StmtId| self.kernel.stmt(*user).expr.operands().contains(&s);
        let is_stored = self.kernel.stores.iter().any(|store| store.value == s);
        let is_drawn = matches!(self.kernel.stmt(s).expr, Expr::Uniform(..));
        let mut users = self.kernel.ids().filter(is_user);
        let only = is_drawn && !is_stored && users.next().is_some_and(|user| self.reached(user).is_some());
        only && users.next().is_none()
    }

    fn expression(&self, s: StmtId, reach: &dyn Reach) -> String {
        let stmt = self.kernel.stmt(s);
        if let Some((draw, word)) = self.reached(s).filter(|(draw, _)| self.is_only_compared(*draw)) {
            return self.drawn(draw, "reaches", &format!(", 0x{word:08x}u"), reach);
        }
        match &stmt.expr {
            Expr::Load(leaf) => reach.load(self, *leaf as usize),
            Expr::Gather { leaf, index } => self.gather(*leaf as usize, *index, stmt.place, reach),
            Expr::Size(_) => format!("({}){}_size", self.ty(s), self.name(s)),
            Expr::Apply(op, args) => self.apply(s, *op, args),
            Expr::Cast(x) => match self.ty(*x) == self.ty(s) {
                true => self.value(*x),
                false => format!("fuse_cast<{}>({})", self.ty(s), self.value(*x)),
            },
            Expr::Uniform(..) | Expr::Normal(..) => {
                let kind = if matches!(stmt.expr, Expr::Uniform(..)) { "uniform" } else { "normal" };
                format!("({}){}", self.ty(s), self.drawn(s, kind, "", reach))
            }
            Expr::Product(n) => reach.product(*n),
            Expr::Const(_) | Expr::Scalar(_) => self.value(s),
            Expr::Reduce(..) | Expr::Scan(..) => unreachable!("the walk of a kernel writes its reductions and scans"),
        }
    }

    /// What a draw of the kernel is asked at its point.
    fn drawn(&self, s: StmtId, what: &str, more: &str, reach: &dyn Reach) -> String {
        let (draw, at) = self.kernel.stmt(s).expr.draw().expect("only draws are asked");
        let point = if self.is_in_a_walk(s) { reach.point() } else { "0" };
        format!("draw{draw}.{what}({}, {point}{more})", self.value(at))
    }

    fn gather(&self, leaf: usize, index: StmtId, place: u32, reach: &dyn Reach) -> String {
        let (base, axis) = (reach.base(self, leaf), &self.leaves[leaf]);
        format!("fuse_to_compute(fuse_gather({base}, {axis}_axis, {}, fault, call, {place}))", self.value(index))
    }

    fn apply(&self, s: StmtId, op: Op, args: &[StmtId]) -> String {
        let stmt = self.kernel.stmt(s);
        let mut texts: Vec<String> = args.iter().map(|a| self.value(*a)).collect();
        let dtype = self.kernel.stmt(args[0]).dtype;
        if divides_integers(op, dtype) {
            texts[1] = format!("fuse_divisor_of({}, {}, fault, call, {})", texts[0], texts[1], stmt.place);
        }
        let row = op.scalar.as_ref().expect("only elementwise ops stand in kernels");
        let text = substitute(&row.cuda_for(dtype).replace("{T}", c_type(dtype)), &texts);
        // C++ computes on at least an int.
        if dtype == DType::U8 && stmt.dtype == DType::U8 { format!("(unsigned char)({text})") } else { text }
    }
}

/// The least word of 32 random bits whose uniform number, its upper 24 bits times 2^-24, is at least this; `None` where all are, or none.
fn least_word(bound: f32) -> Option<u32> {
    let steps = (f64::from(bound) * f64::from(1 << 24)).ceil();
    (steps > 0.0 && steps < f64::from(1 << 24)).then_some((steps as u32) << 8)
}

/// The compute type of an element type.
pub(super) fn compute_type(dtype: DType) -> String {
    c_type(dtype.compute()).to_owned()
}

/// A value rounded to its element type. What comes from memory or enters at the compute type stays as it is.
pub(super) fn round(text: String, dtype: DType, expr: &Expr) -> String {
    let exact = matches!(expr, Expr::Load(_) | Expr::Gather { .. } | Expr::Const(_) | Expr::Scalar(_));
    let rounds = dtype.is_narrow() || matches!(dtype, DType::Param(_));
    if rounds && !exact { format!("fuse_rounded<{}>({text})", c_type(dtype)) } else { text }
}

/// The policy class of a reduction over values of this compute type, giving `result`.
pub(super) fn reduction(reduction: Reduction, operand: &str, result: &str) -> String {
    match reduction {
        Reduction::Sum => format!("fuse_sum<{result}>"),
        Reduction::Prod => format!("fuse_prod<{result}>"),
        Reduction::Max => format!("fuse_largest<{operand}>"),
        Reduction::Min => format!("fuse_smallest<{operand}>"),
        Reduction::ArgMax => format!("fuse_arg<{operand}, true>"),
        Reduction::ArgMin => format!("fuse_arg<{operand}, false>"),
    }
}

fn stem_of(expr: &Expr) -> String {
    match expr {
        Expr::Load(_) => "load".to_owned(),
        Expr::Gather { .. } => "gathered".to_owned(),
        Expr::Const(_) => "constant".to_owned(),
        Expr::Scalar(k) => format!("scalar{k}"),
        Expr::Size(_) => "extent".to_owned(),
        Expr::Apply(op, _) => op.name.to_owned(),
        Expr::Cast(_) => "cast".to_owned(),
        Expr::Reduce(r, _) | Expr::Scan(r, _) => format!("{r:?}").to_lowercase(),
        Expr::Uniform(..) => "uniform".to_owned(),
        Expr::Normal(..) => "normal".to_owned(),
        Expr::Product(_) => "product".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{OPERAND, least_word};
    use std::path::Path;

    #[test]
    fn a_word_reaches_a_bound_where_its_number_does() {
        let number = |word: u32| (word >> 8) as f32 * 2f32.powi(-24);
        for bound in [1e-9f32, 2f32.powi(-24), 0.1, 0.3, 0.5, 0.9, 1.0 - 2f32.powi(-24)] {
            let least = least_word(bound).unwrap();
            for word in [least - 256, least - 1, least, least + 255, u32::MAX, 0] {
                assert_eq!(word >= least, number(word) >= bound, "{bound} {word:x}");
            }
        }
        assert!([0.0, -1.0, 1.0, 2.0, f32::NAN].iter().all(|bound| least_word(*bound).is_none()));
    }

    /// The texts of the writers in a folder.
    fn texts(folder: &Path, into: &mut Vec<String>) {
        for entry in
            std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("an entry").path())
        {
            match entry.extension().is_some_and(|extension| extension == "rs") {
                true => into.push(std::fs::read_to_string(&entry).expect("a text")),
                false if entry.is_dir() => texts(&entry, into),
                false => {}
            }
        }
    }

    #[test]
    fn what_texts_put_behind_a_name_is_no_other_name() {
        let mut all = vec![];
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/emit/cuda"), &mut all);
        let behind = |text: &str| -> Vec<String> {
            let parts = text.split("}_").skip(1);
            parts.map(|part| part.chars().take_while(char::is_ascii_lowercase).collect()).collect()
        };
        let suffixes: Vec<String> = all.iter().flat_map(|text| behind(text)).filter(|word| !word.is_empty()).collect();
        assert!(suffixes.len() > 50);
        for suffix in suffixes {
            assert!(
                OPERAND.contains(&format!("_{suffix}").as_str()),
                "_{suffix} is not reserved behind the names it follows"
            );
        }
    }
}
