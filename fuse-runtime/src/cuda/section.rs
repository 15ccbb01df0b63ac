//! The part of a function's CUDA text that one kernel is compiled from.
//!
//! The text has a section for every kernel, behind what all of them share. Without the sections of the others a change in
//! one kernel leaves the compiled code of the others valid, and there is less to read.

use std::borrow::Cow;

/// What a section starts with, up to the name of its kernel.
const START: &str = "#if defined(KERNEL_";

/// The text without the sections of other kernels; all of it where it has no section of this kernel.
pub(crate) fn own_text<'a>(source: &'a str, kernel: &str) -> Cow<'a, str> {
    let starts = starts(source);
    let own = format!("{START}{kernel})");
    let Some(index) = starts.iter().position(|start| source[*start..].starts_with(&own)) else { return source.into() };
    let end = starts.get(index + 1).copied().unwrap_or(source.len());
    match starts.len() {
        1 => source.into(),
        _ => [&source[..starts[0]], &source[starts[index]..end]].concat().into(),
    }
}

/// Where sections start.
fn starts(source: &str) -> Vec<usize> {
    let at_line = |at: &usize| *at == 0 || source.as_bytes()[at - 1] == b'\n';
    source.match_indices(START).map(|(at, _)| at).filter(at_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "helpers\n#if defined(KERNEL_k0)\nzero\n#endif\n\n#if defined(KERNEL_k01)\none\n#endif\n";

    #[test]
    fn a_kernel_has_its_section_and_what_all_share() {
        assert_eq!(own_text(TEXT, "k0"), "helpers\n#if defined(KERNEL_k0)\nzero\n#endif\n\n");
        assert_eq!(own_text(TEXT, "k01"), "helpers\n#if defined(KERNEL_k01)\none\n#endif\n");
    }

    #[test]
    fn a_text_without_sections_is_whole() {
        assert_eq!(own_text("extern k0", "k0"), "extern k0");
        assert_eq!(own_text(TEXT, "k2"), TEXT);
    }
}
