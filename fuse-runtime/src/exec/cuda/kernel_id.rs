//! Which kernel of a program something belongs to.

use fuse_compiler::plan::Kernel;

/// A kernel, known by where it lies: programs do not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KernelId(usize);

impl KernelId {
    /// The kernel that lies here.
    pub fn of(kernel: &Kernel) -> KernelId {
        KernelId(std::ptr::from_ref(kernel).addr())
    }
}
