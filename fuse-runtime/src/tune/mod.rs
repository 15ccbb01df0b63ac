//! What was fastest: the choices of `mode = "max-autotune"`, remembered so that nothing is timed twice.
//!
//! - `book` has the choices of this process, and of the file they are kept in.
//! - `line` is a choice as it is written in that file, which is made to be read and committed with a project.
//! - `contest` times candidates against each other.
//! - `progress` tells a terminal about it.

mod book;
mod contest;
mod line;
mod progress;

pub(crate) use book::Book;
pub(crate) use contest::{Winner, fastest};
pub(crate) use line::{Subject, Timed};
