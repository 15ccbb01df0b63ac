//! Identifiers of generated text, from the user's variables.

use std::collections::BTreeSet;

/// Names in use, so that every new one is different.
pub(crate) struct Names {
    used: BTreeSet<String>,
}

/// What generated text and its helpers use themselves, C++ keywords, and CUDA functions that op texts may call.
const RESERVED: &str = "RANK INNER_RANK VEC IDX TEAM ITEMS STREAM SPLIT THREADS GROUPS UNROLL first access accesses at live row rows lane len \
    outer inner u v e i j k m n base block blocks chunk chunks counters fault call seed item column columns tile tiles product shape left right \
    alignas asm auto bool break case catch char class const constexpr continue default delete do double else enum explicit export extern false \
    float for friend goto if inline int long mutable namespace new noexcept nullptr operator private protected public register return short \
    signed sizeof static struct switch template this throw true try typedef typeid typename union unsigned using virtual void volatile while \
    abs acos asin atan ceil cos cosh erf exp exp2 expm1 floor fmod log log1p log2 max min pow round rsqrt sin sinh sqrt tan tanh threadIdx \
    blockIdx blockDim gridDim and or not xor signbit isnan isinf isfinite y0 y1 yn j0 j1 jn";

impl Names {
    /// Only what is reserved.
    pub(crate) fn new() -> Self {
        Names { used: RESERVED.split_whitespace().map(str::to_owned).collect() }
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
        let mut names = Names::new();
        assert_eq!(names.fresh("hidden", &[]), "hidden");
        assert_eq!(names.fresh("hidden", &[]), "hidden2");
        assert_eq!(names.fresh("len", &[]), "len2");
        assert_eq!(names.fresh("größe.0", &[]), "gr__e_0");
        assert_eq!(names.fresh("T0", &[]), "T0_");
        assert_eq!(names.fresh("x", &["_ptr"]), "x");
        assert_eq!(names.fresh("x_ptr", &[]), "x_ptr2");
    }
}
