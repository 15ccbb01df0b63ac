//! Which variables a piece of code mentions.
//!
//! Names are compared together with their hygiene, since a function that a `macro_rules` macro writes may hold two
//! different variables of one spelling. Over-approximation is safe everywhere here: a name too many costs an output.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::{Expr, Local, Pat, PatIdent, Stmt};

/// A variable's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    text: String,
    hygiene: String,
}

/// Names in a fixed order.
pub type Names = BTreeSet<Name>;

impl Name {
    /// The name an identifier stands for.
    pub fn of(ident: &Ident) -> Name {
        Name::spelled(&ident.unraw().to_string(), ident.span())
    }

    fn spelled(text: &str, span: proc_macro2::Span) -> Name {
        // The compiler shows a span as `#3 bytes(10..20)`, where `#3` is the expansion it belongs to. Nothing stable gives more.
        let shown = format!("{span:?}");
        let hygiene = shown.split(' ').next().filter(|mark| mark.starts_with('#')).unwrap_or_default();
        Name { text: text.to_owned(), hygiene: hygiene.to_owned() }
    }

    /// Its spelling.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Every name that may be a variable in these tokens, inline format arguments included.
pub fn mentions(tokens: &impl ToTokens) -> Names {
    let mut names = Names::new();
    scan(tokens.to_token_stream(), false, &mut names);
    names
}

fn scan(tokens: TokenStream, in_macro: bool, names: &mut Names) {
    let mut after_dot = false;
    let mut after_bang = false;
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let (was_after_dot, was_after_bang) = (after_dot, after_bang);
        (after_dot, after_bang) = (false, false);
        match tree {
            TokenTree::Ident(ident) if !was_after_dot => {
                names.insert(Name::of(&ident));
            }
            TokenTree::Ident(_) => {}
            TokenTree::Punct(punct) => {
                // A single dot makes the next word a field or method; `..` does not.
                let doubled = matches!(trees.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '.');
                after_dot = punct.as_char() == '.' && !was_after_dot && !doubled;
                after_bang = punct.as_char() == '!';
                if punct.as_char() == '.' && doubled {
                    trees.next();
                }
            }
            TokenTree::Group(group) => {
                let macro_body = was_after_bang && group.delimiter() != Delimiter::None;
                scan(group.stream(), in_macro || macro_body, names);
            }
            TokenTree::Literal(literal) if in_macro => {
                for text in format_arguments(&literal.to_string()) {
                    names.insert(Name::spelled(&text, literal.span()));
                }
            }
            TokenTree::Literal(_) => {}
        }
    }
}

/// The variables a format string reads: `{y}`, `{y:?}`, `{:width$}`, `{:.precision$}`.
fn format_arguments(literal: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for part in literal.replace("{{", "").split('{').skip(1) {
        let inside = part.split('}').next().unwrap_or_default();
        let (argument, spec) = inside.split_once(':').unwrap_or((inside, ""));
        found.push(argument.trim().to_owned());
        for sized in spec.split('$').rev().skip(1) {
            let word = sized.rsplit(|c| !is_word(c)).next().unwrap_or_default();
            found.push(word.to_owned());
        }
    }
    found.retain(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_') && word.chars().all(is_word));
    found
}

/// The names a pattern binds, in order.
pub fn bound(pat: &Pat) -> Vec<Ident> {
    struct Bound(Vec<Ident>);
    impl<'ast> Visit<'ast> for Bound {
        fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
            self.0.push(pat.ident.clone());
            syn::visit::visit_pat_ident(self, pat);
        }
    }
    let mut bound = Bound(Vec::new());
    bound.visit_pat(pat);
    bound.0
}

/// The names that statements read before they bind them, given what is read after them.
pub fn free(stmts: &[Stmt], after: Names) -> Names {
    stmts.iter().rev().fold(after, |mut names, stmt| {
        match stmt {
            Stmt::Local(Local { pat, init, .. }) => {
                for ident in bound(pat) {
                    names.remove(&Name::of(&ident));
                }
                names.extend(init.iter().flat_map(|init| mentions(&InitTokens(init))));
            }
            Stmt::Expr(Expr::Assign(assign), _) => {
                if let Some(ident) = as_ident(&assign.left) {
                    names.remove(&Name::of(ident));
                } else {
                    names.extend(mentions(&assign.left));
                }
                names.extend(mentions(&assign.right));
            }
            other => names.extend(mentions(other)),
        }
        names
    })
}

struct InitTokens<'a>(&'a syn::LocalInit);

impl ToTokens for InitTokens<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.expr.to_tokens(tokens);
        if let Some((_, diverge)) = &self.0.diverge {
            diverge.to_tokens(tokens);
        }
    }
}

/// The single identifier an expression consists of.
pub fn as_ident(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        Expr::Paren(paren) => as_ident(&paren.expr),
        Expr::Group(group) => as_ident(&group.expr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn texts(names: Names) -> Vec<String> {
        names.into_iter().map(|name| name.text).collect()
    }

    #[test]
    fn fields_methods_and_strings_outside_macros_are_no_variables() {
        let tokens = quote! { a.b.c(d, "{e}") + f };
        assert_eq!(texts(mentions(&tokens)), ["a", "d", "f"]);
    }

    #[test]
    fn ranges_do_not_hide_their_end() {
        assert_eq!(texts(mentions(&quote! { 0..n })), ["n"]);
        assert_eq!(texts(mentions(&quote! { a..=b })), ["a", "b"]);
    }

    #[test]
    fn format_strings_read_inline_arguments() {
        let tokens = quote! { println!("{y} {z:?} {:w$} {{no}} {:.p$}", 1, 2) };
        assert_eq!(texts(mentions(&tokens)), ["p", "println", "w", "y", "z"]);
    }

    #[test]
    fn a_binding_ends_the_life_of_its_name() {
        let block: syn::Block = syn::parse_quote! {{ let h = a + b; h = c; let k = h; k }};
        assert_eq!(texts(free(&block.stmts, Names::new())), ["a", "b", "c"]);
    }
}
