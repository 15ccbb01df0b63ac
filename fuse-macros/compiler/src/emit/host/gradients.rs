//! The functions that give gradients, beside a function or method.

use super::body::Body;
use super::signature::Signature;
use crate::autodiff::functions::Refused;
use crate::pipeline::{Compiled, Differentiated};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::FnArg;

/// `value_and_grad` and `vjp` in the companion of a function, whose original has this path.
pub fn of_function(compiled: Option<&Compiled>, original: &TokenStream, cuda: &TokenStream) -> TokenStream {
    let all = compiled.into_iter().flat_map(|compiled| &compiled.gradients);
    let path = compiled.and_then(followed).map(|name| quote!(#name));
    let path = path.as_ref().unwrap_or(original);
    let derived = all.map(|found| Beside { found, path, cuda }.tokens(&found.signature.ident, &quote!(pub)));
    derived.chain(refused(compiled, &quote!(pub), |name| format_ident!("{name}"))).collect()
}

/// The function itself, where a tape follows its graphs.
fn followed(compiled: &Compiled) -> Option<Ident> {
    compiled.followed.as_ref().map(|_| format_ident!("{}", compiled.program.name))
}

/// `forward_value_and_grad` and `forward_vjp` beside a method `forward`, whose original has this name.
pub fn of_method(compiled: Option<&Compiled>, original: &Ident, cuda: &TokenStream, vis: &TokenStream) -> TokenStream {
    let all = compiled.into_iter().flat_map(|compiled| &compiled.gradients);
    let path = compiled.and_then(followed).unwrap_or_else(|| original.clone());
    let path = quote!(Self::#path);
    let method = compiled.map(|compiled| compiled.program.name.as_str()).unwrap_or_default();
    let called = |name: &str| format_ident!("{method}_{name}", span = original.span());
    let derived = all.map(|found| Beside { found, path: &path, cuda }.tokens(&called(found.name), vis));
    derived.chain(refused(compiled, vis, called)).collect()
}

/// What the result has no gradients for: a call of it does not compile, and says what does.
fn refused(
    compiled: Option<&Compiled>,
    vis: &TokenStream,
    called: impl Fn(&str) -> Ident,
) -> impl Iterator<Item = TokenStream> {
    let all = compiled.into_iter().flat_map(|compiled| &compiled.refused);
    all.map(move |Refused { name, signature }| {
        let head = Signature::of(&syn::Signature { ident: called(name), ..signature.clone() }).emitted();
        quote! {
            #[doc(hidden)]
            #[allow(unused, clippy::all, clippy::pedantic)]
            #vis #head {
                ::core::unreachable!("nothing meets the bounds")
            }
        }
    })
}

/// One such function.
struct Beside<'a> {
    found: &'a Differentiated,
    /// The path of what a tape follows: the function, or its original.
    path: &'a TokenStream,
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
            "hvp" => format!("The result of `{function}`, and the products of its second derivatives with vectors."),
            _ => format!("The result of `{function}`, and its gradients."),
        }
    }

    /// The same on the tape.
    fn eager(&self, signature: &Signature) -> TokenStream {
        let (path, wanted) = (self.path, &self.found.wanted);
        let inputs = signature.inputs();
        let is_reference = |name: &Ident| inputs.iter().any(|(own, ty)| own == name && is_reference(ty));
        let params = wanted.iter().map(|name| if is_reference(name) { quote!(#name) } else { quote!(&#name) });
        let given = |name: &Ident| match wanted.contains(name) && is_reference(name) {
            true => quote!(&#name),
            false => quote!(#name),
        };
        let further = &self.found.further;
        let args = signature
            .receiver()
            .into_iter()
            .chain(inputs.iter().filter(|(name, _)| !further.contains(name)).map(|(name, _)| given(name)));
        let call = quote!(|(#(#wanted),*)| #path(#(#args),*));
        match self.found.name {
            "vjp" => {
                let vjp = format_ident!("{}", if signature.fallible().is_some() { "try_vjp" } else { "vjp" });
                let names = further.iter().map(Ident::to_string);
                quote!(::fuse_runtime::rt::#vjp((#(#params),*), #(#names, &#further,)* #call))
            }
            "hvp" => quote!(::fuse_runtime::rt::hvp((#(#params),*), &[#(#further.raw()),*], #call)),
            _ => quote!(::fuse_runtime::value_and_grad((#(#params),*), #call)),
        }
    }
}

fn is_reference(input: &FnArg) -> bool {
    matches!(input, FnArg::Typed(typed) if matches!(*typed.ty, syn::Type::Reference(_)))
}
