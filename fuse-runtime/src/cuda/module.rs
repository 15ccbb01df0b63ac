//! Loading compiled kernels and launching them.

use super::args::Args;
use super::cache::{Cache, Key, Program};
use super::driver::{Backend, Context, Real};
use super::once::OnceMap;
use super::section::own_text;
use super::status::check;
use crate::error::Result;
use crate::log::{self, Topic};
use cudarc::driver::sys::{self, CUfunction_attribute_enum as attribute, CUresult};
use fuse_compiler::emit::cuda::compile::WAITS;
use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared memory a block may have without asking for more.
const SHARED_BY_DEFAULT: u32 = 48 << 10;

/// A kernel loaded on one context; cloning is cheap, and it stays loaded as long as the process lives.
#[derive(Clone)]
pub(crate) struct Function(Arc<Loaded>);

struct Loaded {
    entry: Box<str>,
    handle: sys::CUfunction,
    /// Shared memory its source asks for.
    fixed_shared: u32,
    /// What the parameters take, where that is known.
    args_len: Option<usize>,
    /// Whether it waits by itself for the kernel before it.
    waits: bool,
    /// Whether a stream may start it early for that.
    starts_early: bool,
    /// Whether the limit of dynamic shared memory was raised.
    raised: AtomicBool,
}

// SAFETY: a function handle may be used from any thread and lives as long as its module, which is never unloaded.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Function {
    /// The name of the kernel.
    pub(crate) fn entry(&self) -> &str {
        &self.0.entry
    }

    /// The driver's handle, fit to be launched with so much dynamic shared memory and so many bytes of arguments; the context is
    /// current.
    pub(super) fn ready(&self, context: &Context, shared: u32, args: usize) -> Result<sys::CUfunction> {
        let f = &*self.0;
        let expected = f.args_len.unwrap_or(args);
        assert!(args == expected, "`{}` takes {expected} bytes of arguments, {args} were given", f.entry);
        if shared + f.fixed_shared > SHARED_BY_DEFAULT && !f.raised.load(Ordering::Relaxed) {
            raise_shared_limit(f, context.facts().max_shared_per_block)?;
        }
        Ok(f.handle)
    }

    /// Whether it waits by itself for the kernel before it, so that it may be started early.
    pub(super) fn waits(&self) -> bool {
        self.0.waits
    }

    /// One that a context without a GPU gives out.
    pub(super) fn unloaded(entry: &str) -> Function {
        let (entry, raised) = (entry.into(), AtomicBool::new(false));
        let handle = std::ptr::null_mut();
        let (waits, starts_early) = (false, false);
        Function(Arc::new(Loaded { entry, handle, fixed_shared: 0, args_len: None, waits, starts_early, raised }))
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry())
    }
}

/// The functions loaded on one context.
pub(super) type Functions = OnceMap<Key, Function>;

impl Context {
    /// The kernel `entry` of `source`, compiled with `defines` for this device, or found where it was compiled before.
    ///
    /// The lookup hashes the source: callers keep the function. Threads asking for one kernel compile it once. `contract`:
    /// whether products may be fused with the sums they go into.
    pub(crate) fn function(
        &self,
        source: &str,
        entry: &str,
        defines: &[(&str, String)],
        contract: bool,
    ) -> Result<Function> {
        let program = Program { name: entry, source, arch: &self.facts().arch, defines, contract };
        let key = program.key().and(entry.as_bytes());
        self.functions.get_or_try_make(key, || match &self.backend {
            Backend::Real(real) => self.load(real, &Cache::of_user().cubin(&program)?, source, entry),
            Backend::Recording(recorder) => {
                recorder.note_program(key);
                if recorder.compiles() {
                    Cache::of_user().cubin(&program)?;
                }
                Ok(Function::unloaded(entry))
            }
            Backend::Tracing(tracer) => tracer.target().function(source, entry, defines, contract),
        })
    }

    /// A kernel of which there is machine code for this device.
    pub(crate) fn compiled_function(&self, code: &[u8], source: &str, entry: &str) -> Result<Function> {
        match &self.backend {
            Backend::Real(real) => self.load(real, code, source, entry),
            Backend::Recording(_) => Ok(Function::unloaded(entry)),
            Backend::Tracing(tracer) => tracer.target().compiled_function(code, source, entry),
        }
    }

    /// Loads what was compiled from a source.
    fn load(&self, real: &Real, code: &[u8], source: &str, entry: &str) -> Result<Function> {
        // A kernel may have several bodies, of which the variant has picked one.
        let own = own_text(source, entry);
        let waits = own.matches(WAITS).count() >= own.matches("__global__").count();
        real.load(self, code, entry, own.contains(WAITS) && waits)
    }

    /// Launches `f` on the stream; `shared` is the dynamic shared memory of a block in bytes. An empty grid is no launch.
    ///
    /// The caller vouches that the arguments are the kernel's and that what they point at is large enough.
    pub(crate) fn launch(&self, f: &Function, grid: [u32; 3], block: [u32; 3], shared: u32, args: &Args) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        if let Backend::Tracing(tracer) = &self.backend {
            tracer.launch(f, grid, block, shared, args);
            return Ok(());
        }
        self.make_current()?;
        self.launch_packed(f, grid, block, shared, args.bytes())
    }

    /// The same with arguments that are packed already, a grid that is not empty, and the context current.
    pub(crate) fn launch_packed(
        &self,
        f: &Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        args: &[u8],
    ) -> Result<()> {
        log::line(Topic::Launch, format_args!("{f:?} grid {grid:?} block {block:?} shared {shared}"));
        match &self.backend {
            Backend::Real(real) => real.launch(self, f, grid, block, shared, args),
            Backend::Recording(recorder) => {
                recorder.launch(self.lane(), f, (grid, block, shared), args);
                Ok(())
            }
            Backend::Tracing(_) => unreachable!("a call that is taken down packs its arguments"),
        }
    }
}

impl Real {
    /// Loads a cubin for good and finds the kernel in it.
    pub(super) fn load(&self, context: &Context, cubin: &[u8], entry: &str, waits: bool) -> Result<Function> {
        self.make_current()?;
        let name = CString::new(entry).expect("the name of a kernel is an identifier");
        let (mut module, mut handle) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the driver checks the image, which is an ELF file of known length, and copies what it needs.
        check(unsafe { sys::cuModuleLoadData(&mut module, cubin.as_ptr().cast()) }, format_args!("load `{entry}`"))?;
        // SAFETY: the module was just loaded, and the name ends with a zero byte.
        let status = unsafe { sys::cuModuleGetFunction(&mut handle, module, name.as_ptr()) };
        check(status, format_args!("find `{entry}` in its module"))?;
        let (mut fixed, which) = (0, attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        // SAFETY: the function is loaded and the driver writes one number.
        check(unsafe { sys::cuFuncGetAttribute(&mut fixed, which, handle) }, format_args!("inspect `{entry}`"))?;
        let (fixed_shared, args_len) = (fixed.unsigned_abs(), args_len(handle, context.facts().driver_version));
        let (entry, raised) = (entry.into(), AtomicBool::new(false));
        let starts_early = waits && context.starts_early();
        Ok(Function(Arc::new(Loaded { entry, handle, fixed_shared, args_len, waits, starts_early, raised })))
    }

    fn launch(
        &self,
        context: &Context,
        f: &Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        bytes: &[u8],
    ) -> Result<()> {
        let handle = f.ready(context, shared, bytes.len())?;
        let mut len = bytes.len();
        let mut extra = packed(bytes, &mut len);
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        let (stream, no_list, extra) = (context.stream(self), std::ptr::null_mut(), extra.as_mut_ptr());
        let status = if f.0.starts_early {
            let mut early = early();
            let config = sys::CUlaunchConfig {
                gridDimX: gx,
                gridDimY: gy,
                gridDimZ: gz,
                blockDimX: bx,
                blockDimY: by,
                blockDimZ: bz,
                sharedMemBytes: shared,
                hStream: stream,
                attrs: &mut early,
                numAttrs: 1,
            };
            // SAFETY: as below, and the configuration lives.
            unsafe { sys::cuLaunchKernelEx(&config, handle, no_list, extra) }
        } else {
            // SAFETY: function and stream belong to the current context. The driver copies the arguments before it returns;
            // their length was compared above, and the caller vouches for their meaning.
            unsafe { sys::cuLaunchKernel(handle, gx, gy, gz, bx, by, bz, shared, stream, no_list, extra) }
        };
        check(status, format_args!("launch `{}` with grid {grid:?}, block {block:?}, shared {shared}", f.entry()))
    }
}

/// Has a kernel of ours started before the one in front of it in the stream is done; it waits for that itself.
fn early() -> sys::CUlaunchAttribute {
    // SAFETY: a struct of numbers may be zero until it is filled.
    let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
    attribute.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    attribute
}

/// Packed arguments as the driver takes them; `len` is how long they are, and both have to live until it has.
pub(super) fn packed(bytes: &[u8], len: &mut usize) -> [*mut c_void; 5] {
    [
        sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize as *mut c_void,
        bytes.as_ptr().cast_mut().cast(),
        sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize as *mut c_void,
        std::ptr::from_mut(len).cast(),
        sys::CU_LAUNCH_PARAM_END_AS_INT as usize as *mut c_void,
    ]
}

/// Lets the blocks of `f` have all shared memory the device can give; done once, so that launches never lower it.
#[cold]
fn raise_shared_limit(f: &Loaded, device_limit: u32) -> Result<()> {
    let limit = attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let bytes = device_limit.saturating_sub(f.fixed_shared) as i32;
    // SAFETY: the function is loaded on the current context.
    let status = unsafe { sys::cuFuncSetAttribute(f.handle, limit, bytes) };
    check(status, format_args!("raise the shared memory of `{}`", f.entry))?;
    f.raised.store(true, Ordering::Relaxed);
    Ok(())
}

/// The end of the last parameter of a kernel, for the assertion that the arguments fit: the driver takes too few of them
/// without complaint, and the kernel reads garbage.
///
/// Only in debug builds, because the count is found by asking for one too many, which compute-sanitizer reports.
/// Drivers before 12.4 cannot tell.
fn args_len(handle: sys::CUfunction, driver_version: u32) -> Option<usize> {
    let last = |end, index| {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is loaded; an index beyond its parameters is answered with an error.
        let status = unsafe { sys::cuFuncGetParamInfo(handle, index, &mut offset, &mut size) };
        if status == CUresult::CUDA_SUCCESS { Ok(offset + size) } else { Err(end) }
    };
    let known = cfg!(debug_assertions) && driver_version >= 12040;
    known.then(|| (0..).try_fold(0, last).unwrap_or_else(|end| end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Recorded;

    #[test]
    fn a_recording_context_notes_launches_in_order() {
        let context = Context::recording("sm_90a");
        let f = context.function("extern \"C\" __global__ void k0(int n) {}", "k0", &[], false).unwrap();
        let mut args = Args::new();
        args.push(7i32);
        context.launch(&f, [2, 1, 1], [256, 1, 1], 0, &args).unwrap();
        context.launch(&f, [0, 1, 1], [256, 1, 1], 0, &args).unwrap();
        let expected = Recorded::Launch {
            entry: "k0".into(),
            grid: [2, 1, 1],
            block: [256, 1, 1],
            shared: 0,
            args: 7i32.to_ne_bytes().into(),
        };
        assert_eq!(context.recorded(), [expected]);
        assert_eq!(context.recorded(), []);
    }
}
