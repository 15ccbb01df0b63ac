//! Reading a few bytes without a copy of the driver's.
//!
//! A copy to the host and waiting for the stream cost the driver several microseconds. A kernel of one block writes the bytes to
//! memory that the host maps, and a number behind them; the host looks until the number is there. Everything launched before
//! comes first, as for a copy.

use super::args::Args;
use super::driver::{Context, Real};
use super::mapped::mapped;
use super::module::Function;
use crate::env::is_without;
use crate::error::Result;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// Reads up to this size go this way.
pub(super) const LARGEST: usize = 64;

/// After so many small reads it is worth compiling a kernel for them, which takes as long as thousands.
pub(super) const WORTH_IT: u32 = 16;

/// The host looks for so long, and then waits for the stream as for any other read: kernels that take longer make the few
/// microseconds count less than a core that is kept busy.
const PATIENCE: Duration = Duration::from_micros(200);

const SOURCE: &str = r#"
extern "C" __global__ void post(
    const unsigned char* from, unsigned char* to, volatile unsigned long long* number, unsigned long long value, int bytes)
{
    if (threadIdx.x < bytes) to[threadIdx.x] = from[threadIdx.x];
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *number = value;
}
"#;

/// What the host and the device share.
#[repr(C, align(128))]
struct Letter {
    bytes: [u8; LARGEST],
    number: u64,
}

/// A letter and the kernel that writes it, used by one thread at a time.
pub(super) struct Mailbox {
    letter: NonNull<Letter>,
    device_address: u64,
    post: Function,
    /// The number of the last letter.
    last: u64,
}

// SAFETY: the memory belongs to no thread and is never freed.
unsafe impl Send for Mailbox {}

impl Mailbox {
    /// A mailbox of the current context; `None` where its kernel cannot be had, or `FUSE_WITHOUT=mailbox` asks to do without.
    pub(super) fn open(context: &Context) -> Result<Option<Mailbox>> {
        if is_without("mailbox") {
            return Ok(None);
        }
        let Ok(post) = context.function(SOURCE, "post", &[], false) else { return Ok(None) };
        let (letter, device_address) = mapped(Letter { bytes: [0; LARGEST], number: 0 }, "mapped memory")?;
        Ok(Some(Mailbox { letter, device_address, post, last: 0 }))
    }

    /// Copies from an address that the caller has checked to lie in a buffer; the context is current.
    pub(super) fn read(&mut self, context: &Context, real: &Real, address: u64, target: &mut [u8]) -> Result<()> {
        self.last += 1;
        let mut args = Args::new();
        args.pointer(address).pointer_mut(self.device_address).pointer_mut(self.device_address + LARGEST as u64);
        args.push(self.last).push(target.len() as i32);
        context.launch_packed(&self.post, [1; 3], [LARGEST as u32, 1, 1], 0, args.bytes())?;
        if !self.arrives_soon() {
            real.synchronize(context.stream(real))?;
        }
        let from = self.letter.as_ptr().cast::<u8>();
        // SAFETY: the bytes lie at the start of the letter, and the device writes no more of them before the next launch.
        unsafe { target.as_mut_ptr().copy_from_nonoverlapping(from, target.len()) };
        Ok(())
    }

    /// Looks for the letter as long as it is worth it.
    fn arrives_soon(&self) -> bool {
        /// Looks between two at the clock.
        const LOOKS: u32 = 256;
        // SAFETY: the letter lives; volatile, since the device writes behind our back.
        let arrived = || unsafe { (&raw const (*self.letter.as_ptr()).number).read_volatile() == self.last };
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            for _ in 0..LOOKS {
                if arrived() {
                    // The bytes were written before the number.
                    fence(Ordering::Acquire);
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        false
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
        let program = Program { name: "post", source: SOURCE, arch: "sm_80", defines: &[], contract: false };
        nvrtc.compile(&program).unwrap();
    }

    #[test]
    fn the_number_lies_behind_the_bytes() {
        assert_eq!(std::mem::offset_of!(Letter, number), LARGEST);
    }
}
