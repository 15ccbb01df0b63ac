//! Machine code that the macro has embedded.

use fuse_compiler::types::DType;

/// A kernel of a graph, compiled for one architecture while the crate was built.
#[derive(Clone, Copy, Debug)]
pub struct Cubin {
    /// The name of the kernel.
    pub kernel: &'static str,
    /// The architecture: `sm_90a`.
    pub arch: &'static str,
    /// What the generic element types of the function stand for.
    pub params: &'static [DType],
    /// The variant of its text.
    pub variant: &'static str,
    /// The machine code.
    pub code: &'static [u8],
}
