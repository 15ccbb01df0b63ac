//! Copying between layouts on the device: `contiguous`, writes to slices, joining.

use super::args::Args;
use super::driver::Context;
use crate::copy::Loops;
use crate::error::Result;

/// Element `i` of the copy, counted from the innermost loop out, goes from its place in `from` to its place in `to`.
const SOURCE: &str = r#"
struct Loops { long long extent[8], to[8], from[8]; };

// One thread an element, elements in row-major order, so that at least one side is accessed in order.
extern "C" __global__ void copy_strided(WORD* to, const WORD* from, long long n, Loops loops) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        INDEX rest = (INDEX)i;
        long long at = 0, origin = 0;
        for (int d = 0; d < RANK; ++d) {
            INDEX place = rest;
            if (d + 1 < RANK) {
                rest = place / (INDEX)loops.extent[d];
                place -= rest * (INDEX)loops.extent[d];
            }
            at += (long long)place * loops.to[d];
            origin += (long long)place * loops.from[d];
        }
        to[at] = from[origin];
    }
}
"#;

const BLOCK: u32 = 256;

impl Context {
    /// Copies elements of `size` bytes along `loops`, whose steps are in bytes, between two addresses of this device.
    ///
    /// The caller vouches that the loops stay inside of what lies there, and that the two do not overlap.
    pub(crate) fn copy_strided(&self, to: u64, from: u64, loops: &Loops, size: usize) -> Result<()> {
        let count = loops.count();
        if count == 0 {
            return Ok(());
        }
        let kernel = self.function(SOURCE, "copy_strided", &defines(loops.len(), count, size), false)?;
        let mut args = Args::new();
        args.pointer_mut(to).pointer(from).push(count as i64);
        // Unused loops are never read.
        let each = |of: fn(&crate::copy::Loop) -> i64| std::array::from_fn::<i64, 8, _>(|d| loops.get(d).map_or(1, of));
        let size = size as i64;
        args.push(each(|l| l.extent as i64));
        args.push(each(|l| l.to as i64).map(|step| step / size));
        args.push(each(|l| l.from as i64).map(|step| step / size));
        // A few blocks for each multiprocessor cover the latency of memory; the loop in the kernel does the rest.
        let blocks = (count.div_ceil(BLOCK as usize)).min(self.facts().sm_count as usize * 32) as u32;
        self.launch(&kernel, [blocks, 1, 1], [BLOCK, 1, 1], 0, &args)
    }
}

fn defines(rank: usize, count: usize, size: usize) -> [(&'static str, String); 3] {
    let word = match size {
        1 => "unsigned char",
        2 => "unsigned short",
        4 => "unsigned",
        _ => "unsigned long long",
    };
    let index = if count <= u32::MAX as usize { "unsigned" } else { "unsigned long long" };
    [("WORD", word.into()), ("INDEX", index.into()), ("RANK", rank.to_string())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Recorded;
    use crate::cuda::cache::Program;
    use crate::cuda::nvrtc::Nvrtc;
    use crate::layout::Layout;

    #[test]
    fn a_transpose_is_one_launch_of_two_loops() {
        let context = Context::recording("sm_80");
        let rows = Layout::contiguous(&[3, 2]);
        let columns = Layout::contiguous(&[2, 3]).transpose(0, 1).unwrap();
        context.copy_strided(256, 512, &Loops::merged(&rows, &columns, 4), 4).unwrap();
        let [Recorded::Launch { entry, grid, args, .. }] = &context.recorded()[..] else { panic!("one launch") };
        let words: Vec<i64> = args.chunks(8).map(|word| i64::from_ne_bytes(word.try_into().unwrap())).collect();
        assert_eq!((&**entry, *grid), ("copy_strided", [1, 1, 1]));
        assert_eq!(words[..5], [256, 512, 6, 2, 3]);
        assert_eq!((&words[11..13], &words[19..21]), (&[1, 2][..], &[3, 1][..]));
    }

    #[test]
    fn the_kernel_compiles_for_every_word() {
        let Some(nvrtc) = Nvrtc::detect() else { return eprintln!("skipped: NVRTC is not installed") };
        for (size, count) in [(1, 5), (2, 5), (4, 1 << 33), (8, 5)] {
            let defines = defines(3, count, size);
            let program =
                Program { name: "copy_strided", source: SOURCE, arch: "sm_80", defines: &defines, contract: false };
            nvrtc.compile(&program).unwrap();
        }
    }
}
