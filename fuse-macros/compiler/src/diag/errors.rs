//! Collects errors and breaks while a function is read; both point at the user's tokens.

use super::{Break, BreakKind};
use crate::graph::Place;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;
use std::path::Path;

/// Everything found so far. Errors do not stop the reading, so that all of them are reported.
#[derive(Default)]
pub struct Diagnostics {
    errors: Vec<syn::Error>,
    breaks: Vec<(Break, TokenStream)>,
}

impl Diagnostics {
    /// Reports a mistake at these tokens, with a way out.
    pub fn error(&mut self, at: impl ToTokens, message: impl AsRef<str>, help: Option<&str>) {
        let text = match help {
            Some(help) => format!("{}\nhelp: {help}", message.as_ref()),
            None => message.as_ref().to_owned(),
        };
        let error = syn::Error::new_spanned(at, text);
        let same = |e: &syn::Error| e.to_string() == error.to_string() && start(e.span()) == start(error.span());
        // A statement that is read once for each path through the function reports its mistakes once.
        if !self.errors.iter().any(same) {
            self.errors.push(error);
        }
    }

    /// Reports a mistake that syn found.
    pub fn syntax(&mut self, error: syn::Error) {
        self.errors.push(error);
    }

    /// Records a graph break at these tokens.
    pub fn graph_break(&mut self, kind: BreakKind, at: impl ToTokens, reason: impl Into<String>) {
        let place = place(&at);
        let (reason, hint) = (reason.into(), kind.hint.to_owned());
        let found = Break {
            code: kind.code.to_owned(),
            reason,
            file: place.file,
            line: place.line,
            column: place.column,
            hint,
        };
        if !self.breaks.iter().any(|(known, _)| *known == found) {
            self.breaks.push((found, at.to_token_stream()));
        }
    }

    /// Adds all that others have found.
    pub fn extend(&mut self, others: Diagnostics) {
        self.errors.extend(others.errors);
        self.breaks.extend(others.breaks);
    }

    /// How many breaks were recorded.
    pub fn break_count(&self) -> usize {
        self.breaks.len()
    }

    /// Why and where the first break after the first `count` is.
    pub fn break_after(&self, count: usize) -> Option<(String, TokenStream)> {
        self.breaks.get(count).map(|(found, at)| (found.reason.clone(), at.clone()))
    }

    /// Forgets the breaks recorded after the first `count`.
    pub fn forget_breaks(&mut self, count: usize) {
        self.breaks.truncate(count);
    }

    /// Turns every break into an error, as `fullgraph` and `deny(breaks)` ask for. What stands inside of another break goes
    /// with it.
    pub fn deny_breaks(&mut self, option: &str) {
        let breaks = std::mem::take(&mut self.breaks);
        let ranges: Vec<_> = breaks.iter().map(|(_, tokens)| range(tokens)).collect();
        let outermost = |k: usize| {
            let (start, end) = ranges[k];
            !ranges.iter().any(|&other| other != ranges[k] && other.0 <= start && end <= other.1)
        };
        for (_, (found, tokens)) in breaks.into_iter().enumerate().filter(|(k, _)| outermost(*k)) {
            let message = format!("graph break {} under `{option}`: {}", found.code, found.reason);
            self.error(tokens, message, Some(&found.hint));
        }
    }

    /// Whether a mistake was found.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The breaks in source order.
    pub fn breaks(&self) -> Vec<Break> {
        let mut breaks: Vec<Break> = self.breaks.iter().map(|(found, _)| found.clone()).collect();
        breaks.sort_by_key(|found| (found.line, found.column));
        breaks
    }

    /// The messages as text, for tests.
    pub fn messages(&self) -> Vec<String> {
        self.errors.iter().map(|error| error.to_string()).collect()
    }

    /// One `compile_error!` per mistake.
    pub fn compile_errors(&self) -> TokenStream {
        self.errors.iter().map(|error| error.to_compile_error()).collect()
    }
}

/// Line and column.
type LineColumn = (usize, usize);

fn start(span: Span) -> LineColumn {
    (span.start().line, span.start().column)
}

fn end(span: Span) -> LineColumn {
    (span.end().line, span.end().column)
}

/// Where tokens start and end.
fn range(tokens: &TokenStream) -> (LineColumn, LineColumn) {
    let mut spans = tokens.clone().into_iter().map(|token| token.span());
    let first = spans.next().unwrap_or_else(Span::call_site);
    (start(first), end(spans.last().unwrap_or(first)))
}

/// Where these tokens stand in the user's file, and what they say.
pub fn place(tokens: &impl ToTokens) -> Place {
    let tokens = tokens.to_token_stream();
    let span = tokens.clone().into_iter().next().map_or_else(Span::call_site, |token| token.span());
    Place {
        file: relative(&span.file()),
        line: span.start().line as u32,
        column: span.start().column as u32 + 1,
        text: written(&tokens),
        op: String::new(),
    }
}

/// Tokens as the user wrote them, on one line.
fn written(tokens: &TokenStream) -> String {
    let printed = tokens.to_string();
    let source = syn::spanned::Spanned::span(tokens).source_text();
    let is_whole = |text: &String| without_spaces(text) == without_spaces(&printed);
    match source.filter(is_whole) {
        Some(source) => source.split_whitespace().collect::<Vec<_>>().join(" "),
        // The compiler joins no spans on stable, so of several tokens only the first has its source.
        None => spaced(tokens).unwrap_or_else(|| closed_up(&printed)),
    }
}

/// Tokens with spaces where the user has them, if all of them come from one place.
fn spaced(tokens: &TokenStream) -> Option<String> {
    let mut pieces = Vec::new();
    flatten(tokens, &mut pieces);
    let mut text = String::new();
    let mut left = None;
    for (piece, start, end) in pieces {
        match left {
            _ if start >= end => return None,
            Some(left) if left > start => return None,
            Some((line, _)) if line < start.0 && piece == "." => {}
            Some(left) if left < start => text.push(' '),
            _ => {}
        }
        text.push_str(&piece);
        left = Some(end);
    }
    Some(text)
}

/// A token as text, where it starts and where it ends.
type Piece = (String, LineColumn, LineColumn);

fn flatten(tokens: &TokenStream, pieces: &mut Vec<Piece>) {
    for token in tokens.clone() {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => {
                        flatten(&group.stream(), pieces);
                        continue;
                    }
                };
                // A group that syn puts together knows where it stands as a whole, and not its delimiters.
                let (from, to) = (start(group.span()), end(group.span()));
                pieces.push((open.to_owned(), from, (from.0, from.1 + 1)));
                flatten(&group.stream(), pieces);
                pieces.push((close.to_owned(), (to.0, to.1.saturating_sub(1)), to));
            }
            other => pieces.push((other.to_string(), start(other.span()), end(other.span()))),
        }
    }
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Printed tokens without the spaces that nobody writes.
fn closed_up(printed: &str) -> String {
    const CLOSED: &[(&str, &str)] = &[
        (" . ", "."),
        (" .", "."),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("[ ", "["),
        (" ]", "]"),
        (" [", "["),
        (" ,", ","),
        ("& ", "&"),
        (" ?", "?"),
        (" :: ", "::"),
        (":: ", "::"),
        (" !(", "!("),
        (" :", ":"),
        ("# [", "#["),
    ];
    let line = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    CLOSED.iter().fold(line, |line, (loose, closed)| line.replace(loose, closed))
}

/// The path below the manifest's folder: the same text whatever folder the crate was built in.
fn relative(file: &str) -> String {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let absolute = std::env::current_dir().unwrap_or_default().join(file);
    match absolute.strip_prefix(Path::new(&manifest)) {
        Ok(below) if !manifest.is_empty() => below.to_string_lossy().into_owned(),
        _ => file.to_owned(),
    }
}
