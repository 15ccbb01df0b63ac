//! Which text a kernel is launched with: its own for the layouts of a call, or one that others share.

use super::kernel_id::KernelId;
use crate::env;
use fuse_compiler::plan::Kernel;
use fuse_compiler::plan::abi::{Choice, Geometry, Texts, Variant, Wish};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The texts of a program's kernels on every device.
pub(super) struct KernelTexts {
    /// `dynamic` of the attribute, unless the environment says otherwise.
    dynamic: Option<bool>,
    texts: Mutex<HashMap<(usize, KernelId), Texts>>,
}

impl KernelTexts {
    pub(super) fn new(dynamic: Option<bool>) -> Self {
        KernelTexts { dynamic: env::dynamic().or(dynamic), texts: Mutex::default() }
    }

    /// The text on a device for collapsed axes whose own one would be `best`; `often`: whether they come again and again.
    pub(super) fn choose(
        &self,
        ordinal: usize,
        kernel: &Kernel,
        best: &Variant,
        axes: &Geometry,
        often: bool,
    ) -> Choice {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = texts.entry((ordinal, KernelId::of(kernel))).or_default();
        texts.choose(kernel, Wish { best, axes, often, dynamic: self.dynamic })
    }
}
