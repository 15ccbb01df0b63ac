//! NVRTC on the machine that builds.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

type Program = *mut c_void;
type Text = *const c_char;
type Create = unsafe extern "C" fn(*mut Program, Text, Text, c_int, *const Text, *const Text) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const Text) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;

/// The part of the library that compiles.
pub(super) struct Nvrtc {
    create: Create,
    compile: Compile,
    cubin: (Size, Get),
    log: (Size, Get),
    destroy: Destroy,
}

impl Nvrtc {
    /// Looks for the library once, where the system looks for libraries.
    pub(super) fn find() -> Option<&'static Nvrtc> {
        static FOUND: OnceLock<Option<Nvrtc>> = OnceLock::new();
        let names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];
        FOUND.get_or_init(|| names.into_iter().find_map(Nvrtc::open)).as_ref()
    }

    fn open(name: &str) -> Option<Nvrtc> {
        // SAFETY: the library's initialisers have no preconditions; it stays open, so that its functions stay valid, and
        // the types are those of nvrtc.h.
        unsafe {
            let library = Box::leak(Box::new(libloading::Library::new(name).ok()?));
            Some(Nvrtc {
                create: *library.get(b"nvrtcCreateProgram").ok()?,
                compile: *library.get(b"nvrtcCompileProgram").ok()?,
                cubin: (*library.get(b"nvrtcGetCUBINSize").ok()?, *library.get(b"nvrtcGetCUBIN").ok()?),
                log: (*library.get(b"nvrtcGetProgramLogSize").ok()?, *library.get(b"nvrtcGetProgramLog").ok()?),
                destroy: *library.get(b"nvrtcDestroyProgram").ok()?,
            })
        }
    }

    /// The machine code of a source, or what the library says against it.
    pub(super) fn compile(
        &self,
        name: &str,
        source: &str,
        options: impl Iterator<Item = String>,
    ) -> Result<Vec<u8>, String> {
        let text = |text: String| CString::new(text).map_err(|_| "a text holds a zero byte".to_owned());
        let (source, name) = (text(source.to_owned())?, text(format!("{name}.cu"))?);
        let options = options.map(text).collect::<Result<Vec<CString>, String>>()?;
        let options: Vec<Text> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program: Program = ptr::null_mut();
        // SAFETY: the texts end with a zero byte and live through the calls; the program is destroyed once, at the end.
        unsafe {
            if (self.create)(&mut program, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null()) != 0 {
                return Err("there is no program of it".to_owned());
            }
            let result = match (self.compile)(program, options.len() as c_int, options.as_ptr()) {
                0 => read(program, self.cubin).ok_or_else(|| "there is no machine code of it".to_owned()),
                _ => Err(read(program, self.log).map_or_else(String::new, until_zero)),
            };
            (self.destroy)(&mut program);
            result
        }
    }
}

/// # Safety
/// The program lives, and the functions are two of the library that give the size of something and the thing.
unsafe fn read(program: Program, (size, get): (Size, Get)) -> Option<Vec<u8>> {
    let mut len = 0;
    // SAFETY: the caller's promise; there is room for as many bytes as the library names.
    unsafe {
        if size(program, &mut len) != 0 {
            return None;
        }
        let mut bytes = vec![0u8; len];
        (get(program, bytes.as_mut_ptr().cast()) == 0).then_some(bytes)
    }
}

fn until_zero(bytes: Vec<u8>) -> String {
    CStr::from_bytes_until_nul(&bytes).map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
}
