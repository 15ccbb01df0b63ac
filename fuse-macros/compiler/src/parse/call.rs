//! A call of an op: its arguments are read by the row's signature and become a node of the graph being built.

use super::Walker;
use super::eval::{Eval, Stop, symbol, text};
use super::names::{Name, as_ident, mentions};
use super::program::Step;
use super::syntax::{has_effects, strip};
use super::types::HostTy;
use super::value::{TensorKey, Value, Var};
use crate::diag::BreakKind;
use crate::op::{Attr, Check, Fault, Literal, Op, OpEffect, ParamKind, Rules, Val, with_names};
use crate::types::{DType, Dim, Sym, Ty};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::Expr;

/// A call of an op with its operands read.
pub struct Call<'e> {
    /// The whole expression.
    pub whole: &'e Expr,
    /// Operands in order, each with the expression it comes from.
    pub operands: Vec<(Operand, &'e Expr)>,
    /// What kind of parameter each operand is.
    kinds: Vec<ParamKind>,
    /// Attributes in order.
    attrs: Vec<Attr>,
    /// Where attributes come from: axes with what they are, and anything else.
    sources: Vec<(Option<i64>, &'e Expr)>,
    /// The element type of a result without tensor operands.
    dtype: Option<DType>,
}

/// An operand of an op.
#[derive(Clone)]
pub enum Operand {
    /// A tensor.
    Tensor(TensorKey),
    /// A scalar known at compile time.
    Constant(Constant),
    /// A host integer as a formula.
    Size(Dim),
    /// A host scalar, read where the op is.
    Scalar(TokenStream),
    /// What may be a tensor, but nothing tells its type.
    Unknown,
    /// The result of a mistake that was reported.
    Poison,
}

/// A scalar known at compile time.
#[derive(Clone)]
pub enum Constant {
    /// A float as written.
    Float(String),
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
}

impl Constant {
    /// The constant as rustc would read it for this element type.
    fn literal(&self, dtype: DType) -> Literal {
        match self {
            // Halves take their scalars in f32; a decimal must be rounded once, not by way of f64.
            Constant::Float(text) if matches!(dtype, DType::F32 | DType::F16 | DType::BF16) => {
                Literal::Float(text.parse::<f32>().unwrap_or(f32::NAN).into())
            }
            Constant::Float(text) => Literal::Float(text.parse().unwrap_or(f64::NAN)),
            Constant::Int(k) => Literal::Int(*k),
            Constant::Bool(flag) => Literal::Bool(*flag),
        }
    }
}

impl<'e> Call<'e> {
    /// A call whose operands are broadcast operands of one element type.
    pub fn of(whole: &'e Expr, receiver: Option<(Operand, &'e Expr)>, others: Vec<(Operand, &'e Expr)>) -> Call<'e> {
        let operands: Vec<_> = receiver.into_iter().chain(others).collect();
        let kinds = vec![ParamKind::Operand; operands.len()];
        Call { whole, operands, kinds, attrs: vec![], sources: vec![], dtype: None }
    }

    /// Remembers the expression an attribute comes from, of a list of axes every element.
    fn came_from(&mut self, attr: &Attr, arg: &'e Expr) {
        self.sources.push((None, arg));
        match (attr, strip(arg)) {
            (Attr::Int(axis), _) => self.sources.push((Some(*axis), arg)),
            (Attr::Ints(axes), Expr::Array(array)) => {
                self.sources.extend(axes.iter().map(|&axis| Some(axis)).zip(&array.elems));
            }
            _ => {}
        }
    }

    /// What a fault points at: an operand, an axis, or else the last thing that is no operand.
    fn culprit(&self, fault: &Fault) -> &'e Expr {
        if let Some((_, expr)) = fault.operand.and_then(|k| self.operands.get(k)) {
            return expr;
        }
        let axis = self.sources.iter().rfind(|(axis, _)| axis.is_some() && *axis == fault.axis);
        axis.or(self.sources.last()).map_or(self.whole, |(_, expr)| expr)
    }

    /// The operator that a call is written as.
    fn operator(&self) -> Option<(Op, String)> {
        let (symbol, operands) = match strip(self.whole) {
            Expr::Binary(binary) => (symbol(&binary.op), 2),
            Expr::Unary(unary) => (unary.op.to_token_stream().to_string(), 1),
            _ => return None,
        };
        Op::operator(&symbol, operands).map(|op| (op, symbol))
    }
}

impl Walker<'_> {
    /// Reads the arguments of a call by the op's signature, and adds the node.
    pub fn named_op(
        &mut self,
        op: Op,
        whole: &Expr,
        receiver: Option<(TensorKey, &Expr)>,
        args: Vec<&Expr>,
        type_arg: Option<DType>,
        count: Option<usize>,
    ) -> Eval<Value> {
        let before = self.flow.temps.len();
        self.flow.temps.extend(receiver.map(|(key, _)| key));
        let receiver = receiver.map(|(key, expr)| (Operand::Tensor(key), expr));
        let mut call = Call { dtype: type_arg, ..Call::of(whole, receiver, vec![]) };
        let read = self.arguments(op, &mut call, args, count);
        self.release(before);
        read?;
        self.apply(op, call)
    }

    fn arguments<'e>(&mut self, op: Op, call: &mut Call<'e>, args: Vec<&'e Expr>, count: Option<usize>) -> Eval<()> {
        let mut args = args.into_iter();
        for param in op.params {
            match param.kind {
                ParamKind::Count => {
                    let count = count.ok_or_else(|| unknown_count(call.whole, op))?;
                    call.attrs.push(Attr::Int(count as i64));
                }
                ParamKind::DType => {
                    let dtype = call.dtype.ok_or_else(|| unknown_dtype(call.whole, op))?;
                    call.attrs.push(Attr::DType(dtype));
                }
                kind => {
                    let arg = args.next().ok_or(Stop::Silent)?;
                    self.argument(op, call, kind, arg)?;
                }
            }
        }
        match args.next() {
            Some(_) => Err(Stop::Silent),
            None => Ok(()),
        }
    }

    fn argument<'e>(&mut self, op: Op, call: &mut Call<'e>, kind: ParamKind, arg: &'e Expr) -> Eval<()> {
        use ParamKind::*;
        match kind {
            Operand | Branch | Tensor | TensorOf(_) | Scalar | ScalarOf(_) => {
                let operand = match kind {
                    Scalar | ScalarOf(_) => self.operand(arg)?,
                    _ => self.tensor_operand(kind, arg)?,
                };
                self.hold(&operand);
                call.operands.push((operand, arg));
                call.kinds.push(kind);
            }
            Tensors => {
                for (operand, expr) in self.tensor_list(arg)? {
                    self.hold(&operand);
                    call.operands.push((operand, expr));
                    call.kinds.push(Tensor);
                }
            }
            Mask => {
                if let Some((operand, expr)) = self.mask(arg)? {
                    self.hold(&operand);
                    call.operands.push((operand, expr));
                    call.kinds.push(Mask);
                }
            }
            Device => self.device(arg)?,
            _ => {
                let attr = self.attribute(op, kind, arg)?;
                call.came_from(&attr, arg);
                call.attrs.push(attr);
            }
        }
        Ok(())
    }

    /// An operand that is a tensor or, where the op allows it, a scalar.
    fn tensor_operand(&mut self, kind: ParamKind, arg: &Expr) -> Eval<Operand> {
        let needs_tensor = matches!(kind, ParamKind::Tensor | ParamKind::TensorOf(_));
        match self.operand(arg)? {
            Operand::Scalar(_) if needs_tensor => Ok(Operand::Unknown),
            Operand::Constant(_) | Operand::Size(_) if needs_tensor => Err(Stop::Silent),
            operand => Ok(operand),
        }
    }

    /// An operand: a tensor, a constant, a formula, or a host scalar that is read now.
    pub fn operand(&mut self, expr: &Expr) -> Eval<Operand> {
        // A value read on the host may be a scalar of the next op.
        if let Some(read) = self.scalar_read(expr) {
            let stop = self.read_stop(&read);
            if let Stop::Break(kind, at, reason) = stop {
                self.diag.graph_break(kind, at, reason);
            }
            return Ok(Operand::Scalar(self.launch_reads(expr)));
        }
        match self.eval(expr, &HostTy::Unknown) {
            Ok(Value::Tensor { key, .. }) => Ok(Operand::Tensor(key)),
            Ok(Value::Float(text)) => Ok(Operand::Constant(Constant::Float(text))),
            Ok(Value::Bool(flag)) => Ok(Operand::Constant(Constant::Bool(flag))),
            Ok(Value::Dim(Dim::Const(k))) => Ok(Operand::Constant(Constant::Int(k))),
            Ok(Value::Dim(dim)) => Ok(Operand::Size(dim)),
            Ok(Value::Host(ty) | Value::Captured(_, ty)) if self.may_be_tensor(expr, &ty) => Ok(Operand::Unknown),
            Ok(Value::Captured(local, _)) => Ok(Operand::Scalar(quote!(#local))),
            Ok(Value::Host(_)) => Ok(Operand::Scalar(self.host_tokens(expr))),
            Ok(Value::Poison) => Ok(Operand::Poison),
            Ok(Value::Tuple(_) | Value::Array(_) | Value::Made(..) | Value::Unset) => Err(Stop::Silent),
            Err(stop) => Err(stop),
        }
    }

    /// Whether a host value is a tensor because it is borrowed or used as one, or may be one because a call with tensors
    /// made it.
    fn may_be_tensor(&self, expr: &Expr, ty: &HostTy) -> bool {
        let var = as_ident(strip(expr)).and_then(|ident| self.var(&Name::of(ident)));
        ty.is_open()
            || *ty == HostTy::TensorLike
            || var.is_some_and(Var::has_open_type)
            || matches!(strip(expr), Expr::Reference(_))
    }

    /// Tensors of unknown type beside known ones: the binding to annotate is named, or the op runs on the host.
    fn refuse_unknown(&mut self, op: Op, call: &Call) -> Eval<bool> {
        let like = call.operands.iter().find_map(|(operand, _)| match operand {
            Operand::Tensor(key) => Some(*key),
            _ => None,
        });
        let mut reported = false;
        for (_, expr) in call.operands.iter().filter(|(operand, _)| matches!(operand, Operand::Unknown)) {
            if !self.report_unknown(expr, like) {
                let reason = format!("`{}` takes `{}`, whose type is not known here", op.name, text(expr));
                return Err(Stop::at(BreakKind::TYPE, expr, reason));
            }
            reported = true;
        }
        Ok(reported)
    }

    fn tensor_list<'e>(&mut self, arg: &'e Expr) -> Eval<Vec<(Operand, &'e Expr)>> {
        let array = match strip(arg) {
            Expr::Reference(reference) => strip(&reference.expr),
            other => other,
        };
        if let Expr::Array(array) = array {
            return array.elems.iter().map(|elem| Ok((self.operand(elem)?, elem))).collect();
        }
        match self.eval(arg, &HostTy::Unknown)? {
            Value::Array(parts) => {
                Ok(parts.iter().flat_map(Value::tensors).map(|key| (Operand::Tensor(key), arg)).collect())
            }
            _ => {
                Err(Stop::at(BreakKind::HOST, arg, format!("`{}` is a list whose length is not known here", text(arg))))
            }
        }
    }

    /// An optional mask: `()` and `None` are none.
    fn mask<'e>(&mut self, arg: &'e Expr) -> Eval<Option<(Operand, &'e Expr)>> {
        let none = match strip(arg) {
            Expr::Tuple(tuple) => tuple.elems.is_empty(),
            Expr::Path(path) => path.path.is_ident("None"),
            _ => false,
        };
        if none {
            return Ok(None);
        }
        match self.operand(arg)? {
            Operand::Scalar(_) | Operand::Unknown => {
                Err(Stop::at(BreakKind::TYPE, arg, format!("`{}` may be a mask or none", text(arg))))
            }
            operand => Ok(Some((operand, arg))),
        }
    }

    /// The device of a graph is that of its tensors, so a constructor must say `x.device()`.
    fn device(&mut self, arg: &Expr) -> Eval<()> {
        let inner = match strip(arg) {
            Expr::Reference(reference) => strip(&reference.expr),
            other => other,
        };
        if let Expr::MethodCall(call) = inner
            && call.method == "device"
            && let Ok(Value::Tensor { key, .. }) = self.eval(&call.receiver, &HostTy::Unknown)
        {
            self.val(key);
            return Ok(());
        }
        Err(Stop::at(BreakKind::ARGUMENT, arg, "the device is not that of a tensor of the graph"))
    }

    fn attribute(&mut self, op: Op, kind: ParamKind, arg: &Expr) -> Eval<Attr> {
        let unknown = || {
            let reason = format!("`{}` needs `{}` at compile time", op.name, text(arg));
            Stop::at(BreakKind::ARGUMENT, arg, reason)
        };
        match kind {
            ParamKind::Axis => self.dim(arg).and_then(|dim| dim.as_const()).map(Attr::Int).ok_or_else(unknown),
            ParamKind::Axes => {
                let axes = self.dim_list(arg)?.ok_or_else(unknown)?;
                axes.iter().map(Dim::as_const).collect::<Option<Vec<i64>>>().map(Attr::Ints).ok_or_else(unknown)
            }
            ParamKind::Dim => Ok(Attr::Dim(self.size(arg)?)),
            ParamKind::Dims => self.dim_list(arg)?.map(Attr::Dims).ok_or_else(unknown),
            ParamKind::Bound => match self.eval(arg, &HostTy::Unknown)? {
                Value::Float(text) => text.parse().map(Attr::Float).map_err(|_| unknown()),
                _ => Ok(Attr::Dim(self.size(arg)?)),
            },
            ParamKind::Bool => match self.eval(arg, &HostTy::Unknown)? {
                Value::Bool(flag) => Ok(Attr::Bool(flag)),
                _ => match self.flow.facts.get(&arg.to_token_stream().to_string()) {
                    Some(&flag) => Ok(Attr::Bool(flag)),
                    None if !has_effects(arg) => Err(Stop::Flag(Box::new(arg.clone()))),
                    None => Err(unknown()),
                },
            },
            ParamKind::Choice(_, words) => {
                let Expr::Path(path) = strip(arg) else { return Err(unknown()) };
                let word = path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
                words.iter().position(|known| *known == word).map(|k| Attr::Int(k as i64)).ok_or_else(unknown)
            }
            _ => unreachable!("operands and types are read elsewhere"),
        }
    }

    /// A size or position: a formula, or a host integer that is read now.
    fn size(&mut self, arg: &Expr) -> Eval<Dim> {
        if let Some(dim) = self.dim(arg) {
            return Ok(dim);
        }
        match self.eval(arg, &HostTy::Unknown)? {
            Value::Host(_) => {
                let value = self.host_tokens(arg);
                Ok(self.host_int(text(arg), value))
            }
            _ => Err(Stop::Silent),
        }
    }

    /// A list of sizes: an array expression, or a value that is one.
    fn dim_list(&mut self, arg: &Expr) -> Eval<Option<Vec<Dim>>> {
        if let Expr::Array(array) = strip(arg) {
            return array.elems.iter().map(|elem| self.size(elem)).collect::<Eval<Vec<Dim>>>().map(Some);
        }
        let Some(Value::Array(parts)) = self.shape_query(arg) else { return Ok(None) };
        Ok(parts.into_iter().map(|part| if let Value::Dim(dim) = part { Some(dim) } else { None }).collect())
    }

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
        pending.graph.places.push(crate::diag::place(whole));
        let results = outs.len() as u32;
        let first = pending.graph.push_typed(op, args.to_vec(), attrs, outs);
        pending.effects |= op.effect == OpEffect::Rng || pending.graph.may_fault(first.node);
        pending.graph.checks.extend(checks.iter().cloned().map(|check| (first.node, check)));
        Ok(((0..results).map(|out| Val { node: first.node, out }).collect(), checks))
    }

    /// A check between dims that the user gave different names: what is named differently is not equal. A name against a
    /// number or a formula is left to run time.
    fn clash(&self, checks: &[Check]) -> Option<Check> {
        let named = |dim: &Dim| matches!(dim, Dim::Sym(sym) if self.syms[sym.0 as usize].origin.is_some());
        checks.iter().find(|check| named(&check.left) && named(&check.right)).cloned()
    }

    /// Reports two names where equal extents are needed, in the words the op has for two numbers.
    fn report_clash(&mut self, op: Op, check: &Check, call: &Call, args: &[Val], attrs: &[Attr]) {
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

    fn report_fault(&mut self, fault: Fault, call: &Call) {
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

    /// The read in an expression that is a scalar read from a tensor: `x.mean_all().item() * 2.0`.
    pub fn scalar_read(&self, expr: &Expr) -> Option<Expr> {
        match strip(expr) {
            Expr::MethodCall(call) if call.method == "item" && self.mentions_tensor(&call.receiver) => {
                Some(strip(expr).clone())
            }
            Expr::MethodCall(call) if !has_effects(expr) => self.scalar_read(&call.receiver),
            Expr::Unary(unary) => self.scalar_read(&unary.expr),
            Expr::Cast(cast) => self.scalar_read(&cast.expr),
            Expr::Binary(binary) => {
                let (left, right) = (self.scalar_read(&binary.left), self.scalar_read(&binary.right));
                let host = |side: &Expr, read: &Option<Expr>| read.is_some() || !self.mentions_tensor(side);
                (host(&binary.left, &left) && host(&binary.right, &right)).then(|| left.or(right))?
            }
            _ => None,
        }
    }

    /// The break that a read on the host is.
    pub fn read_stop(&self, read: &Expr) -> Stop {
        Stop::at(BreakKind::ITEM, read, "`item` needs the value on the host")
    }

    /// Launches what a scalar read needs, and gives the host expression that is left.
    fn launch_reads(&mut self, expr: &Expr) -> TokenStream {
        let mut expr = expr.clone();
        let hoisted = self.hoist(&mut expr);
        let mut live = self.live.clone();
        live.extend(mentions(&expr));
        self.flush(&live, &hoisted);
        self.sync(&mentions(&expr), &live);
        quote!(#expr)
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

fn unknown_count(whole: &Expr, op: Op) -> Stop {
    let reason = format!("how many parts `{}` gives is not known here: write `let [a, b] = ..;`", op.name);
    Stop::at(BreakKind::ARGUMENT, whole, reason)
}

fn unknown_dtype(whole: &Expr, op: Op) -> Stop {
    Stop::at(BreakKind::TYPE, whole, format!("the element type that `{}` gives is not known here", op.name))
}
