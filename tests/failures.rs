//! What compiled functions do where something is missing, broken or used up: memory, the cache on disk, the file of what was
//! fastest, NVRTC, cuBLASLt, and operands that do not go together.
//!
//! The libraries and the cache are chosen once per process, by its environment. So each scenario is this binary again, with
//! an environment of its own, and a test looks at what it said. They run on the GPU that `FUSE_DEVICE` names, and elsewhere
//! on the recorder, which compiles and keeps programs as a GPU does but has no results to look at.

#[path = "failures"]
mod failures {
    pub mod breaks;
    pub mod cache;
    pub mod child;
    pub mod faults;
    pub mod libraries;
    pub mod memory;
    pub mod operands;
    pub mod scenarios;
    pub mod tune;
}
