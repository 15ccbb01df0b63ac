//! Rust loops.
