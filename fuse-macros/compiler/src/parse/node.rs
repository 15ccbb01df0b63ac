//! From a call whose operands are read to a node of the graph being built.

use super::Walker;
use super::call::{Call, unknown_dtype};
use super::eval::{Eval, Stop};
use super::operand::Operand;
use super::program::Step;
use super::value::Value;
use crate::diag::BreakKind;
use crate::graph::Place;
use crate::op::{Attr, Check, Fault, Op, OpEffect, ParamKind, Rules, Val};
use crate::types::{DType, Sym, Ty};
use quote::ToTokens;
use syn::Expr;

impl Walker<'_> {
    /// Adds the node of a call; a mistake is reported and gives `Value::Poison`.
    pub fn apply(&mut self, op: Op, mut call: Call) -> Eval<Value> {
        if call.operands.iter().any(|(operand, _)| matches!(operand, Operand::Poison)) {
            return Ok(Value::Poison);
        }
        if self.refuse_unknown(op, &call)? {
            return Ok(Value::Poison);
        }
        let has_tensor = call.operands.iter().any(|(operand, _)| matches!(operand, Operand::Tensor(_)));
        if !has_tensor {
            let dtype = call.dtype.ok_or_else(|| unknown_dtype(call.whole, op))?;
            call.attrs.push(Attr::DType(dtype));
        }
        let args = self.resolve(&call)?;
        self.check_dtypes(op, &call, &args)?;
        let whole = call.whole;
        let attrs = std::mem::take(&mut call.attrs);
        match self.node(op, &args, attrs.clone(), whole) {
            Ok((vals, checks)) => {
                if let Some(clash) = self.clash(&checks) {
                    self.report_clash(op, &clash, &call, &args, &attrs);
                    return Ok(Value::Poison);
                }
                let mut tensors: Vec<Value> =
                    vals.into_iter().map(|val| Value::Tensor { key: self.add_pending(val), by_ref: false }).collect();
                match tensors.len() {
                    1 => Ok(tensors.remove(0)),
                    _ => Ok(Value::Array(tensors)),
                }
            }
            Err(fault) if fault.by_types => Err(Stop::Silent),
            Err(fault) if fault.while_open => {
                let reason = format!("how many parts `{}` gives is not known here", op.name);
                Err(Stop::at(BreakKind::ARGUMENT, whole, reason))
            }
            Err(fault) => {
                self.report_fault(fault, &call);
                Ok(Value::Poison)
            }
        }
    }

    /// Turns operands into values of the graph; scalars get the compute type of the tensors they go with.
    fn resolve(&mut self, call: &Call) -> Eval<Vec<Val>> {
        let tensor_dtype = |w: &Walker, branch: bool| {
            call.operands.iter().zip(&call.kinds).find_map(|((operand, _), kind)| match operand {
                Operand::Tensor(key) if matches!(kind, ParamKind::Branch) == branch => Some(w.tensor(*key).ty.dtype),
                _ => None,
            })
        };
        let mut vals = Vec::new();
        for ((operand, _), kind) in call.operands.iter().zip(&call.kinds) {
            let weak = match kind {
                ParamKind::ScalarOf(dtype) => Some(*dtype),
                ParamKind::Branch => tensor_dtype(self, true).or(call.dtype),
                _ => tensor_dtype(self, false).or(call.dtype),
            };
            vals.push(match operand {
                Operand::Tensor(key) => self.val(*key),
                operand => self.scalar(
                    operand,
                    weak.ok_or(Stop::at(
                        BreakKind::ARGUMENT,
                        call.whole,
                        "the element type of a scalar is not known here",
                    ))?,
                ),
            });
        }
        Ok(vals)
    }

    fn scalar(&mut self, operand: &Operand, dtype: DType) -> Val {
        let compute = dtype.compute();
        let constant = |literal| (Op::named("constant"), vec![Attr::Lit(literal), Attr::DType(compute)]);
        let (op, attrs) = match operand {
            Operand::Constant(value) => constant(value.literal(dtype)),
            Operand::Size(dim) => (Op::named("size"), vec![Attr::Dim(dim.clone()), Attr::DType(compute)]),
            Operand::Scalar(value) => {
                let local = self.fresh("s");
                let attrs = vec![Attr::Int(self.flow.pending.scalars.len() as i64)];
                self.flow.steps.push(Step::Scalar { local: local.clone(), dtype, value: value.clone() });
                self.flow.pending.scalars.push(local);
                (Op::named("scalar"), attrs)
            }
            Operand::Tensor(_) | Operand::Unknown | Operand::Poison => unreachable!("scalars only"),
        };
        let val = self.flow.pending.graph.push_typed(op, vec![], attrs, vec![Ty::new(compute, [])]);
        if op.name == "scalar" {
            self.flow.pending.graph.scalars.push(val);
        }
        val
    }

    /// Mixed element types are rustc's to report.
    fn check_dtypes(&self, op: Op, call: &Call, args: &[Val]) -> Eval<()> {
        let ty = |val: &Val| &self.flow.pending.graph.nodes[val.node as usize].outs[val.out as usize];
        if let Some(receiver) = args.first()
            && !op.accepts.contains(ty(receiver).dtype)
        {
            return Err(Stop::Silent);
        }
        let mut common = None;
        for (((operand, _), kind), arg) in call.operands.iter().zip(&call.kinds).zip(args) {
            let strict =
                matches!(kind, ParamKind::Operand | ParamKind::Tensor) && matches!(operand, Operand::Tensor(_));
            let wrong = match kind {
                ParamKind::TensorOf(dtype) => ty(arg).dtype != *dtype,
                _ => strict && *common.get_or_insert(ty(arg).dtype) != ty(arg).dtype,
            };
            if wrong && op.name != "where_cond" {
                return Err(Stop::Silent);
            }
        }
        Ok(())
    }

    fn node(&mut self, op: Op, args: &[Val], attrs: Vec<Attr>, whole: &Expr) -> Result<(Vec<Val>, Vec<Check>), Fault> {
        let names = |sym: Sym| self.syms[sym.0 as usize].name.clone();
        let mut rules = Rules { names: Some(&names), ..Rules::default() };
        let graph = &self.flow.pending.graph;
        let types: Vec<&Ty> = args.iter().map(|val| &graph.nodes[val.node as usize].outs[val.out as usize]).collect();
        let outs = op.types(&mut rules, &types, &attrs)?;
        let checks = rules.checks;
        let pending = &mut self.flow.pending;
        pending.at = whole.to_token_stream().into_iter().next().map(|token| token.span());
        pending.graph.places.push(Place { op: op.name.to_owned(), ..crate::diag::place(whole) });
        let results = outs.len() as u32;
        let first = pending.graph.push_typed(op, args.to_vec(), attrs, outs);
        pending.effects |= op.effect == OpEffect::Rng || pending.graph.may_fault(first.node);
        pending.graph.checks.extend(checks.iter().cloned().map(|check| (first.node, check)));
        Ok(((0..results).map(|out| Val { node: first.node, out }).collect(), checks))
    }
}
