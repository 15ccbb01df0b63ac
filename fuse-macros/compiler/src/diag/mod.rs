//! What the compiler has to say: errors at the user's tokens, and graph breaks with code, place, reason and hint.

#[cfg(feature = "syn")]
mod errors;

#[cfg(feature = "syn")]
pub use errors::{Diagnostics, place};

use serde::{Deserialize, Serialize};

/// A place where host Rust runs between two graphs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// The stable code, such as `B001`.
    pub code: String,
    /// Why the graph ends here.
    pub reason: String,
    /// Path relative to the manifest.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// Column from 1.
    pub column: u32,
    /// The nearest form that would not break.
    pub hint: String,
}

/// A kind of graph break. Codes are stable; reasons and hints may be reworded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakKind {
    /// The stable code.
    pub code: &'static str,
    /// The nearest form that would not break.
    pub hint: &'static str,
}

macro_rules! break_kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $hint:literal;)*) => {
        impl BreakKind {
            $($(#[$doc])* pub const $name: BreakKind = BreakKind { code: $code, hint: $hint };)*

            /// Every kind, in the order of the codes.
            pub const ALL: &[BreakKind] = &[$(BreakKind::$name),*];
        }
    };
}

break_kinds! {
    /// `item()` reads a value on the host.
    ITEM = "B001", "keep the value as a rank-0 tensor: it broadcasts like a scalar";
    /// `to_vec()` reads values on the host.
    READ = "B002", "move the read behind the last tensor op, or out of the compiled function";
    /// A call into unknown code with a tensor.
    CALL = "B003", "write the tensor ops here, or call it before the first or after the last tensor op";
    /// A tensor is formatted.
    PRINT = "B004", "print after the last tensor op, or print only its `dims()`";
    /// A macro that may use any tensor.
    MACRO = "B005", "move the macro behind the last tensor op";
    /// A closure that captures tensors.
    CLOSURE = "B006", "write the closure's body where it is called";
    /// A host statement that may leave the function or loop.
    EXIT = "B007", "move the statement before the first tensor op";
    /// A random draw, a write or an op that may fail stands before a host statement with effects.
    EFFECT = "B008", "move the host statement before the op, which must keep its place in program order";
    /// A loop whose number of iterations is not known at compile time.
    LOOP = "B009", "loop over a constant range of at most 64 iterations, which is unrolled";
    /// More than 16 paths through the function.
    PATHS = "B010", "merge host branches, so that at most 16 paths go through the function";
    /// A block whose host bindings end with it.
    SCOPE = "B011", "bind host values before the block";
    /// `unsafe`, `async` and `const` blocks, and coroutines.
    BLOCK = "B012", "move the tensor ops out of the block";
    /// An argument that must be known at compile time.
    ARGUMENT = "B013", "write the argument as a constant";
    /// A value whose type is not known.
    TYPE = "B014", "bind the value with an annotated `let`, such as `let w: &Tensor<f32, 2> = ..;`";
    /// A write to a tensor in place.
    WRITE = "B015", "use the form that returns the new value";
    /// Host code that holds tensors, such as a container.
    HOST = "B016", "keep tensors in local variables, tuples or arrays";
    /// The whole function runs eager.
    EAGER = "B017", "compile a plain `fn` whose tensors have their element types and ranks written out";
    /// A `value_and_grad` that the tape follows, and no graph holds.
    GRADIENT = "B018", "let the closure hold tensor ops and `let`s alone, with everything else before the call or behind it";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        let codes: Vec<_> = BreakKind::ALL.iter().map(|kind| kind.code).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
    }
}
