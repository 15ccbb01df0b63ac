//! Giving a tensor its old value back behind a call that failed.

use super::args::Args;
use super::driver::Context;
use crate::error::Result;

const SOURCE: &str = r#"
extern "C" __global__ void restore_if_failed(
    const unsigned long long* failed, unsigned long long call, unsigned char* to, const unsigned char* from, long long bytes)
{
    if (failed[call % 32] != call) return;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += step) to[i] = from[i];
}
"#;

const BLOCK: u32 = 256;

/// So few blocks that asking costs little; copying, which only a failed call does, may be slow.
const BLOCKS: usize = 32;

impl Context {
    /// Copies `bytes` bytes from one address to another if the call with this number has failed, behind everything launched.
    ///
    /// The caller vouches that the bytes are there, and that the two ranges do not overlap.
    pub(crate) fn restore_if_failed(&self, call: u64, to: u64, from: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let kernel = self.function(SOURCE, "restore_if_failed", &[], false)?;
        let mut args = Args::new();
        args.pointer(self.failed_address()).push(call).pointer_mut(to).pointer(from).push(bytes as i64);
        let blocks = bytes.div_ceil(BLOCK as usize).min(BLOCKS) as u32;
        self.launch(&kernel, [blocks, 1, 1], [BLOCK, 1, 1], 0, &args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::cache::Program;
    use crate::cuda::nvrtc::Nvrtc;

    #[test]
    fn the_kernel_compiles() {
        let Some(nvrtc) = Nvrtc::detect() else { return eprintln!("skipped: NVRTC is not installed") };
        nvrtc
            .compile(&Program {
                name: "restore_if_failed",
                source: SOURCE,
                arch: "sm_80",
                defines: &[],
                contract: false,
            })
            .unwrap();
    }
}
