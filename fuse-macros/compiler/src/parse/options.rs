//! Reads the arguments of `#[compile(..)]`.

use crate::diag::Diagnostics;
use crate::options::{Backend, MAX_ORDER, Mode, Numerics, Options, Precision};
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::{LitBool, LitFloat, LitStr, parse2};

const KNOWN: &str = "the options are `mode`, `backend`, `dynamic`, `fullgraph`, `numerics`, `precision`, `grad(..)`, `memory`, `deny(breaks)` and `companion`";

/// The options of an attribute over those of the block it stands in; mistakes go to `diag`, and the rest is read on.
pub fn options(mut options: Options, tokens: TokenStream, diag: &mut Diagnostics) -> Options {
    let mut given = BTreeSet::new();
    for argument in split(tokens) {
        match Argument::read(&argument) {
            Some(argument) if !given.insert(argument.name.to_string()) => {
                let message = format!("`{}` is given twice", argument.name);
                diag.error(&argument.name, message, Some("leave one of them out"));
            }
            Some(argument) => argument.set(&mut options, diag),
            None => {
                let written = crate::diag::place(&argument).text;
                diag.error(&argument, format!("`{written}` is no option"), Some(KNOWN));
            }
        }
    }
    options
}

/// The name of an option among the arguments of an attribute.
pub fn option_name(tokens: TokenStream, name: &str) -> Option<Ident> {
    split(tokens).iter().filter_map(Argument::read).map(|argument| argument.name).find(|ident| ident == name)
}

/// The arguments between commas.
fn split(tokens: TokenStream) -> Vec<TokenStream> {
    let mut arguments = vec![TokenStream::new()];
    for token in tokens {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => arguments.push(TokenStream::new()),
            _ => arguments.last_mut().expect("starts with one").extend([token]),
        }
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

/// `name`, `name = value` or `name(value)`, and what follows though it should not.
struct Argument {
    name: Ident,
    equals: bool,
    value: TokenStream,
    rest: TokenStream,
}

impl Argument {
    fn read(tokens: &TokenStream) -> Option<Argument> {
        let mut tokens = tokens.clone().into_iter().peekable();
        let Some(TokenTree::Ident(name)) = tokens.next() else { return None };
        let equals = tokens.next_if(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == '=')).is_some();
        let is_list =
            |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis);
        let value = match tokens.next_if(|token| equals || is_list(token)) {
            Some(TokenTree::Group(group)) if !equals => group.stream(),
            value => value.into_token_stream(),
        };
        Some(Argument { name, equals, value, rest: tokens.collect() })
    }

    fn set(&self, options: &mut Options, diag: &mut Diagnostics) {
        match self.name.to_string().as_str() {
            "mode" => self.word(Mode::from_word, Mode::WORDS, &mut options.mode, diag),
            "backend" => self.word(Backend::from_word, Backend::WORDS, &mut options.backend, diag),
            "numerics" => self.word(Numerics::from_word, Numerics::WORDS, &mut options.numerics, diag),
            "precision" => self.word(Precision::from_word, Precision::WORDS, &mut options.precision, diag),
            "dynamic" => options.dynamic = self.flag(diag),
            "fullgraph" if self.value.is_empty() && !self.equals => options.fullgraph = true,
            "fullgraph" => options.fullgraph = self.flag(diag).unwrap_or_default(),
            "deny" if !self.equals && self.value.to_string() == "breaks" => options.deny_breaks = true,
            "deny" => self.wrong("takes `breaks`", "write `deny(breaks)`", diag),
            "companion" => match parse2::<Ident>(self.value.clone()) {
                Ok(name) if self.equals => options.companion = Some(name.to_string()),
                _ => self.wrong("is a name", "write `companion = name`, without quotes", diag),
            },
            "grad" => self.gradients(options, diag),
            "memory" => {
                match parse2::<LitFloat>(self.value.clone()).ok().and_then(|share| share.base10_parse::<f64>().ok()) {
                    Some(share) if self.equals && (0.0..=1.0).contains(&share) => {
                        options.memory = (share * 100.0).round() as u8
                    }
                    _ => self.wrong("is a share from 0.0 to 1.0", "write `memory = 0.5`", diag),
                }
            }
            "inline" => {
                let help = "leave it out, and write the body where it is called";
                return diag.error(&self.name, "`inline` is not supported yet", Some(help));
            }
            name => return diag.error(&self.name, format!("unknown option `{name}`"), Some(KNOWN)),
        }
        if !self.rest.is_empty() {
            let written = crate::diag::place(&self.rest).text;
            let help = format!("put a comma after the option: `{}, ..`", self.name);
            diag.error(&self.rest, format!("`{written}` does not belong to `{}`", self.name), Some(&help));
        }
    }

    fn word<T>(&self, from_word: fn(&str) -> Option<T>, words: &[&str], target: &mut T, diag: &mut Diagnostics) {
        let word = parse2::<LitStr>(self.value.clone()).ok().filter(|_| self.equals);
        match word.and_then(|word| from_word(&word.value())) {
            Some(value) => *target = value,
            None => {
                let known: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                let (last, others) = known.split_last().expect("every option has words");
                let help = format!("write `{} = {last}`", self.name);
                self.wrong(&format!("is {} or {last}", others.join(", ")), &help, diag);
            }
        }
    }

    /// The parameters in `grad(w1, b1)`.
    fn gradients(&self, options: &mut Options, diag: &mut Diagnostics) {
        let wanted = &mut options.grad;
        if self.equals || self.value.is_empty() {
            return self.wrong("takes parameters", "write `grad(w, b)`, with the names of those it is for", diag);
        }
        for argument in split(self.value.clone()) {
            match Wanted::read(&argument) {
                Wanted::Parameter(name) if wanted.contains(&name) => {
                    diag.error(&name, format!("`{name}` is given twice"), Some("leave one of them out"));
                }
                Wanted::Parameter(name) => wanted.push(name),
                Wanted::Order(order) => options.grad_order = order,
                Wanted::Refused(message, help) => diag.error(&argument, message, Some(help)),
            }
        }
    }

    fn flag(&self, diag: &mut Diagnostics) -> Option<bool> {
        let flag = parse2::<LitBool>(self.value.clone()).ok().filter(|_| self.equals);
        if flag.is_none() {
            self.wrong("is `true` or `false`", &format!("write `{} = true`", self.name), diag);
        }
        flag.map(|flag| flag.value)
    }

    /// Reports a value that the option does not take, or that there is none.
    fn wrong(&self, takes: &str, help: &str, diag: &mut Diagnostics) {
        let name = &self.name;
        match self.value.is_empty() {
            true => diag.error(name, format!("`{name}` needs a value: it {takes}"), Some(help)),
            false => {
                let written = crate::diag::place(&self.value).text;
                diag.error(&self.value, format!("`{name}` {takes}, not {}", quoted(&written)), Some(help));
            }
        }
    }
}

/// One argument of `grad(..)`.
enum Wanted {
    Parameter(Ident),
    /// `order = 2`.
    Order(usize),
    Refused(String, &'static str),
}

impl Wanted {
    fn read(tokens: &TokenStream) -> Wanted {
        let written = crate::diag::place(tokens).text;
        match Argument::read(tokens) {
            Some(Argument { name, equals: false, value, rest }) if value.is_empty() && rest.is_empty() => {
                match name == "self" {
                    true => Wanted::Refused(
                        "`grad(self)` is not supported yet".to_owned(),
                        "take the tensors of `self` as parameters, and name those",
                    ),
                    false => Wanted::Parameter(name),
                }
            }
            Some(argument) if argument.name == "order" && argument.equals => match argument.value.to_string().parse() {
                Ok(order) if (1..=MAX_ORDER).contains(&order) && argument.rest.is_empty() => Wanted::Order(order),
                _ => Wanted::Refused(
                    format!("`{written}`: the order is a number from 1 to {MAX_ORDER}"),
                    "write `order = 2` for second derivatives",
                ),
            },
            _ => Wanted::Refused(format!("`{written}` is no parameter"), "write the name of a parameter alone"),
        }
    }
}

/// A value in quotes, its own if it has some.
fn quoted(written: &str) -> String {
    if written.starts_with('"') { written.to_owned() } else { format!("`{written}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use quote::quote;

    fn check(tokens: TokenStream, expected: Expect) {
        let mut diag = Diagnostics::default();
        let mut options = options(Options::default(), tokens, &mut diag);
        // How an identifier is shown depends on what was parsed before in this process.
        let grad: Vec<String> = options.grad.drain(..).map(|name| name.to_string()).collect();
        expected.assert_eq(&match diag.messages() {
            messages if messages.is_empty() => format!("{options:?} with gradients of {grad:?}"),
            messages => messages.join("\n"),
        });
    }

    #[test]
    fn every_option_is_read() {
        check(
            quote! { mode = "max-autotune", backend = "eager", dynamic = true, fullgraph, numerics = "fast", precision = "high",
            deny(breaks), companion = beside, grad(w, b, order = 2), memory = 0.25 },
            expect![[
                r#"Options { mode: MaxAutotune, backend: Eager, dynamic: Some(true), fullgraph: true, deny_breaks: true, numerics: Fast, precision: High, companion: Some("beside"), grad: [], memory: 25, grad_order: 2 } with gradients of ["w", "b"]"#
            ]],
        );
    }

    #[test]
    fn all_mistakes_are_reported() {
        check(
            quote! { mod = "fast", mode = "fastest", grad(x, x, self, 3, order = 9), deny(warnings), dynamic = false },
            expect![[r#"
                unknown option `mod`
                help: the options are `mode`, `backend`, `dynamic`, `fullgraph`, `numerics`, `precision`, `grad(..)`, `memory`, `deny(breaks)` and `companion`
                `mode` is "default", "reduce-overhead" or "max-autotune", not "fastest"
                help: write `mode = "max-autotune"`
                `x` is given twice
                help: leave one of them out
                `grad(self)` is not supported yet
                help: take the tensors of `self` as parameters, and name those
                `3` is no parameter
                help: write the name of a parameter alone
                `order = 9`: the order is a number from 1 to 4
                help: write `order = 2` for second derivatives
                `deny` takes `breaks`, not `warnings`
                help: write `deny(breaks)`"#]],
        );
    }
}
