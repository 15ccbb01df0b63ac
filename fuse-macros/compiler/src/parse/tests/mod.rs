//! Small functions and what they are captured as.

mod branches;
mod breaks;
mod closures;
mod host;
mod loops;
mod mistakes;
mod ops;

use super::{Function, function};
use crate::diag::Diagnostics;
use expect_test::Expect;
use syn::ItemFn;

fn captured(source: &str) -> String {
    captured_as(source, false)
}

/// What a function is captured as whose calls are CUDA graphs, or are not.
fn captured_as(source: &str, graphs: bool) -> String {
    let item: ItemFn = syn::parse_str(source).expect("the test's function parses");
    let mut diag = Diagnostics::default();
    let parts = Function { sig: &item.sig, block: &item.block, outer: None, graphs, differentiated: false };
    let program = function(&parts, &mut diag);
    match diag.messages() {
        messages if messages.is_empty() => program.map_or("silent".to_owned(), |program| program.to_string()),
        messages => messages.join("\n"),
    }
}

/// What a function is captured as whose calls are CUDA graphs.
fn check_graphs(source: &str, expected: Expect) {
    expected.assert_eq(&captured_as(source, true));
}

fn check(source: &str, expected: Expect) {
    expected.assert_eq(&captured(source));
}
