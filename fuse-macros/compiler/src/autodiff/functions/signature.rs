//! The heads of functions that give gradients.

use super::reader::{Reader, Wanted, parameters};
use super::{Form, Refused};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{FnArg, GenericArgument, PathArguments, ReturnType, Signature, Type};

impl Reader<'_> {
    /// The parameters behind those of the function, and their types: the cotangent of the result, or a vector for each
    /// wanted parameter.
    pub fn further(&self, form: Form) -> Vec<(Ident, TokenStream)> {
        match form {
            Form::ValueAndGrad => vec![],
            Form::Vjp => vec![(self.cotangent(), self.result.cotangent())],
            Form::Hvp => {
                let vector = |Wanted { name, written, .. }: &Wanted| {
                    (self.free_name(&format!("{name}_vector")), quote!(&#written))
                };
                self.wanted.iter().map(vector).collect()
            }
        }
    }

    /// The name of the cotangent.
    pub fn cotangent(&self) -> Ident {
        self.free_name("cotangent")
    }

    /// The head of a function of this form.
    pub fn signature(&self, form: Form, further: &[(Ident, TokenStream)]) -> Signature {
        let mut signature = self.function.sig.clone();
        signature.ident = format_ident!("{}", form.name(), span = signature.ident.span());
        let (written, types) = (self.written, self.wanted.iter().map(|wanted| &wanted.written));
        let value = quote!((#written, (#(#types),*)));
        signature.inputs.extend(further.iter().map(|(name, ty)| -> FnArg { syn::parse_quote!(#name: #ty) }));
        let ReturnType::Type(_, output) = &mut signature.output else { unreachable!("the result has a type") };
        match self.is_fallible() {
            true => *first_argument_mut(output).expect("a `Result` of something") = syn::parse_quote!(#value),
            false => **output = syn::parse_quote!(#value),
        }
        signature
    }

    /// A head under bounds that the result does not meet.
    pub fn refused(&self, form: Form) -> Refused {
        let (mut signature, written) = (self.signature(form, &self.further(form)), self.written);
        // A bound without a lifetime would be checked here, and not where the function is called.
        let bound = syn::parse_quote!(for<'never> #written: ::fuse_runtime::Outcome);
        signature.generics.make_where_clause().predicates.push(bound);
        Refused { name: form.name(), signature }
    }

    /// Whether the result is in a `Result`.
    pub fn is_fallible(&self) -> bool {
        matches!(&self.function.sig.output, ReturnType::Type(_, ty) if ty.as_ref() != self.written)
    }

    /// A name for a further parameter: this one, unless a parameter has it.
    fn free_name(&self, wish: &str) -> Ident {
        let is_taken = |name: &Ident| self.parameters().any(|param| param == *name);
        let mut name = format_ident!("{wish}", span = self.function.sig.ident.span());
        while is_taken(&name) {
            name = format_ident!("{name}_");
        }
        name
    }

    fn parameters(&self) -> impl Iterator<Item = Ident> {
        parameters(self.function).map(|(name, _)| name)
    }
}

fn first_argument_mut(written: &mut Type) -> Option<&mut Type> {
    let Type::Path(path) = written else { return None };
    let PathArguments::AngleBracketed(list) = &mut path.path.segments.last_mut()?.arguments else { return None };
    list.args.iter_mut().find_map(|arg| match arg {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}
