//! What comes beside a compiled function: the original, the CUDA source, the report.

use super::body::raw_string;
use super::signature::Signature;
use crate::pipeline::Compiled;
use crate::report::Explanation;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, Block, Type, Visibility};

/// The companion of a function or method.
pub struct Companion<'a> {
    /// The signature.
    pub signature: &'a Signature,
    /// The user's attributes.
    pub attrs: &'a [Attribute],
    /// The original body.
    pub block: &'a Block,
    /// What was compiled; `None` after a mistake.
    pub compiled: Option<&'a Compiled>,
}

impl Companion<'_> {
    /// The empty enum beside a function, with the functions that give gradients.
    pub fn of_function(&self, name: &Ident, vis: &Visibility, gradients: &TokenStream) -> TokenStream {
        let doc = format!("What comes beside the compiled function `{}`.", self.signature.name());
        let (cuda, explain) = (self.cuda(), self.explain());
        let eager = self.eager(&format_ident!("eager", span = name.span()), &quote!(pub));
        quote! {
            #[doc = #doc]
            #[allow(non_camel_case_types, dead_code, clippy::all, clippy::pedantic)]
            #vis enum #name {}
            #[allow(dead_code, clippy::all, clippy::pedantic)]
            impl #name {
                /// The generated CUDA source.
                pub const CUDA: &'static str = #cuda;
                /// The graphs, their kernels and the graph breaks.
                pub fn explain() -> &'static ::fuse_runtime::Explanation {
                    #explain
                }
                #eager
                #gradients
            }
        }
    }

    /// The members beside a method.
    pub fn of_method(&self, vis: &TokenStream) -> TokenStream {
        let name = self.signature.name();
        let (cuda_name, explain_name) = (self.method_cuda_name(), format_ident!("{name}_explain", span = name.span()));
        let (cuda, explain) = (self.cuda(), self.explain());
        let eager = self.eager(&self.method_eager(), vis);
        let cuda_doc = format!("The CUDA source generated for `{name}`.");
        let explain_doc = format!("The graphs, kernels and graph breaks of `{name}`.");
        quote! {
            #[doc = #cuda_doc]
            #vis const #cuda_name: &'static str = #cuda;
            #[doc = #explain_doc]
            #vis fn #explain_name() -> &'static ::fuse_runtime::Explanation {
                #explain
            }
            #eager
        }
    }

    /// The name of the original beside a method.
    pub fn method_eager(&self) -> Ident {
        let name = self.signature.name();
        format_ident!("{name}_eager", span = name.span())
    }

    /// An expression for the CUDA source of a method that a `static` may hold.
    pub fn method_cuda(&self, ty: &Type, is_concrete: bool) -> TokenStream {
        let (prefix, name) = (super::as_prefix(ty), self.method_cuda_name());
        // A static knows no generics of the impl, so there the text stands twice.
        if is_concrete { quote!(#prefix::#name) } else { self.cuda() }
    }

    fn method_cuda_name(&self) -> Ident {
        let name = self.signature.name();
        format_ident!("{}_CUDA", name.to_string().to_uppercase(), span = name.span())
    }

    fn cuda(&self) -> TokenStream {
        raw_string(&self.compiled.map(Compiled::cuda).unwrap_or_default())
    }

    fn eager(&self, name: &Ident, vis: &TokenStream) -> TokenStream {
        let doc = format!("The original of `{}`, op by op.", self.signature.name());
        // The original has docs of its own, and a symbol is exported once.
        let own = ["doc", "no_mangle", "export_name", "unsafe", "test"];
        let attrs = self.attrs.iter().filter(|attr| !own.iter().any(|name| attr.path().is_ident(name)));
        let (head, block) = (self.signature.renamed(name), self.block);
        quote! {
            #[doc = #doc]
            #(#attrs)*
            #vis #head #block
        }
    }

    fn explain(&self) -> TokenStream {
        let name = self.signature.name().to_string();
        let report = self.compiled.map_or_else(|| Explanation::new(name, &[], vec![]), Compiled::explanation);
        let text = raw_string(&report.to_text());
        quote!(::fuse_runtime::rt::explanation(#text))
    }
}
