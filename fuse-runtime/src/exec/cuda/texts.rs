//! Which text a kernel is launched with: its own for the layouts of a call, or one that others share.

use super::ahead::Ahead;
use super::call::CudaCall;
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
    /// Compiled while the crate was built.
    pub(super) ahead: Ahead,
    texts: Mutex<HashMap<(usize, KernelId), Texts>>,
}

impl KernelTexts {
    pub(super) fn new(dynamic: Option<bool>, ahead: Ahead) -> Self {
        KernelTexts { dynamic: env::dynamic().or(dynamic), ahead, texts: Mutex::default() }
    }

    /// The text on a device for collapsed axes whose own one would be `best`; `often`: whether they come again and again.
    pub(super) fn choose(
        &self,
        call: &CudaCall<'_>,
        kernel: &Kernel,
        best: &Variant,
        axes: &Geometry,
        often: bool,
    ) -> Choice {
        let wish = Wish { best, axes, often, dynamic: self.dynamic };
        self.of(call, kernel, |texts| texts.choose(kernel, wish))
    }

    /// The text for them where nothing can be compiled.
    pub(super) fn compiled_before(
        &self,
        call: &CudaCall<'_>,
        kernel: &Kernel,
        best: &Variant,
        axes: &Geometry,
    ) -> Option<Choice> {
        let wish = Wish { best, axes, often: false, dynamic: self.dynamic };
        let variant = self.of(call, kernel, |texts| texts.compiled_before(kernel, wish))?;
        Some(Choice { variant, may_change: false })
    }

    fn of<R>(&self, call: &CudaCall<'_>, kernel: &Kernel, ask: impl FnOnce(&mut Texts) -> R) -> R {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Texts::with(self.ahead.texts(kernel, &call.context.facts().arch));
        ask(texts.entry((call.ordinal, KernelId::of(kernel))).or_insert_with(made))
    }
}
