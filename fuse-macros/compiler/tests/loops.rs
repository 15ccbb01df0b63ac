//! The Rust loops of small programs, beside them as `.rs` files; the test `emitted_loops` of the workspace compiles them.

#![cfg(feature = "syn")]

mod programs;

use expect_test::expect_file;
use fuse_compiler::emit::loops;

#[test]
fn loops_are_as_reviewed() {
    for (name, plan) in programs::all() {
        expect_file![format!("loops/{name}.rs")].assert_eq(&loops::text(&plan));
    }
}

#[test]
fn loops_are_rust_items() {
    for (name, plan) in programs::all() {
        let items: syn::File = syn::parse2(loops::tokens(&plan)).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(items.items.len(), 2 * loops::kernels(&plan).count(), "{name}");
    }
}
