//! The Rust loops of small programs, beside them as `.rs` files; the test `emitted_loops` of the workspace compiles them.

#![cfg(feature = "syn")]

mod programs;
#[path = "gradients/turns.rs"]
mod turns;

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

/// A check in a loop keeps it from becoming vectors: what a point reads is looked up before.
#[test]
fn points_look_nothing_up() {
    for (name, plan) in programs::all() {
        for code in of_points(&loops::text(&plan)) {
            assert!(!code.replace("ins.fault(", "").contains("ins."), "{name}: {code}");
        }
    }
}

#[test]
fn values_take_turns_in_the_memory_of_results() {
    let reads: usize = programs::all().into_iter().map(|(_, plan)| turns::check(&loops::text(&plan))).sum();
    assert!(reads > 10, "only {reads} values are read of results");
}

/// The bodies of loops over points, and the closures of reductions.
fn of_points(text: &str) -> Vec<&str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut loop_at = usize::MAX;
    let mut found = vec![];
    for line in text.lines() {
        found.extend(line.split_once("|i|").map(|(_, closure)| closure));
        match indent(line) <= loop_at {
            true if line.trim_start().starts_with("for i in") => loop_at = indent(line),
            true => loop_at = usize::MAX,
            false => found.push(line),
        }
    }
    found
}
