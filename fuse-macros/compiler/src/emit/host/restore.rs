//! What an op that fails must not have changed.
//!
//! A function that returns a `Result` returns what an op in it fails with. Then the tensors behind its `&mut` parameters are as they
//! were, whatever was written before. A function that is one graph writes when all of it is done; one of several graphs, and an
//! original that runs op by op, keeps the old tensors and puts them back.

use super::signature::Signature;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{FnArg, GenericArgument, PathArguments, Type};

/// A body that writes to tensors of the caller before all of it is done.
pub fn restoring(value: &TokenStream, signature: &Signature) -> TokenStream {
    let Some(ty) = signature.fallible().filter(|ty| !borrows(ty)) else { return value.clone() };
    let written: Vec<Written> =
        signature.inputs().iter().filter_map(|(name, input)| Written::of(name, input)).collect();
    if written.is_empty() {
        return value.clone();
    }
    let names = written.iter().map(|written| &written.name);
    let keep = written.iter().map(Written::keep);
    let put_back = written.iter().map(Written::put_back);
    let (outcome, error) = (local("outcome"), local("error"));
    quote! {
        #(#keep)*
        let #outcome = {
            #(let #names = &mut *#names;)*
            ::fuse_runtime::error::catch(move || -> #ty { #value })
        };
        match #outcome {
            ::core::result::Result::Ok(#outcome) => #outcome,
            ::core::result::Result::Err(#error) => {
                #(#put_back)*
                ::fuse_runtime::error::raise(#error)
            }
        }
    }
}

/// A parameter whose tensors the function may write to.
struct Written {
    name: Ident,
    is_slice: bool,
}

impl Written {
    fn of(name: &Ident, input: &FnArg) -> Option<Written> {
        let FnArg::Typed(typed) = input else { return None };
        let Type::Reference(reference) = bare(&typed.ty) else { return None };
        let is_written = reference.mutability.is_some() && is_made_of_tensors(&reference.elem);
        let is_slice = matches!(bare(&reference.elem), Type::Slice(_));
        is_written.then(|| Written { name: name.clone(), is_slice })
    }

    fn keep(&self) -> TokenStream {
        let (name, old) = (&self.name, self.old());
        match self.is_slice {
            true => quote!(let #old = <[_]>::to_vec(&*#name);),
            false => quote!(let #old = ::core::clone::Clone::clone(&*#name);),
        }
    }

    fn put_back(&self) -> TokenStream {
        let (name, old) = (&self.name, self.old());
        match self.is_slice {
            true => quote!(<[_]>::clone_from_slice(&mut *#name, &#old);),
            false => quote!(*#name = #old;),
        }
    }

    fn old(&self) -> Ident {
        local(&format!("old_{}", self.name))
    }
}

fn local(name: &str) -> Ident {
    format_ident!("__{name}", span = Span::mixed_site())
}

/// Whether values of a type are tensors in containers of the standard library, which all can be cloned.
fn is_made_of_tensors(ty: &Type) -> bool {
    match bare(ty) {
        Type::Slice(slice) => is_made_of_tensors(&slice.elem),
        Type::Array(array) => is_made_of_tensors(&array.elem),
        Type::Tuple(tuple) => !tuple.elems.is_empty() && tuple.elems.iter().all(is_made_of_tensors),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| match last.ident.to_string().as_str() {
            "Tensor" => true,
            "Vec" | "Option" => only_argument(&last.arguments).is_some_and(is_made_of_tensors),
            _ => false,
        }),
        _ => false,
    }
}

fn only_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(list) = arguments else { return None };
    match list.args.first() {
        Some(GenericArgument::Type(ty)) => Some(ty),
        _ => None,
    }
}

/// Whether a result may hold on to a parameter; then the parameter is not there to be put back.
fn borrows(ty: &Type) -> bool {
    let text = ty.to_token_stream().to_string();
    text.contains(['&', '\'']) || text.contains("impl ")
}

fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Paren(paren) => bare(&paren.elem),
        Type::Group(group) => bare(&group.elem),
        other => other,
    }
}
