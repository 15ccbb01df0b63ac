//! Kernels that were compiled while the crate of a function was built.

use crate::rt::Cubin;
use fuse_compiler::plan::Kernel;
use fuse_compiler::plan::abi::Variant;
use fuse_compiler::types::DType;

/// Those of a program.
#[derive(Default)]
pub(crate) struct Ahead(Vec<&'static Cubin>);

impl Ahead {
    /// Those of a segment for these generic element types.
    pub fn of(cubins: &'static [Cubin], params: &[DType]) -> Ahead {
        Ahead(cubins.iter().filter(|cubin| cubin.params == params).collect())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The texts of a kernel of which there is machine code for an architecture.
    pub(super) fn texts(&self, kernel: &Kernel, arch: &str) -> Vec<Variant> {
        self.of_kernel(kernel, arch).map(|(variant, _)| variant).collect()
    }

    /// The machine code of a kernel in a variant, that of the architecture most like the device's.
    pub(super) fn code(&self, kernel: &Kernel, arch: &str, variant: &Variant) -> Option<&'static [u8]> {
        let same = self.of_kernel(kernel, arch).filter(|(text, _)| text == variant).map(|(_, cubin)| cubin);
        same.max_by_key(|cubin| (cubin.arch == arch, generation(cubin.arch))).map(|cubin| cubin.code)
    }

    fn of_kernel<'a>(&'a self, kernel: &'a Kernel, arch: &'a str) -> impl Iterator<Item = (Variant, &'static Cubin)> {
        let fits = self.0.iter().copied().filter(|cubin| cubin.kernel == kernel.name && runs_on(cubin.arch, arch));
        fits.filter_map(|cubin| Some((ron::from_str(cubin.variant).ok()?, cubin)))
    }
}

/// Whether machine code of one architecture runs on a device of another: on the same one, and without features that
/// belong to one alone on later ones of its generation.
fn runs_on(code: &str, device: &str) -> bool {
    let later = generation(code).zip(generation(device)).is_some_and(|(code, device)| {
        let (of_code, of_device) = (code / 10, device / 10);
        of_code == of_device && code <= device
    });
    code == device || later && code.ends_with(|last: char| last.is_ascii_digit())
}

/// The number in `sm_90a`.
fn generation(arch: &str) -> Option<u32> {
    let number = arch.strip_prefix("sm_")?;
    number.trim_end_matches(|last: char| !last.is_ascii_digit()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_on_later_devices_of_its_generation() {
        assert!(runs_on("sm_90a", "sm_90a") && runs_on("sm_80", "sm_86") && runs_on("sm_90", "sm_90a"));
        assert!(!runs_on("sm_86", "sm_80") && !runs_on("sm_80", "sm_90a") && !runs_on("sm_90a", "sm_91"));
    }
}
