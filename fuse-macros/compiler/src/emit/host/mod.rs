//! The user's function with launches in the place of tensor ops, and the companion beside it.
//!
//! Emitted code holds no `unsafe`. Generated variables have mixed-site spans, so they never meet the user's names; the
//! user's own tokens keep their spans, so rustc's messages point at the user's lines.

mod body;
mod companion;
mod given;
mod gradients;
mod restore;
mod signature;

use crate::options::Options;
use crate::pipeline::Compiled;
use body::Body;
use companion::Companion;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use restore::restoring;
use signature::Signature;
use syn::{Block, ImplItem, ImplItemFn, ItemFn, ItemImpl, Type};

/// What is emitted for a function. Without `compiled`, after a mistake, that is the original and a companion around it.
pub fn function(item: &ItemFn, compiled: Option<&Compiled>, options: &Options) -> TokenStream {
    let signature = Signature::of(&item.sig).with_body(&item.block);
    let name = options
        .companion
        .as_ref()
        .map_or_else(|| item.sig.ident.clone(), |name| format_ident!("{name}", span = item.sig.ident.span()));
    let companion = Companion { signature: &signature, attrs: &item.attrs, block: &item.block, compiled };
    let cuda = quote!(#name::CUDA);
    let body = match compiled.filter(|compiled| !compiled.program.eager) {
        Some(compiled) => {
            let eager = signature.call(&quote!(#name::eager), None);
            Body { compiled, signature: &signature, eager, cuda: &cuda }.tokens()
        }
        None => op_by_op(compiled, &signature, &item.block),
    };
    let (attrs, vis, head) = (&item.attrs, &item.vis, signature.emitted());
    let told = breaks_told(compiled).filter(|_| item.sig.constness.is_none());
    let beside = companion.of_function(&name, vis, &gradients::of_function(compiled, &quote!(#name::eager), &cuda));
    quote! {
        #(#attrs)*
        #[allow(unused, clippy::all, clippy::pedantic)]
        #vis #head {
            #told
            #body
        }
        #beside
    }
}

/// What is emitted for an `impl` block: its methods compiled, and another block with what comes beside them.
pub fn methods(item: &ItemImpl, mut compile: impl FnMut(&ImplItemFn) -> Option<Compiled>) -> TokenStream {
    let mut emitted = item.clone();
    let mut beside = Vec::new();
    for member in &mut emitted.items {
        if let ImplItem::Fn(method) = member
            && method.sig.inputs.iter().any(crate::parse::may_hold_tensor)
        {
            let compiled = compile(method);
            beside.push(compile_method(method, item, compiled.as_ref()));
        }
    }
    let (generics, _, clause) = item.generics.split_for_impl();
    let ty = &item.self_ty;
    quote! {
        #emitted
        #[allow(dead_code, clippy::all, clippy::pedantic)]
        impl #generics #ty #clause {
            #(#beside)*
        }
    }
}

fn compile_method(method: &mut ImplItemFn, item: &ItemImpl, compiled: Option<&Compiled>) -> TokenStream {
    let original = method.clone();
    let signature = Signature::of(&original.sig).with_body(&original.block);
    let companion = Companion { signature: &signature, attrs: &original.attrs, block: &original.block, compiled };
    let cuda = companion.method_cuda(&item.self_ty, item.generics.params.is_empty());
    let body = match compiled.filter(|compiled| !compiled.program.eager) {
        Some(compiled) => {
            let eager = companion.method_eager();
            let path = quote!(Self::#eager);
            let eager = signature.call(&path, Some(&original.sig));
            Body { compiled, signature: &signature, eager, cuda: &cuda }.tokens()
        }
        None => op_by_op(compiled, &signature, &original.block),
    };
    let sig = signature.emitted_signature();
    method.sig = sig;
    method.attrs.push(syn::parse_quote!(#[allow(unused, clippy::all, clippy::pedantic)]));
    let told = breaks_told(compiled);
    method.block = syn::parse_quote!({ #told #body });
    let vis = if item.trait_.is_some() {
        quote!(pub)
    } else {
        let vis = &original.vis;
        quote!(#vis)
    };
    let gradients = gradients::of_method(compiled, &companion.method_eager(), &cuda, &vis);
    [companion.of_method(&vis), gradients].into_iter().collect()
}

/// The original as the body of the function, behind the checks on entry.
fn op_by_op(compiled: Option<&Compiled>, signature: &Signature, block: &Block) -> TokenStream {
    let entry = compiled.map(|compiled| body::entry(&compiled.program));
    let original = restoring(&signature.original(block), signature);
    signature.returned(&quote!(#entry #original))
}

/// Tells whoever asks with `FUSE_LOG=break` where host code runs between the graphs of a function.
fn breaks_told(compiled: Option<&Compiled>) -> Option<TokenStream> {
    let program = &compiled?.program;
    let name = &program.name;
    let breaks =
        program.breaks.iter().map(|b| format!("{} at {}:{}:{}: {}", b.code, b.file, b.line, b.column, b.reason));
    let breaks: Vec<String> = breaks.collect();
    (!breaks.is_empty()).then(|| quote!(::fuse_runtime::rt::tell_breaks(#name, &[#(#breaks),*]);))
}

/// A type as a path prefix: `<Model>`.
fn as_prefix(ty: &Type) -> TokenStream {
    quote!(<#ty>)
}
