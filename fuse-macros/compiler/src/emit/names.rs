//! Identifiers of generated text, from the user's variables.

use std::collections::BTreeSet;

/// Names in use, so that every new one is different.
pub(crate) struct Names {
    used: BTreeSet<String>,
}

impl Names {
    /// Only what is reserved, separated by spaces.
    pub(crate) fn new(reserved: &str) -> Self {
        Names { used: reserved.split_whitespace().map(str::to_owned).collect() }
    }

    /// Makes a name unavailable.
    pub(crate) fn reserve(&mut self, name: impl Into<String>) {
        self.used.insert(name.into());
    }

    /// A new identifier that starts as the user wrote it; `suffixes` are reserved behind it.
    pub(crate) fn fresh(&mut self, wanted: &str, suffixes: &[&str]) -> String {
        let stem = identifier(wanted);
        let mut candidates = std::iter::once(stem.clone()).chain((2..).map(|n| format!("{stem}{n}")));
        let is_free = |name: &String| {
            !self.used.contains(name) && suffixes.iter().all(|s| !self.used.contains(&format!("{name}{s}")))
        };
        let name = candidates.find(is_free).expect("there is always another number");
        self.used.extend(suffixes.iter().map(|s| format!("{name}{s}")));
        self.used.insert(name.clone());
        name
    }
}

/// The letters, digits and underscores of a name, without what the text reserves for itself.
fn identifier(wanted: &str) -> String {
    let kept: String = wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let kept = kept.trim_matches('_');
    match kept.chars().next() {
        None => "value".to_owned(),
        Some(c) if c.is_ascii_digit() => format!("v{kept}"),
        // `fuse_` is the helpers', `T0` and `C0` are defines.
        Some(_) if kept.starts_with("fuse_") || is_define(kept) => format!("{kept}_"),
        Some(_) => kept.to_owned(),
    }
}

fn is_define(name: &str) -> bool {
    let rest = name.strip_prefix(['T', 'C']).or(name.strip_prefix("STEP_")).or(name.strip_prefix("KERNEL_"));
    rest.is_some_and(|r| !r.is_empty() && r.chars().all(|c| c.is_ascii_digit())) || name.starts_with("KERNEL_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_users_where_they_can_be() {
        let mut names = Names::new("len");
        assert_eq!(names.fresh("hidden", &[]), "hidden");
        assert_eq!(names.fresh("hidden", &[]), "hidden2");
        assert_eq!(names.fresh("len", &[]), "len2");
        assert_eq!(names.fresh("größe.0", &[]), "gr__e_0");
        assert_eq!(names.fresh("T0", &[]), "T0_");
        assert_eq!(names.fresh("x", &["_ptr"]), "x");
        assert_eq!(names.fresh("x_ptr", &[]), "x_ptr2");
    }
}
