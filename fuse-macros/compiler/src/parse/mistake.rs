//! Operands that do not go together, told in the words and names of the user.

use super::Walker;
use super::call::Call;
use super::eval::text;
use crate::op::{Attr, Check, Fault, Op, Relation, Rules, Val, with_names};
use crate::types::{Dim, Sym, Ty};
use syn::Expr;

impl Walker<'_> {
    /// A check between dims that the user gave different names: what is named differently is not equal. A name against a
    /// number or a formula is left to run time.
    pub fn clash(&self, checks: &[Check]) -> Option<Check> {
        let named = |dim: &Dim| matches!(dim, Dim::Sym(sym) if self.syms[sym.0 as usize].origin.is_some());
        // What is 1 or another extent may well have a name of its own.
        let mut compared = checks.iter().filter(|check| check.relation != Relation::Stretches);
        compared.find(|check| named(&check.left) && named(&check.right)).cloned()
    }

    /// Reports two names where equal extents are needed, in the words the op has for two numbers.
    pub fn report_clash(&mut self, op: Op, check: &Check, call: &Call, args: &[Val], attrs: &[Attr]) {
        let fault = self.fault_with_numbers(op, args, attrs).unwrap_or_else(|| Fault {
            message: check.text.replace("{left}", &self.show(&check.left)).replace("{right}", &self.show(&check.right)),
            ..Fault::new("")
        });
        let mut origins: Vec<String> = Vec::new();
        for dim in [&check.left, &check.right] {
            dim.for_each_sym(&mut |sym| {
                let info = &self.syms[sym.0 as usize];
                let origin = format!("`{}` is from `{}`", info.name, info.origin.clone().unwrap_or_default());
                if !origins.contains(&origin) {
                    origins.push(origin);
                }
            });
        }
        let derived = format!("{}; extents that must be equal have one name", origins.join(", "));
        let help = Some(fault.help.map_or(derived.clone(), |help| format!("{help}; {derived}")));
        let operand = fault.operand.or(Some(call.operands.len() - 1));
        self.report_fault(Fault { help, operand, ..fault }, call);
    }

    /// What the op says where every name stands for a number of its own; the names are put back into the text.
    fn fault_with_numbers(&self, op: Op, args: &[Val], attrs: &[Attr]) -> Option<Fault> {
        let number = |sym: Sym| 1_000_003 + 7_919 * i64::from(sym.0);
        let fixed = |dim: &Dim| {
            dim.substitute(&|sym| match self.syms[sym.0 as usize].origin {
                Some(_) => Dim::Const(number(sym)),
                None => Dim::Sym(sym),
            })
        };
        let graph = &self.flow.pending.graph;
        let types: Vec<Ty> = args
            .iter()
            .map(|val| &graph.nodes[val.node as usize].outs[val.out as usize])
            .map(|ty| Ty::new(ty.dtype, ty.dims.iter().map(fixed).collect::<Vec<_>>()))
            .collect();
        let names = |sym: Sym| self.sym_name(sym);
        let mut rules = Rules { names: Some(&names), ..Rules::default() };
        let fault = op.types(&mut rules, &types.iter().collect::<Vec<_>>(), attrs).err()?;
        let named = |text: String| {
            (0..self.syms.len())
                .fold(text, |text, k| text.replace(&number(Sym(k as u32)).to_string(), &self.syms[k].name))
        };
        Some(Fault { message: named(fault.message), help: fault.help.map(named), ..fault })
    }

    fn show(&self, dim: &Dim) -> String {
        dim.display(&|sym: Sym| self.sym_name(sym)).to_string()
    }

    /// Reports why operands do not fit, in the words of what the user wrote.
    pub fn report_fault(&mut self, fault: Fault, call: &Call) {
        let names: Vec<String> = call.operands.iter().map(|(_, expr)| plain_text(expr)).collect();
        let words = |text: &str| {
            let text = with_names(text, &names);
            match call.operator() {
                Some((op, symbol)) => text.replace(&format!("`{}`", op.name), &format!("`{symbol}`")),
                None => text,
            }
        };
        self.diag.error(call.culprit(&fault), words(&fault.message), fault.help.as_deref().map(words).as_deref());
    }
}

/// An operand as written, without what only borrows it.
fn plain_text(expr: &Expr) -> String {
    match expr {
        Expr::Paren(paren) => plain_text(&paren.expr),
        Expr::Reference(reference) => plain_text(&reference.expr),
        other => text(other),
    }
}
