//! The signature as emitted: without `#[dims]`, and with a name for every parameter.

use crate::parse::{parameter_name, speaks_of_tensors};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprReturn, FnArg, GenericParam, Pat, ReturnType, Stmt, Type};

/// How a function takes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// By value.
    Owned,
    /// By `&mut`.
    Exclusive,
    /// By `&`.
    Shared,
}

/// A function's signature, as written and as emitted.
pub struct Signature {
    /// As written, but for `#[dims]`.
    original: syn::Signature,
    /// With a name for every parameter.
    emitted: syn::Signature,
    /// Whether the body gives its values as `Ok` and `Err`, whatever the type of the result is called.
    gives_results: bool,
}

impl Signature {
    /// Prepares a signature.
    pub fn of(sig: &syn::Signature) -> Signature {
        let mut original = sig.clone();
        for input in &mut original.inputs {
            let attrs = match input {
                FnArg::Typed(typed) => &mut typed.attrs,
                FnArg::Receiver(receiver) => &mut receiver.attrs,
            };
            attrs.retain(|attr| !attr.path().is_ident("dims"));
        }
        let mut emitted = original.clone();
        for (index, input) in emitted.inputs.iter_mut().enumerate() {
            if let FnArg::Typed(typed) = input {
                let name = parameter_name(index, typed);
                *typed.pat = Pat::Ident(syn::PatIdent {
                    attrs: vec![],
                    by_ref: None,
                    mutability: None,
                    ident: name,
                    subpat: None,
                });
            }
        }
        Signature { original, emitted, gives_results: false }
    }

    /// The same of a function with this body.
    pub fn with_body(self, block: &Block) -> Signature {
        Signature { gives_results: gives_results(block), ..self }
    }

    /// A parameter by its name in the compiled function, and how it is taken.
    pub fn parameter(&self, name: &Ident) -> Option<(&Ident, Taken)> {
        self.emitted.inputs.iter().find_map(|input| {
            let FnArg::Typed(typed) = input else { return None };
            let Pat::Ident(pat) = &*typed.pat else { return None };
            let taken = match &*typed.ty {
                Type::Reference(reference) if reference.mutability.is_some() => Taken::Exclusive,
                Type::Reference(_) => Taken::Shared,
                _ => Taken::Owned,
            };
            (pat.ident == *name).then_some((&pat.ident, taken))
        })
    }

    /// The parameters but `self` by their names.
    pub fn inputs(&self) -> Vec<(Ident, &FnArg)> {
        let named = |input: &'_ FnArg| match input {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(pat) => Some(pat.ident.clone()),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        };
        self.emitted.inputs.iter().filter_map(|input| Some((named(input)?, input))).collect()
    }

    /// `self`, if there is one.
    pub fn receiver(&self) -> Option<TokenStream> {
        self.emitted.receiver().map(|receiver| receiver.self_token.to_token_stream())
    }

    /// A body under this head. Failures of ops, eager or compiled, are panics with an error as payload until here.
    pub fn returned(&self, value: &TokenStream) -> TokenStream {
        match self.fallible() {
            Some(ty) => quote!(::fuse_runtime::rt::fallible(move || -> #ty { #value })),
            None => value.clone(),
        }
    }

    /// The head of the compiled function.
    pub fn emitted(&self) -> TokenStream {
        self.emitted.to_token_stream()
    }

    /// The signature of the compiled function.
    pub fn emitted_signature(&self) -> syn::Signature {
        self.emitted.clone()
    }

    /// The head of the original under another name.
    pub fn renamed(&self, name: &Ident) -> TokenStream {
        syn::Signature { ident: name.clone(), ..self.original.clone() }.to_token_stream()
    }

    /// The original body under the emitted head: patterns of parameters are unpacked first.
    pub fn original(&self, block: &Block) -> TokenStream {
        let unpack = self.original.inputs.iter().zip(&self.emitted.inputs).filter_map(|pair| match pair {
            (FnArg::Typed(written), FnArg::Typed(named)) if written.pat != named.pat => {
                let (pattern, name) = (&written.pat, &named.pat);
                Some(quote!(let #pattern = #name;))
            }
            _ => None,
        });
        let stmts = &block.stmts;
        quote!(#(#unpack)* #(#stmts)*)
    }

    /// A call that hands every parameter on.
    pub fn call(&self, path: &TokenStream, method: Option<&syn::Signature>) -> TokenStream {
        let args = self.emitted.inputs.iter().map(|input| match input {
            FnArg::Receiver(receiver) => {
                let this = &receiver.self_token;
                quote!(#this)
            }
            FnArg::Typed(typed) => typed.pat.to_token_stream(),
        });
        let generics = if method.is_some() || !self.takes_turbofish() { quote!() } else { self.turbofish() };
        let awaits = self.emitted.asyncness.map(|_| quote!(.await));
        quote!(#path #generics (#(#args),*) #awaits)
    }

    /// Type and const parameters, where they may be written out.
    fn turbofish(&self) -> TokenStream {
        let params: Vec<TokenStream> = self
            .emitted
            .generics
            .params
            .iter()
            .filter_map(|param| match param {
                GenericParam::Type(ty) => Some(ty.ident.to_token_stream()),
                GenericParam::Const(param) => Some(param.ident.to_token_stream()),
                GenericParam::Lifetime(_) => None,
            })
            .collect();
        if params.is_empty() { quote!() } else { quote!(::<#(#params),*>) }
    }

    fn takes_turbofish(&self) -> bool {
        self.emitted.inputs.iter().all(|input| match input {
            FnArg::Typed(typed) => !matches!(typed.ty.as_ref(), Type::ImplTrait(_)),
            FnArg::Receiver(_) => true,
        })
    }

    /// The type of the result, if it is a `Result` that failures of ops go into.
    pub fn fallible(&self) -> Option<&Type> {
        let ReturnType::Type(_, ty) = &self.emitted.output else { return None };
        // A function without tensors among its parameters and results may fail with any type.
        let is_special = self.emitted.asyncness.is_some() || self.emitted.constness.is_some();
        if is_special || !speaks_of_tensors(&self.emitted) {
            return None;
        }
        match ty.as_ref() {
            Type::Path(path) => {
                let is_named_so = path.path.segments.last().is_some_and(|last| last.ident == "Result");
                (is_named_so || self.gives_results).then_some(ty.as_ref())
            }
            _ => None,
        }
    }

    /// The function's name.
    pub fn name(&self) -> &Ident {
        &self.original.ident
    }
}

/// Whether a value that a body gives is written as `Ok(..)` or `Err(..)`.
fn gives_results(block: &Block) -> bool {
    struct Returned(bool);
    impl<'ast> Visit<'ast> for Returned {
        fn visit_expr_return(&mut self, returned: &'ast ExprReturn) {
            self.0 |= returned.expr.as_deref().is_some_and(is_result);
            visit::visit_expr_return(self, returned);
        }
        // What is returned there is no value of this body.
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
        fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
        fn visit_item(&mut self, _: &'ast syn::Item) {}
    }
    let mut returned = Returned(ends_in_result(block));
    returned.visit_block(block);
    returned.0
}

fn ends_in_result(block: &Block) -> bool {
    matches!(block.stmts.last(), Some(Stmt::Expr(tail, None)) if is_result(tail))
}

/// Whether an expression is `Ok(..)` or `Err(..)`, or one of its arms is.
fn is_result(expr: &Expr) -> bool {
    match expr {
        Expr::Call(call) => matches!(&*call.func, Expr::Path(path) if is_variant(&path.path)),
        Expr::Paren(paren) => is_result(&paren.expr),
        Expr::Group(group) => is_result(&group.expr),
        Expr::Block(block) => ends_in_result(&block.block),
        Expr::If(branch) => {
            let otherwise = branch.else_branch.as_ref();
            ends_in_result(&branch.then_branch) || otherwise.is_some_and(|(_, arm)| is_result(arm))
        }
        Expr::Match(found) => found.arms.iter().any(|arm| is_result(&arm.body)),
        _ => false,
    }
}

fn is_variant(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|last| last.ident == "Ok" || last.ident == "Err")
}
