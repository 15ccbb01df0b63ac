//! From plans to text.

pub mod cuda;
