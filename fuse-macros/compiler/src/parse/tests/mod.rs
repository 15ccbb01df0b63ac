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
    let item: ItemFn = syn::parse_str(source).expect("the test's function parses");
    let mut diag = Diagnostics::default();
    let program = function(&Function { sig: &item.sig, block: &item.block, outer: None }, &mut diag);
    match diag.messages() {
        messages if messages.is_empty() => program.map_or("silent".to_owned(), |program| program.to_string()),
        messages => messages.join("\n"),
    }
}

fn check(source: &str, expected: Expect) {
    expected.assert_eq(&captured(source));
}
