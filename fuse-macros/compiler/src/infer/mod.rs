//! Extents of a function as a whole: what `#[dims]` attributes say together.
//!
//! The types of single nodes follow from the rows of the op table as the graph is built; a node that does not fit is
//! reported there, at the user's operand.

mod dims;

pub use dims::{Definition, Extent, NamedDims, Solution};
