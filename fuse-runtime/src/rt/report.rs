//! Reports of compiled functions, read back from what the macro embedded.

use crate::log::{self, Topic};
use fuse_compiler::report::Explanation;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The report behind an embedded text; the same reference every time.
pub fn explanation(text: &'static str) -> &'static Explanation {
    static READ: Mutex<Option<HashMap<&'static str, &'static Explanation>>> = Mutex::new(None);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    // Kept for the life of the process, as a static would be: there is one a compiled function.
    read.get_or_insert_default().entry(text).or_insert_with(|| Box::leak(Box::new(Explanation::from_text(text))))
}

/// Writes a line for every graph break of a function that is called, if `FUSE_LOG=break` asks for them.
#[inline]
pub fn tell_breaks(function: &str, breaks: &[&str]) {
    breaks.iter().for_each(|found| log::line(Topic::Break, format_args!("`{function}`, {found}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_once() {
        let text: &'static str = Box::leak(Explanation::new("f", &[], vec![]).to_text().into_boxed_str());
        let first = explanation(text);
        assert_eq!(first.function(), "f");
        assert!(std::ptr::eq(first, explanation(text)));
    }
}
