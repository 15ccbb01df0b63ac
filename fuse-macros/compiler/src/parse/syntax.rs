//! Questions about code that its syntax answers.

use super::closure::differentiation;
use super::names::{Name, Names, bound};
use crate::op::Op;
use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{Expr, ExprAssign, ExprBinary, ExprReference, Lifetime, Local, Pat, Stmt};

/// Methods of a tensor that read its type or extents and no data.
pub const SHAPE_QUERIES: &[&str] =
    &["dims", "size", "numel", "device", "rank", "dtype", "len", "is_empty", "is_some", "is_none"];

/// Methods of numbers that give a number of the same type.
#[rustfmt::skip]
const OF_SCALARS: &[&str] = &[
    "abs", "sqrt", "cbrt", "exp", "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "floor", "ceil", "round", "trunc", "fract", "signum", "recip", "powi", "powf", "pow", "min", "max", "clamp", "mul_add",
    "rem_euclid", "div_euclid", "hypot", "atan2", "to_radians", "to_degrees",
];

/// Methods that give the same value.
pub const SAME_VALUE: &[&str] = &["clone", "to_owned", "contiguous"];

/// Methods of numbers, iterators and collections that are spelled like ops.
const ALSO_OF_STD: &[&str] = &[
    "abs",
    "sqrt",
    "exp",
    "ln",
    "sin",
    "cos",
    "tanh",
    "floor",
    "ceil",
    "round",
    "powi",
    "powf",
    "clamp",
    "min",
    "max",
    "minimum",
    "maximum",
    "recip",
    "sum",
    "prod",
    "product",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "repeat",
    "flip",
    "chunk",
    "item",
    "to_vec",
    "cast",
    "expand",
    "transpose",
    "t",
    "neg",
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "isnan",
    "norm",
    "mean",
    "slice",
    "bitand",
    "bitor",
    "bitxor",
    "shl",
    "shr",
    "not",
];

/// Macros whose arguments are expressions, after a format string or not.
pub const EXPRESSION_MACROS: &[&str] = &[
    "println",
    "print",
    "eprintln",
    "eprint",
    "format",
    "write",
    "writeln",
    "panic",
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "unreachable",
    "todo",
    "unimplemented",
    "vec",
    "dbg",
];

/// Macros that format their arguments.
pub const FORMAT_MACROS: &[&str] =
    &["println", "print", "eprintln", "eprint", "format", "write", "writeln", "panic", "dbg"];

/// Macros that never come to an end.
const DIVERGING: &[&str] = &["panic", "unreachable", "todo", "unimplemented"];

/// Whether only tensors have a method of this name.
pub fn only_of_tensors(method: &str) -> bool {
    Op::find(method).is_some() && !ALSO_OF_STD.contains(&method)
}

/// An expression without parentheses and invisible groups.
pub fn strip(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) if paren.attrs.is_empty() => strip(&paren.expr),
        Expr::Group(group) => strip(&group.expr),
        other => other,
    }
}

/// Jumps that leave an expression.
#[derive(Default)]
pub struct Jumps {
    /// `return`.
    pub returns: bool,
    /// `?`.
    pub tries: bool,
    /// `break` and `continue` of a loop around it, with their labels.
    pub loops: Vec<Option<Lifetime>>,
}

impl Jumps {
    /// The jumps of an expression.
    pub fn of(expr: &Expr) -> Jumps {
        let mut finder = JumpFinder::default();
        finder.visit_expr(expr);
        finder.jumps
    }

    /// Whether there is one.
    pub fn any(&self) -> bool {
        self.returns || self.tries || !self.loops.is_empty()
    }

    /// Whether there is one other than `?`.
    pub fn leaves(&self) -> bool {
        self.returns || !self.loops.is_empty()
    }
}

#[derive(Default)]
struct JumpFinder {
    jumps: Jumps,
    inner_loops: usize,
    inner_labels: Vec<Lifetime>,
}

impl JumpFinder {
    fn jump(&mut self, label: &Option<Lifetime>) {
        let stays = match label {
            Some(label) => self.inner_labels.contains(label),
            None => self.inner_loops > 0,
        };
        if !stays {
            self.jumps.loops.push(label.clone());
        }
    }

    fn inside_loop(&mut self, label: Option<&syn::Label>, visit: impl FnOnce(&mut Self)) {
        self.inner_loops += 1;
        let labels = self.inner_labels.len();
        self.inner_labels.extend(label.map(|label| label.name.clone()));
        visit(self);
        self.inner_labels.truncate(labels);
        self.inner_loops -= 1;
    }
}

impl<'ast> Visit<'ast> for JumpFinder {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Return(_) => self.jumps.returns = true,
            Expr::Try(_) => self.jumps.tries = true,
            Expr::Break(jump) => self.jump(&jump.label),
            Expr::Continue(jump) => self.jump(&jump.label),
            Expr::Closure(_) | Expr::Async(_) => return,
            Expr::ForLoop(e) => return self.inside_loop(e.label.as_ref(), |v| visit::visit_expr_for_loop(v, e)),
            Expr::While(e) => return self.inside_loop(e.label.as_ref(), |v| visit::visit_expr_while(v, e)),
            Expr::Loop(e) => return self.inside_loop(e.label.as_ref(), |v| visit::visit_expr_loop(v, e)),
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

/// Whether host code may do more than compute a value: a call, a macro, an assignment, an exclusive borrow.
pub fn has_effects(expr: &Expr) -> bool {
    struct Effects(bool);
    impl<'ast> Visit<'ast> for Effects {
        fn visit_expr(&mut self, expr: &'ast Expr) {
            match expr {
                Expr::MethodCall(call) => self.0 |= !is_plain_method(&call.method),
                Expr::Call(call) => match differentiation(call) {
                    Some((_, Expr::Closure(closure))) => self.visit_expr(&closure.body),
                    _ => self.0 |= !is_plain_function(&call.func),
                },
                Expr::Macro(_) | Expr::Assign(_) | Expr::Await(_) | Expr::Yield(_) => self.0 = true,
                Expr::Binary(binary) => self.0 |= is_compound(binary),
                Expr::Reference(reference) => self.0 |= reference.mutability.is_some(),
                Expr::Closure(_) => return,
                _ => {}
            }
            visit::visit_expr(self, expr);
        }
    }
    let mut effects = Effects(false);
    effects.visit_expr(expr);
    effects.0
}

/// Whether host code never comes to an end.
pub fn diverges(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Macro(mac) => is_one_of(&mac.mac.path, DIVERGING),
        Expr::Call(call) => matches!(strip(&call.func), Expr::Path(path) if is_one_of(&path.path, &["exit", "abort"])),
        Expr::Block(block) if block.label.is_none() => block_diverges(&block.block),
        Expr::If(branch) => {
            let otherwise = branch.else_branch.as_ref().is_some_and(|(_, otherwise)| diverges(otherwise));
            otherwise && block_diverges(&branch.then_branch)
        }
        _ => false,
    }
}

fn block_diverges(block: &syn::Block) -> bool {
    match block.stmts.last() {
        Some(Stmt::Expr(last, _)) => diverges(last),
        Some(Stmt::Macro(last)) => is_one_of(&last.mac.path, DIVERGING),
        _ => false,
    }
}

fn is_one_of(path: &syn::Path, names: &[&str]) -> bool {
    path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// Whether a binary operator assigns.
pub fn is_compound(binary: &ExprBinary) -> bool {
    use syn::BinOp::*;
    matches!(
        binary.op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// Methods of a number that give one of the same type.
pub fn of_scalars(method: &str) -> bool {
    OF_SCALARS.contains(&method)
}

/// Whether an operator gives a bool.
pub fn is_comparison(op: &syn::BinOp) -> bool {
    use syn::BinOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    matches!(op, And(_) | Eq(_) | Ge(_) | Gt(_) | Le(_) | Lt(_) | Ne(_) | Or(_))
}

/// Methods that compute a number, a shape or a tensor, and whose result has nothing to drop that anybody sees.
fn is_plain_method(method: &Ident) -> bool {
    let method = method.to_string();
    let known = |list: &[&str]| list.contains(&method.as_str());
    Op::find(&method).is_some()
        || known(SHAPE_QUERIES)
        || known(SAME_VALUE)
        || known(ALSO_OF_STD)
        || known(&[
            "len",
            "is_empty",
            "is_some",
            "is_none",
            "log2",
            "log10",
            "pow",
            "rem_euclid",
            "div_euclid",
            "to_f32",
            "to_f64",
        ])
}

/// Functions that only build a value.
fn is_plain_function(func: &Expr) -> bool {
    match strip(func) {
        Expr::Path(path) => {
            let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let last = names.last().map(String::as_str).unwrap_or_default();
            let of_tensor = names.len() >= 2 && names[names.len() - 2] == "Tensor";
            (of_tensor && Op::find(last).is_some()) || ["Some", "Ok", "Err", "from_f64", "from_f32"].contains(&last)
        }
        _ => false,
    }
}

/// Whether a block can be written without its braces: what it binds has nothing to drop that anybody sees, no name it
/// binds hides one that is read after it, and it declares no items.
pub fn is_flat(stmts: &[Stmt], read_after: &Names) -> bool {
    struct Flat<'a>(bool, &'a Names);
    impl<'ast> Visit<'ast> for Flat<'_> {
        fn visit_local(&mut self, local: &'ast Local) {
            let hides = bound(&local.pat).iter().any(|ident| self.1.contains(&Name::of(ident)));
            let drops = local.init.as_ref().is_some_and(|init| has_effects(&init.expr) || init.diverge.is_some());
            self.0 &= !hides && !drops;
            visit::visit_local(self, local);
        }
        fn visit_item(&mut self, _: &'ast syn::Item) {
            self.0 = false;
        }
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
        fn visit_stmt_macro(&mut self, mac: &'ast syn::StmtMacro) {
            // Any other macro may expand to a `let` or an item.
            let name = mac.mac.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            self.0 &= EXPRESSION_MACROS.contains(&name.as_str());
        }
    }
    let mut flat = Flat(true, read_after);
    stmts.iter().for_each(|stmt| flat.visit_stmt(stmt));
    flat.0
}

/// The names an expression may assign, borrow exclusively, or change through a method.
pub fn assigned(expr: &Expr) -> Names {
    let mut assigned = Assigned(Names::new());
    assigned.visit_expr(expr);
    assigned.0
}

struct Assigned(Names);

impl Assigned {
    fn root(&mut self, expr: &Expr) {
        match strip(expr) {
            Expr::Path(path) => self.0.extend(path.path.get_ident().map(Name::of)),
            Expr::Unary(unary) => self.root(&unary.expr),
            Expr::Field(field) => self.root(&field.base),
            Expr::Index(index) => self.root(&index.expr),
            Expr::Tuple(tuple) => tuple.elems.iter().for_each(|elem| self.root(elem)),
            Expr::Array(array) => array.elems.iter().for_each(|elem| self.root(elem)),
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Assigned {
    fn visit_expr_assign(&mut self, assign: &'ast ExprAssign) {
        self.root(&assign.left);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        if is_compound(binary) {
            self.root(&binary.left);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_reference(&mut self, reference: &'ast ExprReference) {
        if reference.mutability.is_some() {
            self.root(&reference.expr);
        }
        visit::visit_expr_reference(self, reference);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.root(&call.receiver);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.0.extend(super::names::mentions(&mac.tokens));
    }
}

/// The identifier a pattern consists of, with its `mut` and type.
pub fn single_binding(pat: &Pat) -> Option<&syn::PatIdent> {
    match pat {
        Pat::Ident(ident) if ident.subpat.is_none() && ident.by_ref.is_none() => Some(ident),
        Pat::Type(typed) => single_binding(&typed.pat),
        Pat::Paren(paren) => single_binding(&paren.pat),
        _ => None,
    }
}
