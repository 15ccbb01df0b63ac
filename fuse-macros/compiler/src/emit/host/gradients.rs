//! The functions that give gradients, beside a function or method.

use super::body::Body;
use super::signature::Signature;
use crate::pipeline::{Compiled, Differentiated};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::FnArg;

/// `value_and_grad` and `vjp` in the companion of a function, whose original has this path.
pub fn of_function(compiled: Option<&Compiled>, original: &TokenStream, cuda: &TokenStream) -> TokenStream {
    let all = compiled.into_iter().flat_map(|compiled| &compiled.gradients);
    all.map(|found| Beside { found, original, cuda }.tokens(&found.signature.ident, &quote!(pub))).collect()
}

/// `forward_value_and_grad` and `forward_vjp` beside a method `forward`, whose original has this name.
pub fn of_method(compiled: Option<&Compiled>, original: &Ident, cuda: &TokenStream, vis: &TokenStream) -> TokenStream {
    let all = compiled.into_iter().flat_map(|compiled| &compiled.gradients);
    let path = quote!(Self::#original);
    all.map(|found| {
        let name = format_ident!("{}_{}", found.compiled.program.name, found.name, span = original.span());
        Beside { found, original: &path, cuda }.tokens(&name, vis)
    })
    .collect()
}

/// One such function.
struct Beside<'a> {
    found: &'a Differentiated,
    /// The path of the original.
    original: &'a TokenStream,
    /// An expression for the CUDA source.
    cuda: &'a TokenStream,
}

impl Beside<'_> {
    fn tokens(&self, name: &Ident, vis: &TokenStream) -> TokenStream {
        let Differentiated { compiled, signature, .. } = self.found;
        let signature = Signature::of(&syn::Signature { ident: name.clone(), ..signature.clone() });
        let (doc, eager, head) = (self.doc(), self.eager(&signature), signature.emitted());
        let body = match compiled.program.eager {
            true => signature.returned(&eager),
            false => Body { compiled, signature: &signature, eager, cuda: self.cuda }.tokens(),
        };
        quote! {
            #[doc = #doc]
            #[allow(unused, clippy::all, clippy::pedantic)]
            #vis #head {
                #body
            }
        }
    }

    fn doc(&self) -> String {
        let function = &self.found.compiled.program.name;
        match self.found.name {
            "vjp" => format!("The result of `{function}`, and the gradients of its product with `cotangent`."),
            _ => format!("The result of `{function}`, and its gradients."),
        }
    }

    /// The same on the eager tape, by the original.
    fn eager(&self, signature: &Signature) -> TokenStream {
        let (original, wanted) = (self.original, &self.found.wanted);
        let inputs = signature.inputs();
        let is_reference = |name: &Ident| inputs.iter().any(|(own, ty)| own == name && is_reference(ty));
        let params = wanted.iter().map(|name| if is_reference(name) { quote!(#name) } else { quote!(&#name) });
        let given = |name: &Ident| match wanted.contains(name) && is_reference(name) {
            true => quote!(&#name),
            false => quote!(#name),
        };
        let cotangent = (self.found.name == "vjp").then(|| &inputs.last().expect("the cotangent comes last").0);
        let args = signature
            .receiver()
            .into_iter()
            .chain(inputs.iter().filter(|(name, _)| Some(name) != cotangent).map(|(name, _)| given(name)));
        let call = quote!(|(#(#wanted),*)| #original(#(#args),*));
        match cotangent {
            Some(cotangent) => quote!(::fuse_runtime::rt::vjp((#(#params),*), #cotangent.raw(), #call)),
            None => quote!(::fuse_runtime::value_and_grad((#(#params),*), #call)),
        }
    }
}

fn is_reference(input: &FnArg) -> bool {
    matches!(input, FnArg::Typed(typed) if matches!(*typed.ty, syn::Type::Reference(_)))
}
