//! Lines of text with indentation.

use std::fmt::Write;

/// Text under construction.
#[derive(Default)]
pub(crate) struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    /// A line at the current depth.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        let (line, pad) = (line.as_ref(), self.depth * 4);
        match line {
            "" => self.text.push('\n'),
            // Preprocessor lines start at the margin, Rust's attributes do not.
            _ if line.starts_with('#') && !line.starts_with("#[") => {
                writeln!(self.text, "{line}").expect("writing to a string succeeds")
            }
            _ => writeln!(self.text, "{:pad$}{line}", "").expect("writing to a string succeeds"),
        }
    }

    /// Lines at the current depth.
    pub(crate) fn lines(&mut self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|l| self.line(l));
    }

    /// A line that opens a block, its body, and the brace that closes it.
    pub(crate) fn block(&mut self, head: impl AsRef<str>, body: impl FnOnce(&mut Writer)) {
        self.line(format!("{} {{", head.as_ref()));
        self.indented(body);
        self.line("}");
    }

    /// Text one level deeper.
    pub(crate) fn indented(&mut self, body: impl FnOnce(&mut Writer)) {
        self.depth += 1;
        body(self);
        self.depth -= 1;
    }

    /// A loop that is unrolled.
    pub(crate) fn unrolled(&mut self, counter: &str, count: &str, body: impl FnOnce(&mut Writer)) {
        self.line("#pragma unroll");
        self.block(format!("for (int {counter} = 0; {counter} < {count}; ++{counter})"), body);
    }

    /// The text so far.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}
