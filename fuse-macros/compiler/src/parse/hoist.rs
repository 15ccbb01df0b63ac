//! Host code that reads tensors: the tensor expressions in it are computed by a graph before it runs.

use super::Walker;
use super::flow::generated;
use super::names::{Name, Names, as_ident, mentions};
use super::program::Step;
use super::syntax::{EXPRESSION_MACROS, SAME_VALUE, SHAPE_QUERIES, has_effects, is_compound, strip};
use super::types::HostTy;
use super::value::{Home, TensorKey, Value};
use crate::op::{self, Op};
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{BinOp, Expr, Token, parse_quote};

impl Walker<'_> {
    /// Puts variables in the place of tensor expressions. What is evaluated after host code with effects stays as it is,
    /// and so does what may not be evaluated at all; there the emitted code runs the ops one by one.
    ///
    /// Gives the tensors that [`Walker::settle`] must have in their variables after the launch.
    pub fn hoist(&mut self, expr: &mut Expr) -> Vec<TensorKey> {
        let mut hoister = Hoister { walker: self, wanted: vec![], effects: false };
        hoister.visit(expr);
        hoister.wanted
    }

    /// Gives hoisted tensors the variables that stand for them.
    pub fn settle(&mut self, hoisted: &[TensorKey]) {
        for &key in hoisted {
            let local = generated("t", key.0);
            let place = self.place(key).tokens.clone();
            if local != place.to_string() {
                self.flow.steps.push(Step::Capture { local, value: quote!(#place.clone()) });
            }
        }
    }

    /// Evaluates an expression; if that fails, nothing has happened.
    pub fn attempt(&mut self, expr: &Expr) -> Option<Value> {
        let saved = self.save();
        match self.eval(expr, &HostTy::Unknown) {
            Ok(value) => Some(value),
            Err(_) => {
                self.restore(saved);
                None
            }
        }
    }

    /// Whether an expression only asks a variable of the emitted code for its shape or device.
    fn is_shape_query(&self, expr: &Expr) -> bool {
        let Expr::MethodCall(call) = strip(expr) else { return false };
        let Some(ident) = as_ident(strip(&call.receiver)) else { return false };
        let method = call.method.to_string();
        SHAPE_QUERIES.contains(&method.as_str())
            && self.var(&Name::of(ident)).is_some_and(|var| var.bound && !var.dirty)
    }

    /// An expression in which tensors of the graph being built are not asked for their shapes: formulas stand there.
    pub fn without_queries(&mut self, expr: &Expr) -> Expr {
        let mut expr = expr.clone();
        Queries(self).visit_expr_mut(&mut expr);
        expr
    }
}

/// Whether a method only reads what it is called on, if that is a tensor.
fn is_read(method: &str) -> bool {
    Op::find(method).is_some_and(|op| op.call != op::Call::Mutating) || SAME_VALUE.contains(&method)
}

/// Replaces shape queries by formulas.
struct Queries<'w, 'a>(&'w mut Walker<'a>);

impl VisitMut for Queries<'_, '_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let is_query = matches!(strip(expr), Expr::MethodCall(_)) && !self.0.is_shape_query(strip(expr));
        match is_query.then(|| self.0.shape_query(expr)).flatten() {
            Some(value) if value.is_number() => {
                let tokens = self.0.value_tokens(&value);
                *expr = parse_quote!(#tokens);
            }
            _ => syn::visit_mut::visit_expr_mut(self, expr),
        }
    }

    fn visit_expr_closure_mut(&mut self, _: &mut syn::ExprClosure) {}
}

struct Hoister<'w, 'a> {
    walker: &'w mut Walker<'a>,
    wanted: Vec<TensorKey>,
    /// Whether host code with effects comes before what is visited next.
    effects: bool,
}

impl Hoister<'_, '_> {
    fn visit(&mut self, expr: &mut Expr) {
        if !self.walker.mentions_tensor(expr) {
            self.effects |= has_effects(expr);
            return;
        }
        let plain = match strip(expr) {
            Expr::Reference(reference) => strip(&reference.expr),
            other => other,
        };
        if as_ident(plain).is_some() || self.walker.is_shape_query(plain) {
            return;
        }
        if !self.effects && self.replace(expr) {
            return;
        }
        self.visit_parts(expr);
    }

    fn replace(&mut self, expr: &mut Expr) -> bool {
        // A closure, macro or block has no value of its own; asking for one would only copy the state.
        if !matches!(
            strip(expr),
            Expr::MethodCall(_)
                | Expr::Binary(_)
                | Expr::Unary(_)
                | Expr::Call(_)
                | Expr::Reference(_)
                | Expr::Index(_)
        ) {
            return false;
        }
        match self.walker.attempt(expr) {
            Some(Value::Tensor { key, by_ref }) => {
                let tokens = match self.walker.tensor(key).home {
                    Home::Host(_) => self.walker.value_tokens(&Value::Tensor { key, by_ref }),
                    Home::Pending(_) => {
                        self.wanted.push(key);
                        let local = generated("t", key.0);
                        let shared = self.walker.flow.vars.iter().any(|var| var.value.tensors().contains(&key));
                        match (by_ref, shared) {
                            (true, _) => quote!(&#local),
                            (false, true) => quote!(#local.clone()),
                            (false, false) => quote!(#local),
                        }
                    }
                };
                *expr = parse_quote!(#tokens);
                true
            }
            Some(Value::Dim(dim)) if !self.walker.is_other_integer(expr) => {
                let tokens = self.walker.dim_tokens(&dim);
                *expr = parse_quote!(#tokens);
                true
            }
            _ => false,
        }
    }

    fn visit_parts(&mut self, expr: &mut Expr) {
        match expr {
            Expr::MethodCall(call) => {
                match is_read(&call.method.to_string()) {
                    true => self.visit(&mut call.receiver),
                    false => self.visit_receiver(&mut call.receiver),
                }
                call.args.iter_mut().for_each(|arg| self.visit(arg));
                self.effects |= !["item", "to_vec"].iter().any(|read| call.method == read);
            }
            Expr::Call(call) => {
                call.args.iter_mut().for_each(|arg| self.visit(arg));
                self.effects = true;
            }
            Expr::Binary(binary) if is_compound(binary) => {
                self.visit_place(&mut binary.left);
                self.visit(&mut binary.right);
                self.effects = true;
            }
            Expr::Binary(binary) => {
                self.visit(&mut binary.left);
                if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) {
                    self.effects |= has_effects(&binary.right);
                } else {
                    self.visit(&mut binary.right);
                }
            }
            Expr::Macro(mac) => self.visit_macro(&mut mac.mac),
            Expr::Unary(e) => self.visit(&mut e.expr),
            Expr::Paren(e) => self.visit(&mut e.expr),
            Expr::Group(e) => self.visit(&mut e.expr),
            Expr::Reference(e) if e.mutability.is_some() => self.visit_place(&mut e.expr),
            Expr::Reference(e) => self.visit(&mut e.expr),
            Expr::Cast(e) => self.visit(&mut e.expr),
            Expr::Try(e) => self.visit(&mut e.expr),
            Expr::Field(e) => self.visit(&mut e.base),
            Expr::Let(e) => self.visit(&mut e.expr),
            Expr::Assign(e) => self.visit(&mut e.right),
            Expr::Index(e) => {
                self.visit(&mut e.expr);
                self.visit(&mut e.index);
            }
            Expr::Tuple(e) => e.elems.iter_mut().for_each(|elem| self.visit(elem)),
            Expr::Array(e) => e.elems.iter_mut().for_each(|elem| self.visit(elem)),
            Expr::Struct(e) => e.fields.iter_mut().for_each(|field| self.visit(&mut field.expr)),
            _ => self.effects = true,
        }
    }

    /// What a method is called on may be written to, so a place stays one.
    fn visit_receiver(&mut self, receiver: &mut Expr) {
        match strip(receiver) {
            Expr::Index(_) | Expr::Field(_) => self.visit_place(receiver),
            _ => self.visit(receiver),
        }
    }

    /// A place that is written to stays; what says which it is does not have to.
    fn visit_place(&mut self, place: &mut Expr) {
        match place {
            Expr::Index(e) => {
                self.visit_place(&mut e.expr);
                self.visit(&mut e.index);
            }
            Expr::Field(e) => self.visit_place(&mut e.base),
            Expr::Paren(e) => self.visit_place(&mut e.expr),
            Expr::Group(e) => self.visit_place(&mut e.expr),
            Expr::Path(_) => {}
            other => self.visit_parts(other),
        }
    }

    /// Arguments of macros that take expressions are visited; a format string and named arguments stay.
    fn visit_macro(&mut self, mac: &mut syn::Macro) {
        let name = mac.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        if EXPRESSION_MACROS.contains(&name.as_str())
            && let Ok(mut args) = parser.parse2(mac.tokens.clone())
            // Where the condition of an assertion holds, its message is never evaluated.
            && !name.contains("assert")
        {
            for arg in args.iter_mut().filter(|arg| !matches!(arg, Expr::Assign(_))) {
                self.visit(arg);
            }
            mac.tokens = quote!(#args);
        }
        self.effects = true;
    }
}

/// The variables whose values host code reads; asking a variable of the emitted code for its shape is no reading.
pub fn value_reads(walker: &Walker, expr: &Expr) -> Names {
    let mut reads = Reads { walker, names: Names::new() };
    syn::visit::Visit::visit_expr(&mut reads, expr);
    reads.names
}

struct Reads<'w, 'a> {
    walker: &'w Walker<'a>,
    names: Names,
}

impl<'ast> syn::visit::Visit<'ast> for Reads<'_, '_> {
    fn visit_expr(&mut self, expr: &'ast Expr) {
        if !self.walker.is_shape_query(expr) {
            syn::visit::visit_expr(self, expr);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.names.extend(path.get_ident().map(Name::of));
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let name = mac.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        match parser.parse2(mac.tokens.clone()) {
            Ok(args) if EXPRESSION_MACROS.contains(&name.as_str()) => {
                for arg in &args {
                    match arg {
                        Expr::Lit(literal) => self.names.extend(mentions(&quote!(format!(#literal)))),
                        Expr::Assign(named) => self.visit_expr(&named.right),
                        arg => self.visit_expr(arg),
                    }
                }
            }
            _ => self.names.extend(mentions(&mac.tokens)),
        }
    }
}
