//! Small programs in the stages before text: the graph as written, the graph as scheduled, and the plan, beside them as
//! `.txt` files that are read like code. `UPDATE_EXPECT=1` writes them anew.

mod programs;

use expect_test::expect_file;
use fuse_compiler::plan::print;

#[test]
fn stages_are_as_reviewed() {
    for (name, made) in programs::made() {
        let sections = [
            ("written", made.written.to_string()),
            ("optimised", made.graph.to_string()),
            ("plan", print::plan(&made.plan)),
        ];
        let text: String =
            sections.iter().map(|(stage, text)| format!("== {stage}\n{}\n\n", text.trim_end())).collect();
        expect_file![format!("stages/{name}.txt")].assert_eq(&format!("{}\n", text.trim_end()));
    }
}
