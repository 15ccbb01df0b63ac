//! Names the kernels of a plan after what they do: `k0_add_relu`, `k1_matmul_gelu`.
//!
//! A plan specialised by guards has a more general twin in the same source; its kernels are named `s0_..` instead.

use crate::plan::{Expr, Kernel, Plan, Step};

/// More ops than this do not fit in a name.
const NAMED_OPS: usize = 4;

/// Names every kernel.
pub fn run(mut plan: Plan) -> Plan {
    let letter = letter(&plan);
    for (k, step) in plan.steps.iter_mut().enumerate() {
        match step {
            Step::Kernel(kernel) => kernel.name = name(letter, k, &[], kernel),
            Step::Matmul(matmul) => {
                matmul.epilogue.name = name(letter, k, &["matmul"], &matmul.epilogue);
                if let Some(rest) = &mut matmul.lib.rest {
                    rest.name = name(letter, k, &["after_matmul"], rest);
                }
            }
        }
    }
    plan
}

/// The name of a kernel that makes several products, from a step on.
pub fn of_products(plan: &Plan, first: usize, program: &Kernel) -> String {
    name(letter(plan), first, &["products"], program)
}

/// The name of what begins with a step and is known for what it is.
pub fn of(plan: &Plan, first: usize, what: &str) -> String {
    joined(letter(plan), first, what)
}

/// The same program as a kernel of its own, for one more thing that is done with it.
pub fn variation(kernel: &Kernel, of: &str) -> Kernel {
    Kernel { name: format!("{}_{of}", kernel.name), ..kernel.clone() }
}

/// What the names of a plan's kernels start with.
fn letter(plan: &Plan) -> char {
    if plan.guards.is_empty() { 'k' } else { 's' }
}

fn joined(letter: char, step: usize, words: &str) -> String {
    format!("{letter}{step}_{words}")
}

fn name(letter: char, step: usize, first: &[&str], kernel: &Kernel) -> String {
    let mut words: Vec<String> = first.iter().map(|w| w.to_string()).collect();
    for word in kernel.stmts.iter().filter_map(|s| word(&s.expr)) {
        if !words.contains(&word) && words.len() < NAMED_OPS {
            words.push(word);
        }
    }
    if words.is_empty() {
        words.push("copy".into());
    }
    joined(letter, step, &words.join("_"))
}

fn word(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Apply(op, _) => Some(op.name.to_owned()),
        Expr::Reduce(kind, _) => Some(format!("{kind:?}").to_lowercase()),
        Expr::Scan(..) => Some("cumsum".to_owned()),
        Expr::Gather { .. } => Some("gather".to_owned()),
        draw if draw.is_draw() => Some("random".to_owned()),
        _ => None,
    }
}
