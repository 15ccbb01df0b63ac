//! The compiler of fuse as a plain library.
//!
//! Data flows one way: tokens are parsed into segments of tensor ops, each segment is a [`graph::Graph`], typed by
//! `infer`, differentiated by `autodiff` where gradients are asked for, simplified by `optimise`, turned into a [`plan::Plan`] by `schedule` and into text by `emit`.

pub mod autodiff;
pub mod diag;
pub mod emit;
pub mod graph;
#[cfg(feature = "syn")]
pub mod infer;
pub mod op;
pub mod optimise;
pub mod options;
#[cfg(feature = "syn")]
pub mod parse;
#[cfg(feature = "syn")]
pub mod pipeline;
pub mod plan;
pub mod report;
pub mod schedule;
pub mod types;
