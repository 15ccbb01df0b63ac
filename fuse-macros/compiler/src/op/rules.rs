//! Type rules: the element type and extents of results, and why operands do not fit.
//!
//! A rule decides what formulas decide. Extents that differ by a known amount are a [`Fault`]; extents whose relation is
//! open become a [`Check`] for run time.

use super::{Attr, OpInfo};
use crate::types::{DType, Dim, Sym, Ty};
use serde::{Deserialize, Serialize};

/// The types of the results, or why there are none.
pub type Types = Result<Vec<Ty>, Fault>;

/// Where type rules report what must hold at run time.
#[derive(Default)]
pub struct Rules<'a> {
    /// What could not be decided.
    pub checks: Vec<Check>,
    /// Whether the operands of rank 0 stand for lines of one element, for messages.
    pub lone: bool,
    /// The name of the op whose rule runs, for messages.
    pub op: &'static str,
    /// Names of symbols, for messages.
    pub names: Option<&'a dyn Fn(Sym) -> String>,
}

/// What is left to run time about two extents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// One side.
    pub left: Dim,
    /// The other side.
    pub right: Dim,
    /// What must hold between them.
    pub relation: Relation,
    /// The message around the two numbers, with `{left}` and `{right}`.
    pub text: String,
}

/// What must hold between two extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// They are equal.
    Equal,
    /// They are equal, or either is 1.
    Broadcasts,
    /// They are equal, or the left one is 1.
    Stretches,
}

impl Relation {
    /// Whether it holds.
    pub fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Relation::Equal => left == right,
            Relation::Broadcasts => left == right || left == 1 || right == 1,
            Relation::Stretches => left == right || left == 1,
        }
    }
}

impl Check {
    /// That an operand of this op broadcasts to an extent.
    pub fn stretches(op: &str, own: &Dim, wanted: &Dim) -> Check {
        let text = format!("`{op}`: an extent of {{left}} does not broadcast to {{right}}");
        Check { left: own.clone(), right: wanted.clone(), relation: Relation::Stretches, text }
    }

    /// The message if it does not hold, for these values of its sides.
    pub fn failure(&self, left: i64, right: i64) -> Option<String> {
        let text = || self.text.replace("{left}", &left.to_string()).replace("{right}", &right.to_string());
        (!self.relation.holds(left, right)).then(text)
    }
}

/// Why operands do not fit, in the user's words: `message`, then a way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What happened. Operand `k` is written `{k}`, its name is filled in by who knows it.
    pub message: String,
    /// What to do, if there is something.
    pub help: Option<String>,
    /// The operand to point at, if it is one.
    pub operand: Option<usize>,
    /// The axis to point at, as it was given, if it is one.
    pub axis: Option<i64>,
    /// Whether the types of the Rust methods rule this out, so that rustc says it too.
    pub by_types: bool,
    /// Whether it is none where the op runs by itself, with all extents known.
    pub while_open: bool,
}

impl Fault {
    /// A fault that points at the call.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: None, operand: None, axis: None, by_types: false, while_open: false }
    }

    /// Adds a way out.
    pub fn help(self, help: impl Into<String>) -> Fault {
        Fault { help: Some(help.into()), ..self }
    }

    /// Points at an operand.
    pub fn at(self, operand: usize) -> Fault {
        Fault { operand: Some(operand), ..self }
    }

    /// Points at an axis among the arguments.
    pub fn at_axis(self, axis: i64) -> Fault {
        Fault { axis: Some(axis), ..self }
    }

    /// Is none where all extents are known.
    pub fn while_open(self) -> Fault {
        Fault { while_open: true, ..self }
    }

    /// Leaves it to rustc where the operands have Rust types.
    pub fn by_types(self) -> Fault {
        Fault { by_types: true, ..self }
    }
}

/// Puts the names of operands in the place of `{0}`, `{1}`, ... Code that begins with one, such as `{1}.t()`, stays one
/// piece of code.
pub fn with_names(text: &str, names: &[String]) -> String {
    names.iter().enumerate().fold(text.to_owned(), |text, (k, name)| {
        let whole = if name.contains(' ') { format!("({name})") } else { name.clone() };
        let turned = name.strip_suffix(".t()").map_or(format!("{whole}.t()"), str::to_owned);
        text.replace(&format!("`{{{k}}}.t()"), &format!("`{turned}"))
            .replace(&format!("`{{{k}}}."), &format!("`{whole}."))
            .replace(&format!("{{{k}}}"), &format!("`{name}`"))
    })
}

impl Rules<'_> {
    /// An extent as the user knows it.
    pub fn show(&self, dim: &Dim) -> String {
        match self.names {
            Some(names) => dim.display(&|sym| names(sym)).to_string(),
            None => dim.to_string(),
        }
    }

    /// Extents as the user knows them.
    pub fn show_all(&self, dims: &[Dim]) -> String {
        format!("[{}]", dims.iter().map(|dim| self.show(dim)).collect::<Vec<_>>().join(", "))
    }

    /// Whether two extents are equal; where that is open, a check with this text is left.
    pub fn equal(&mut self, left: &Dim, right: &Dim, text: impl FnOnce() -> String) -> bool {
        match Dim::sub(left.clone(), right.clone()) {
            Dim::Const(difference) => difference == 0,
            _ => {
                let (left, right) = (left.clone(), right.clone());
                self.checks.push(Check { left, right, relation: Relation::Equal, text: text() });
                true
            }
        }
    }

    /// Whether an extent is 1 or the wanted one; where that is open, a check is left.
    pub fn stretches(&mut self, own: &Dim, wanted: &Dim) -> bool {
        let check = Check::stretches(self.op, own, wanted);
        match own {
            Dim::Const(1) => true,
            // A known extent other than 1 has to be the wanted one.
            Dim::Const(_) => self.equal(own, wanted, || check.text),
            _ if own == wanted => true,
            _ => {
                self.checks.push(check);
                true
            }
        }
    }

    /// Whether extents broadcast to these, which are no fewer; where that is open, checks are left.
    pub fn all_stretch(&mut self, own: &[Dim], wanted: &[Dim]) -> bool {
        let outer = wanted.len().checked_sub(own.len());
        outer.is_some_and(|outer| own.iter().zip(&wanted[outer..]).all(|(own, wanted)| self.stretches(own, wanted)))
    }

    /// Whether `small <= large`; where that is open, a check with this text is left.
    pub fn at_most(&mut self, small: &Dim, large: &Dim, text: impl FnOnce() -> String) -> bool {
        match Dim::sub(large.clone(), small.clone()) {
            Dim::Const(difference) => difference >= 0,
            // Of two extents the larger is `large` exactly if `small` is not above it; then both numbers print as they are.
            _ => {
                let left = Dim::max(small.clone(), large.clone());
                self.equal(&left, large, text)
            }
        }
    }

    /// The extents to which all of these broadcast.
    pub fn broadcast(&mut self, args: &[&Ty]) -> Result<Vec<Dim>, Fault> {
        let mut dims = args.first().map_or(vec![], |ty| ty.dims.clone());
        for (k, ty) in args.iter().enumerate().skip(1) {
            dims = self.broadcast_two(&dims, &ty.dims, k)?;
        }
        Ok(dims)
    }

    /// The extents to which what is before operand `k` and operand `k` broadcast.
    pub fn broadcast_two(&mut self, a: &[Dim], b: &[Dim], k: usize) -> Result<Vec<Dim>, Fault> {
        let rank = a.len().max(b.len());
        let extent = |dims: &[Dim], axis: usize| match (axis + dims.len()).checked_sub(rank) {
            Some(own) => dims[own].clone(),
            None => Dim::Const(1),
        };
        (0..rank)
            .map(|axis| {
                let (left, right) = (extent(a, axis), extent(b, axis));
                self.stretch(&left, &right).ok_or_else(|| self.clash(a, b, k))
            })
            .collect()
    }

    fn stretch(&mut self, left: &Dim, right: &Dim) -> Option<Dim> {
        let joint = Dim::broadcast(left.clone(), right.clone())?;
        // What one extent has been broadcast to broadcasts with it.
        let holds = |dim: &Dim| *dim == joint && matches!(dim, Dim::Broadcast(..));
        let is_open = left != right && *left != Dim::Const(1) && *right != Dim::Const(1);
        if is_open && !holds(left) && !holds(right) {
            let text = format!("`{}`: extents {{left}} and {{right}} neither are equal nor is one of them 1", self.op);
            let (left, right) = (left.clone(), right.clone());
            self.checks.push(Check { left, right, relation: Relation::Broadcasts, text });
        }
        Some(joint)
    }

    fn clash(&self, a: &[Dim], b: &[Dim], k: usize) -> Fault {
        let before = if k == 1 { "{0} is " } else { "those before are " };
        Fault::new(format!(
            "operands of `{}` do not broadcast: {before}{}, {{{k}}} is {}",
            self.op,
            self.show_all(a),
            self.show_all(b)
        ))
        .help("extents must be equal or 1, counted from the last axis")
        .at(k)
    }

    /// The place of a new axis among `rank` old ones.
    pub fn new_axis(&self, axis: i64, rank: usize) -> Result<usize, Fault> {
        find_axis(axis, rank + 1).ok_or_else(|| {
            Fault::new(format!("`{}`: axis {axis} is out of range for a result of rank {}", self.op, rank + 1))
                .help(format!("an axis is one of -{}..={rank}", rank + 1))
                .at_axis(axis)
        })
    }

    /// The axis an attribute means, counted from 0.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, Fault> {
        find_axis(axis, rank).ok_or_else(|| match rank {
            _ if self.lone => Fault::new(format!("`{}`: axis {axis} is out of range for {{0}} of rank 0", self.op))
                .help("a tensor of rank 0 acts as one element along axis 0")
                .at_axis(axis),
            0 => Fault::new(format!("`{}` needs an axis, but {{0}} has rank 0", self.op))
                .help("`{0}.unsqueeze(0)` has one")
                .at(0),
            _ => Fault::new(format!("`{}`: axis {axis} is out of range for {{0}} of rank {rank}", self.op))
                .help(format!("an axis is one of -{rank}..={}", rank - 1))
                .at_axis(axis),
        })
    }
}

/// The axis a number means, counted from 0: negative ones count from the end.
pub fn find_axis(axis: i64, rank: usize) -> Option<usize> {
    let from_start = if axis < 0 { axis + rank as i64 } else { axis };
    (0..rank as i64).contains(&from_start).then_some(from_start as usize)
}

/// The axis an attribute of a typed node means.
///
/// # Panics
/// If it is out of range, which the type rule has refused.
pub fn axis_of(attr: &Attr, rank: usize) -> usize {
    find_axis(attr.int(), rank).unwrap_or_else(|| panic!("axis {} of rank {rank}", attr.int()))
}

/// The axes an attribute of a typed node means.
pub fn axes_of(attr: &Attr, rank: usize) -> Vec<usize> {
    attr.ints().iter().map(|&axis| axis_of(&Attr::Int(axis), rank)).collect()
}

/// The fault of a receiver whose element type the op does not take.
pub(super) fn wrong_dtype(op: &OpInfo, dtype: DType) -> Fault {
    use super::Accepts::*;
    let (wanted, help) = match op.accepts {
        Any => unreachable!("`{}` takes every element type", op.name),
        Float8 => ("f8e4m3", "`cast::<f8e4m3>()` before it converts"),
        Number if dtype == DType::F8E4M3 => ("numbers that are computed with", "`cast::<f32>()` before it converts"),
        Float => ("floats", "`cast::<f32>()` before it converts"),
        Number | Factor => ("numbers", "`cast::<i64>()` before it converts"),
        Int => ("integers", "`cast::<i64>()` before it converts"),
        Bits => ("integers or bool", "`cast::<i64>()` before it converts"),
        Bool => ("bool", "`.ne(0)` before it converts"),
    };
    let fault = Fault::new(format!("`{}` is for {wanted}, {{0}} is {dtype}", op.name)).help(help).at(0);
    // rustc says of fp8 that a bound is not met, which tells nobody what to do.
    if dtype == DType::F8E4M3 { fault } else { fault.by_types() }
}

/// The one element type of operands, `rules.op`'s. Scalars may be in the compute type of the others.
pub(super) fn common_dtype(rules: &Rules, args: &[&Ty]) -> Result<DType, Fault> {
    let weak = |ty: &Ty, dtype: DType| ty.rank() == 0 && ty.dtype == dtype.compute();
    let strong = |dtype: DType| args.iter().all(|ty| ty.dtype == dtype || weak(ty, dtype));
    match args.iter().map(|ty| ty.dtype).find(|&dtype| strong(dtype)) {
        Some(dtype) => Ok(dtype),
        None => {
            let odd = args.iter().position(|ty| ty.dtype != args[0].dtype).unwrap_or(0);
            let message = format!(
                "operands of `{}` have different element types: {{0}} is {}, {{{odd}}} is {}",
                rules.op, args[0].dtype, args[odd].dtype
            );
            Err(Fault::new(message).help(format!("`cast::<{}>()` converts", args[0].dtype)).at(odd).by_types())
        }
    }
}

/// The operand must have this rank.
pub(super) fn need_rank(rules: &Rules, args: &[&Ty], operand: usize, rank: usize) -> Result<(), Fault> {
    match args[operand].rank() {
        found if found == rank => Ok(()),
        found => Err(Fault::new(format!("`{}`: {{{operand}}} must have rank {rank}, it has rank {found}", rules.op))
            .at(operand)
            .by_types()),
    }
}

/// The operand must have this element type.
pub(super) fn need_dtype(rules: &Rules, args: &[&Ty], operand: usize, dtype: DType) -> Result<(), Fault> {
    match args[operand].dtype {
        found if found == dtype => Ok(()),
        found => Err(Fault::new(format!("`{}`: {{{operand}}} must be {dtype}, it is {found}", rules.op))
            .help(format!("`cast::<{dtype}>()` converts"))
            .at(operand)
            .by_types()),
    }
}

/// One result with the type of the receiver.
pub(super) fn same(_: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    Ok(vec![args[0].clone()])
}

/// One result with the type of the receiver, along an axis that must exist.
pub(super) fn same_along(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    rules.axis(attrs[0].int(), args[0].rank())?;
    same(rules, args, attrs)
}

/// Operands of one element type broadcast; the result has that element type.
pub(super) fn elementwise(rules: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    let dtype = common_dtype(rules, args)?;
    Ok(vec![Ty::new(dtype, rules.broadcast(args)?)])
}

/// Operands of one element type broadcast; the result is bool.
pub(super) fn predicate(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    Ok(elementwise(rules, args, attrs)?.into_iter().map(|ty| ty.with_dtype(DType::Bool)).collect())
}
