//! From plans to text: CUDA C++ for the JIT, Rust loops and host code for the user's crate.

#[cfg(feature = "cubins")]
pub mod cubins;
pub mod cuda;
#[cfg(feature = "syn")]
pub mod host;
#[cfg(feature = "syn")]
pub mod loops;
mod names;
mod writer;

/// The text of an op row with operands in the places of `{0}`, `{1}`, ...
pub(crate) fn substitute(text: &str, operands: &[String]) -> String {
    operands.iter().enumerate().fold(text.to_owned(), |text, (k, operand)| text.replace(&format!("{{{k}}}"), operand))
}
