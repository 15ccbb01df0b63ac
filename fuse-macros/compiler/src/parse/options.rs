//! Reads the arguments of `#[compile(..)]`.

use crate::diag::Diagnostics;
use crate::options::{Backend, Mode, Numerics, Options, Precision};
use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{LitBool, LitStr, Token, parenthesized};

const KNOWN: &str =
    "`mode`, `backend`, `dynamic`, `fullgraph`, `numerics`, `precision`, `grad(..)`, `deny(breaks)`, `companion`";

/// The options of an attribute; mistakes go to `diag`, and the rest is read on.
pub fn options(tokens: TokenStream, diag: &mut Diagnostics) -> Options {
    let mut options = Options::default();
    let parser = |input: ParseStream| {
        while !input.is_empty() {
            let name = Ident::parse_any(input)?;
            option(&name, input, &mut options, diag)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        diag.syntax(error);
    }
    options
}

fn option(name: &Ident, input: ParseStream, options: &mut Options, diag: &mut Diagnostics) -> syn::Result<()> {
    match name.to_string().as_str() {
        "mode" => word(input, Mode::from_word, Mode::WORDS, &mut options.mode, "mode", diag),
        "backend" => word(input, Backend::from_word, Backend::WORDS, &mut options.backend, "backend", diag),
        "numerics" => word(input, Numerics::from_word, Numerics::WORDS, &mut options.numerics, "numerics", diag),
        "precision" => word(input, Precision::from_word, Precision::WORDS, &mut options.precision, "precision", diag),
        "dynamic" => {
            options.dynamic = Some(flag(input)?);
            Ok(())
        }
        "fullgraph" => {
            options.fullgraph = !input.peek(Token![=]) || flag(input)?;
            Ok(())
        }
        "deny" => deny(name, input, options, diag),
        "companion" => {
            input.parse::<Token![=]>()?;
            options.companion = Some(input.parse::<Ident>()?.to_string());
            Ok(())
        }
        "grad" => {
            skip_arguments(input)?;
            diag.error(name, "gradients are not supported yet", Some("leave `grad(..)` out"));
            Ok(())
        }
        _ => {
            skip_value(input)?;
            diag.error(name, format!("unknown option `{name}`"), Some(&format!("the options are {KNOWN}")));
            Ok(())
        }
    }
}

fn word<T>(
    input: ParseStream,
    from_word: fn(&str) -> Option<T>,
    words: &[&str],
    target: &mut T,
    option: &str,
    diag: &mut Diagnostics,
) -> syn::Result<()> {
    input.parse::<Token![=]>()?;
    let literal: LitStr = input.parse()?;
    match from_word(&literal.value()) {
        Some(value) => *target = value,
        None => {
            let known = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
            let message = format!("`{option}` is never \"{}\"", literal.value());
            diag.error(&literal, message, Some(&format!("write one of {known}")));
        }
    }
    Ok(())
}

fn flag(input: ParseStream) -> syn::Result<bool> {
    input.parse::<Token![=]>()?;
    Ok(input.parse::<LitBool>()?.value)
}

fn deny(name: &Ident, input: ParseStream, options: &mut Options, diag: &mut Diagnostics) -> syn::Result<()> {
    if !input.peek(syn::token::Paren) {
        diag.error(name, "`deny` needs what to deny", Some("write `deny(breaks)`"));
        return Ok(());
    }
    let content;
    parenthesized!(content in input);
    let what = Ident::parse_any(&content)?;
    skip_value(&content)?;
    match what.to_string().as_str() {
        "breaks" => options.deny_breaks = true,
        _ => diag.error(&what, format!("`{what}` cannot be denied"), Some("write `deny(breaks)`")),
    }
    Ok(())
}

fn skip_arguments(input: ParseStream) -> syn::Result<()> {
    if input.peek(syn::token::Paren) {
        let content;
        parenthesized!(content in input);
        content.parse::<TokenStream>()?;
    }
    Ok(())
}

/// Skips to the next comma, so that the options after a wrong one are read too.
fn skip_value(input: ParseStream) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use quote::quote;

    fn check(tokens: TokenStream, expected: Expect) {
        let mut diag = Diagnostics::default();
        let options = options(tokens, &mut diag);
        expected.assert_eq(&match diag.messages() {
            messages if messages.is_empty() => format!("{options:?}"),
            messages => messages.join("\n"),
        });
    }

    #[test]
    fn every_option_is_read() {
        check(
            quote! { mode = "max-autotune", backend = "eager", dynamic = true, fullgraph, numerics = "fast", precision = "high",
            deny(breaks), companion = beside },
            expect![[
                r#"Options { mode: MaxAutotune, backend: Eager, dynamic: Some(true), fullgraph: true, deny_breaks: true, numerics: Fast, precision: High, companion: Some("beside") }"#
            ]],
        );
    }

    #[test]
    fn all_mistakes_are_reported() {
        check(
            quote! { mod = "fast", mode = "fastest", grad(x), deny(warnings), dynamic = false },
            expect![[r#"
                unknown option `mod`
                help: the options are `mode`, `backend`, `dynamic`, `fullgraph`, `numerics`, `precision`, `grad(..)`, `deny(breaks)`, `companion`
                `mode` is never "fastest"
                help: write one of "default", "reduce-overhead", "max-autotune"
                gradients are not supported yet
                help: leave `grad(..)` out
                `warnings` cannot be denied
                help: write `deny(breaks)`"#]],
        );
    }
}
