//! Opening GPUs: one [`Context`] per device, shared by the whole process.

use super::cublaslt::Libraries;
use super::fault::Fault;
use super::kept::{Kept, Usage};
use super::lanes::Lanes;
use super::libraries;
use super::mailbox::Mailbox;
use super::memory::Staging;
use super::module::Functions;
use super::once::{OnceMap, lock};
use super::recorder::{RECORDER, Recorder};
use super::status::{check, failure};
use super::trace::{self, TRACING, Tracer};
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::sys::{self, CUdevice_attribute, CUdevice_attribute_enum as attribute, CUresult};
use fuse_compiler::plan::abi::Target;
use std::ffi::CStr;
use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};

/// A GPU as this process uses it: its primary context, its streams, and the functions loaded on it.
pub struct Context {
    facts: Facts,
    pub(super) backend: Backend,
    pub(super) functions: Functions,
    pub(super) libraries: Libraries,
    pub(super) fault: Fault,
    pub(super) kept: Kept,
    pub(super) usage: Usage,
    pub(super) lanes: Lanes,
}

/// What a context drives.
pub(super) enum Backend {
    /// A GPU.
    Real(Real),
    /// Nothing; launches are noted for tests.
    Recording(Recorder),
    /// Nothing; a call is taken down, to be run again.
    Tracing(Tracer),
}

/// What kernels are planned by.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The number of the device in this process.
    pub ordinal: usize,
    /// What the vendor calls it.
    pub name: Box<str>,
    /// The architecture cubins are compiled for: `sm_90a`.
    pub arch: Box<str>,
    /// The version of CUDA the driver speaks: 13000 for 13.0.
    pub driver_version: u32,
    /// How many multiprocessors there are.
    pub sm_count: u32,
    /// The most shared memory a block can have, in bytes.
    pub max_shared_per_block: u32,
    /// The shared memory of a multiprocessor, in bytes.
    pub max_shared_per_sm: u32,
    /// The most threads resident on a multiprocessor.
    pub max_threads_per_sm: u32,
    /// The size of the level-two cache in bytes.
    pub l2_bytes: u32,
    /// The size of device memory in bytes.
    pub memory_bytes: usize,
}

/// The driver's handles.
pub(super) struct Real {
    pub(super) context: sys::CUcontext,
    pub(super) stream: sys::CUstream,
    pub(super) pool: sys::CUmemoryPool,
    pub(super) staging: Mutex<Staging>,
    /// How many small reads there were, up to as many as the mailbox is opened after.
    pub(super) small_reads: AtomicU32,
    /// Opened when small reads have become many; `None` where there is none.
    pub(super) mailbox: OnceLock<Option<Mutex<Mailbox>>>,
    /// A stream that nothing runs on, for launches to be captured; made by the first capture.
    capture: Mutex<sys::CUstream>,
}

// SAFETY: the driver's handles may be used from any thread; what they point at is never freed, since contexts live as
// long as the process.
unsafe impl Send for Real {}
// SAFETY: as above; the driver locks for itself.
unsafe impl Sync for Real {}

impl Context {
    /// The context of the device with this number, opened by the first call.
    pub fn get(ordinal: usize) -> Result<Arc<Context>> {
        static CONTEXTS: LazyLock<OnceMap<usize, Arc<Context>>> = LazyLock::new(OnceMap::new);
        if ordinal == TRACING {
            return Ok(trace::current());
        }
        CONTEXTS.get_or_try_make(ordinal, || match ordinal {
            RECORDER => Ok(Context::recording("sm_90a")),
            ordinal => open(ordinal).map(Arc::new),
        })
    }

    /// Whether this machine has a driver and a device.
    pub fn is_available() -> bool {
        device_count().is_ok_and(|count| count > 0)
    }

    /// A context without a GPU that notes what it is asked to do, see [`Context::recorded`].
    pub(crate) fn recording(arch: &str) -> Arc<Context> {
        let facts = Facts::of_recorder(arch);
        let recorder = Recorder::new(facts.memory_bytes);
        Arc::new(Context::new(facts, Backend::Recording(recorder), Fault::on_host()))
    }

    pub(super) fn new(facts: Facts, backend: Backend, fault: Fault) -> Context {
        let (functions, libraries) = (Functions::new(), Libraries::new());
        Context {
            facts,
            backend,
            functions,
            libraries,
            fault,
            kept: Kept::new(),
            usage: Usage::default(),
            lanes: Lanes::new(),
        }
    }

    /// What is known about the device.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Free and total device memory in bytes, as the driver sees it; memory kept in the pool counts as used.
    pub fn memory_info(&self) -> Result<(usize, usize)> {
        let real = match &self.backend {
            Backend::Real(real) => real,
            Backend::Recording(recorder) => {
                let total = self.facts.memory_bytes;
                return Ok((total - recorder.in_use(), total));
            }
            Backend::Tracing(tracer) => return tracer.target().memory_info(),
        };
        real.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes two sizes.
        check(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }, "read the memory of the device")?;
        Ok((free, total))
    }

    /// Waits for everything launched so far.
    pub fn synchronize(&self) -> Result<()> {
        let Backend::Real(real) = &self.backend else { return Ok(()) };
        real.make_current()?;
        self.streams(real).into_iter().try_for_each(|stream| real.synchronize(stream))
    }

    /// Makes the driver's context current on this thread, for launches that do not see to it themselves.
    pub(crate) fn make_current(&self) -> Result<()> {
        if let Backend::Real(real) = &self.backend { real.make_current() } else { Ok(()) }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} ({}, {})", self.facts.ordinal, self.facts.name, self.facts.arch)
    }
}

impl Real {
    /// Makes the context current on this thread, unless it is.
    ///
    /// The driver keeps the current context in a thread-local of its own. Asking it is as cheap as a copy here would be,
    /// and stays right when other CUDA code of the process switches contexts.
    pub(super) fn make_current(&self) -> Result<()> {
        let mut current = std::ptr::null_mut();
        // SAFETY: the driver is initialised and writes one handle.
        let status = unsafe { sys::cuCtxGetCurrent(&mut current) };
        if status == CUresult::CUDA_SUCCESS && current == self.context {
            return Ok(());
        }
        // SAFETY: the context is retained for the life of the process.
        check(unsafe { sys::cuCtxSetCurrent(self.context) }, "make the context current")
    }

    /// The stream that launches are captured on, for one thread at a time; the context must be current.
    pub(super) fn capture_stream(&self) -> Result<MutexGuard<'_, sys::CUstream>> {
        let mut stream = lock(&self.capture);
        if stream.is_null() {
            let non_blocking = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
            // SAFETY: the driver writes one handle.
            check(unsafe { sys::cuStreamCreate(&mut *stream, non_blocking) }, "create a stream")?;
        }
        Ok(stream)
    }

    /// Waits for a stream; the context must be current.
    pub(super) fn synchronize(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the stream lives as long as the context.
        check(unsafe { sys::cuStreamSynchronize(stream) }, "finish the launched kernels")
    }
}

/// Fails where there is no driver or no device with this number, and says which it is.
pub(crate) fn probe(ordinal: usize) -> Result<()> {
    match device_count()? {
        count if ordinal < count => Ok(()),
        0 => Err(no_device("this machine has no CUDA device".into())),
        1 => Err(no_device(format!("cuda:{ordinal} does not exist, this machine has only cuda:0"))),
        count => {
            Err(no_device(format!("cuda:{ordinal} does not exist, this machine has cuda:0 to cuda:{}", count - 1)))
        }
    }
}

fn no_device(text: String) -> Error {
    Error::new(ErrorKind::Device, text)
}

/// How many devices the driver has; it is looked for and initialised once.
fn device_count() -> Result<usize> {
    static COUNT: OnceLock<Result<usize>> = OnceLock::new();
    COUNT.get_or_init(init).clone()
}

fn init() -> Result<usize> {
    // SAFETY: this only opens and closes the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(no_device(
            "no CUDA driver: libcuda was not found, install the NVIDIA driver or use the cpu".into(),
        ));
    }
    // SAFETY: the library is there, and its initialisation has no preconditions.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_SUCCESS => {}
        // The library without a device behind it, as in a container that was given none.
        CUresult::CUDA_ERROR_NO_DEVICE => return Ok(0),
        status => return Err(failure(status, "initialise the driver")),
    }
    let mut count = 0;
    // SAFETY: the driver is initialised and writes one number.
    check(unsafe { sys::cuDeviceGetCount(&mut count) }, "count the devices")?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn open(ordinal: usize) -> Result<Context> {
    libraries::open_ahead();
    probe(ordinal)?;
    let device = ordinal as sys::CUdevice;
    let facts = Facts::of_device(device)?;
    let real = Real::open(device)?;
    let fault = Fault::mapped()?;
    Ok(Context::new(facts, Backend::Real(real), fault))
}

impl Real {
    /// Retains the primary context, which other CUDA libraries of the process share, and leaves it current.
    fn open(device: sys::CUdevice) -> Result<Real> {
        let (mut context, mut stream, mut pool) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        let non_blocking = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        // Freed memory stays in the pool: giving it back to the system costs a synchronisation, and the next call wants it.
        let mut keep_all = u64::MAX;
        let threshold = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: `device` exists, each handle is written before it is used, and the threshold is the u64 its attribute takes.
        unsafe {
            check(sys::cuDevicePrimaryCtxRetain(&mut context, device), "open the device")?;
            check(sys::cuCtxSetCurrent(context), "make the context current")?;
            check(sys::cuStreamCreate(&mut stream, non_blocking), "create a stream")?;
            check(sys::cuDeviceGetDefaultMemPool(&mut pool, device), "find the memory pool")?;
            check(sys::cuMemPoolSetAttribute(pool, threshold, (&raw mut keep_all).cast()), "set up the memory pool")?;
        }
        let capture = Mutex::new(std::ptr::null_mut());
        Ok(Real {
            context,
            stream,
            pool,
            staging: Mutex::new(Staging::new()?),
            mailbox: OnceLock::new(),
            small_reads: AtomicU32::new(0),
            capture,
        })
    }
}

impl Facts {
    /// How many bytes of arguments a kernel takes: from compute capability 7.0 on, drivers since CUDA 12.1 take more.
    pub(crate) fn max_argument_bytes(&self) -> usize {
        let digits = self.arch.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
        let capability: u32 = digits.parse().unwrap_or(0);
        if capability >= 70 && self.driver_version >= 12010 { 32764 } else { 4096 }
    }

    fn of_device(device: sys::CUdevice) -> Result<Facts> {
        let fact = |which: CUdevice_attribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the device exists and the driver writes one number.
            check(
                unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) },
                "read the attributes of the device",
            )?;
            Ok(value.unsigned_abs())
        };
        let (mut version, mut memory_bytes) = (0, 0);
        // SAFETY: the device exists and the driver writes a number each.
        unsafe {
            check(sys::cuDriverGetVersion(&mut version), "read the version of the driver")?;
            check(sys::cuDeviceTotalMem_v2(&mut memory_bytes, device), "read the memory of the device")?;
        }
        let major = fact(attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = fact(attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok(Facts {
            ordinal: device as usize,
            name: device_name(device)?,
            arch: arch(major, minor).into(),
            driver_version: version.unsigned_abs(),
            sm_count: fact(attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            max_shared_per_block: fact(attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            max_shared_per_sm: fact(attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            max_threads_per_sm: fact(attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            l2_bytes: fact(attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            memory_bytes,
        })
    }

    /// What the choice of a kernel's variant wants to know.
    pub fn target(&self) -> Target {
        let capability = self.arch.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
        Target {
            capability,
            multiprocessors: self.sm_count,
            shared_per_block: self.max_shared_per_block as usize,
            shared_per_multiprocessor: self.max_shared_per_sm as usize,
        }
    }

    /// An H200 under another name, so that what tests see planned is what runs there.
    fn of_recorder(arch: &str) -> Facts {
        Facts {
            ordinal: RECORDER,
            name: "recorder".into(),
            arch: arch.into(),
            driver_version: 13000,
            sm_count: 132,
            max_shared_per_block: 227 << 10,
            max_shared_per_sm: 228 << 10,
            max_threads_per_sm: 2048,
            l2_bytes: 50 << 20,
            memory_bytes: 139 << 30,
        }
    }
}

fn device_name(device: sys::CUdevice) -> Result<Box<str>> {
    let mut name = [0; 256];
    // SAFETY: the driver writes at most as many bytes as it is told there are, the last of them zero.
    check(
        unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device) },
        "read the name of the device",
    )?;
    let name = name.map(|byte| byte as u8);
    Ok(CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into())
}

/// The architecture with all features of the device: from 9.0 on some (wgmma, tcgen05) exist only in the `a` variant.
fn arch(major: u32, minor: u32) -> String {
    let suffix = if major >= 9 { "a" } else { "" };
    format!("sm_{major}{minor}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_name_the_variant_with_all_features() {
        assert_eq!(arch(8, 0), "sm_80");
        assert_eq!(arch(9, 0), "sm_90a");
        assert_eq!(arch(12, 0), "sm_120a");
    }

    #[test]
    fn a_device_that_does_not_exist_is_named() {
        let error = Context::get(4096).unwrap_err();
        match Context::is_available() {
            true => assert!(error.to_string().starts_with("cuda:4096 does not exist"), "{error}"),
            false => assert_eq!(error.kind(), ErrorKind::Device, "{error}"),
        }
    }
}
