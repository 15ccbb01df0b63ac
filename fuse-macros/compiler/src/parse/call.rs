//! A call of an op: its arguments are read by the row's signature and become a node of the graph being built.

use super::Walker;
use super::eval::{Eval, Stop, symbol, text};
use super::operand::Operand;
use super::syntax::{has_effects, strip};
use super::types::HostTy;
use super::value::{TensorKey, Value};
use crate::diag::BreakKind;
use crate::op::{Attr, Fault, Op, ParamKind};
use crate::types::{DType, Dim};
use quote::ToTokens;
use syn::Expr;

/// A call of an op with its operands read.
pub struct Call<'e> {
    /// The whole expression.
    pub whole: &'e Expr,
    /// Operands in order, each with the expression it comes from.
    pub operands: Vec<(Operand, &'e Expr)>,
    /// What kind of parameter each operand is.
    pub kinds: Vec<ParamKind>,
    /// Attributes in order.
    pub attrs: Vec<Attr>,
    /// Where attributes come from: axes with what they are, and anything else.
    sources: Vec<(Option<i64>, &'e Expr)>,
    /// The element type of a result without tensor operands.
    pub dtype: Option<DType>,
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
    pub fn culprit(&self, fault: &Fault) -> &'e Expr {
        if let Some((_, expr)) = fault.operand.and_then(|k| self.operands.get(k)) {
            return expr;
        }
        let axis = self.sources.iter().rfind(|(axis, _)| axis.is_some() && *axis == fault.axis);
        axis.or(self.sources.last()).map_or(self.whole, |(_, expr)| expr)
    }

    /// The operator that a call is written as.
    pub fn operator(&self) -> Option<(Op, String)> {
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
                let attr = self.attribute(op, kind, arg, call.dtype)?;
                call.came_from(&attr, arg);
                call.attrs.push(attr);
            }
        }
        Ok(())
    }

    fn tensor_list<'e>(&mut self, arg: &'e Expr) -> Eval<Vec<(Operand, &'e Expr)>> {
        let array = match strip(arg) {
            Expr::Reference(reference) => strip(&reference.expr),
            other => other,
        };
        if let Expr::Array(array) = array {
            return array.elems.iter().map(|elem| Ok((self.tensor_operand(ParamKind::Tensor, elem)?, elem))).collect();
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

    fn attribute(&mut self, op: Op, kind: ParamKind, arg: &Expr, dtype: Option<DType>) -> Eval<Attr> {
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
                Value::Host(_) if dtype.is_some_and(DType::is_float) => match float_literal(arg) {
                    Some(bound) => Ok(Attr::Float(bound)),
                    None => Err(unknown()),
                },
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
    pub fn size(&mut self, arg: &Expr) -> Eval<Dim> {
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
}

/// A float that is written out with its type.
fn float_literal(expr: &Expr) -> Option<f64> {
    match strip(expr) {
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(float), .. }) => float.base10_parse().ok(),
        Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => float_literal(expr).map(|x| -x),
        _ => None,
    }
}

fn unknown_count(whole: &Expr, op: Op) -> Stop {
    let reason = format!("how many parts `{}` gives is not known here: write `let [a, b] = ..;`", op.name);
    Stop::at(BreakKind::ARGUMENT, whole, reason)
}

/// The break of an op whose element type nothing tells.
pub fn unknown_dtype(whole: &Expr, op: Op) -> Stop {
    Stop::at(BreakKind::TYPE, whole, format!("the element type that `{}` gives is not known here", op.name))
}
