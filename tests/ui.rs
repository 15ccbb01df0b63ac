//! What users see of the compiler: one mistake per file, in folders by theme, beside what rustc prints for it. And what they
//! do not see: emitted code is quiet under every lint.

#[path = "ui/pass/functions.rs"]
pub mod functions;
#[path = "ui/pass/methods.rs"]
pub mod methods;

const THEMES: [&str; 7] = ["shapes", "dtypes", "breaks", "options", "signatures", "annotations", "gradients"];

#[test]
fn mistakes_are_errors_at_their_tokens() {
    let cases = trybuild::TestCases::new();
    for theme in THEMES {
        cases.compile_fail(format!("tests/ui/{theme}/*.rs"));
    }
}
