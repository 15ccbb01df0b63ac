//! Compiling CUDA text to machine code of one architecture with NVRTC.

use super::cache::Program;
use super::libraries::open_for_good;
use crate::error::{Error, Result};
use crate::log::{self, Topic};
use cudarc::nvrtc::sys::{self, nvrtcResult};
use fuse_compiler::emit::cuda::compile;
use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;
use std::time::Instant;

/// A result of the library, or what it wrote about the failure.
type Logged<T> = std::result::Result<T, String>;

/// Lines of source shown on either side of a fault.
const AROUND: usize = 3;

/// How many faults of a kernel are shown.
const SHOWN: usize = 5;

/// The library, where it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nvrtc {
    /// Its version, major and minor.
    pub(super) version: (u32, u32),
}

impl Nvrtc {
    /// Looks for the library, once per process.
    pub(super) fn detect() -> Option<Nvrtc> {
        static FOUND: OnceLock<Option<Nvrtc>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let present = open_for_good("nvrtc");
            let (mut major, mut minor) = (0, 0);
            // SAFETY: the library is there and writes two numbers.
            let known = present && unsafe { sys::nvrtcVersion(&mut major, &mut minor) } == nvrtcResult::NVRTC_SUCCESS;
            known.then(|| Nvrtc { version: (major.unsigned_abs(), minor.unsigned_abs()) })
        })
    }

    /// The cubin of `program`, or a compile error with the numbered source around each fault.
    pub(super) fn compile(self, program: &Program) -> Result<Vec<u8>> {
        let start = Instant::now();
        let outcome = compile_text(program, program.source);
        if let Ok(cubin) = &outcome {
            let (ms, kib) = (start.elapsed().as_millis(), cubin.len() >> 10);
            log::line(Topic::Compile, format_args!("{} for {} in {ms} ms, {kib} KiB", program.name, program.arch));
        }
        outcome.map_err(|log| explain(program, log))
    }
}

/// Whether there is a compiler in this process.
pub(crate) fn compiles() -> bool {
    Nvrtc::detect().is_some()
}

/// The one message for a machine without the library that meets a kernel it has no cubin of.
pub(super) fn missing(program: &Program) -> Error {
    Error::compile(format!(
        "cannot compile `{}` for {}: NVRTC was not found and the kernel is not in the cache\n\
         help: install it with `pip install nvidia-cuda-nvrtc` or the CUDA toolkit, and put the folder of libnvrtc.so.13 on LD_LIBRARY_PATH",
        program.name, program.arch,
    ))
}

/// A program of the library, destroyed at the end of its scope.
struct Handle(sys::nvrtcProgram);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle was created and is destroyed once.
        unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}

/// The cubin, or the log.
fn compile_text(program: &Program, source: &str) -> Logged<Vec<u8>> {
    let handle = create(program, source)?;
    let options: Vec<CString> = options(program).map(c_string).collect::<Logged<_>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: the program lives, and every pointer is to text that ends with a zero byte.
    let status = unsafe { sys::nvrtcCompileProgram(handle.0, pointers.len() as i32, pointers.as_ptr()) };
    if status != nvrtcResult::NVRTC_SUCCESS {
        return Err(format!("{}\n{}", status_text(status), compile_log(&handle)));
    }
    let mut len = 0;
    // SAFETY: the program was compiled for a real architecture, so it has a cubin; the library writes its size.
    check(unsafe { sys::nvrtcGetCUBINSize(handle.0, &mut len) })?;
    let mut cubin = vec![0u8; len];
    // SAFETY: the vector has the size the library asked for.
    check(unsafe { sys::nvrtcGetCUBIN(handle.0, cubin.as_mut_ptr().cast()) })?;
    Ok(cubin)
}

fn create(program: &Program, source: &str) -> Logged<Handle> {
    let defines = program.defines.iter().map(|(name, value)| (*name, value.as_str()));
    let (source, name) =
        (c_string(compile::with_defines(program.name, defines, source))?, c_string(format!("{}.cu", program.name))?);
    let mut handle = Handle(std::ptr::null_mut());
    let (no_headers, no_names) = (std::ptr::null(), std::ptr::null());
    // SAFETY: both texts end with a zero byte and are copied; there are no headers.
    check(unsafe { sys::nvrtcCreateProgram(&mut handle.0, source.as_ptr(), name.as_ptr(), 0, no_headers, no_names) })?;
    Ok(handle)
}

/// Everything the library is told beside the source.
pub(super) fn options(program: &Program) -> impl Iterator<Item = String> {
    compile::options(program.arch, program.contract)
}

fn c_string(text: String) -> Logged<CString> {
    CString::new(text).map_err(|_| "the source holds a zero byte".into())
}

fn check(status: nvrtcResult) -> Logged<()> {
    if status == nvrtcResult::NVRTC_SUCCESS { Ok(()) } else { Err(status_text(status)) }
}

fn status_text(status: nvrtcResult) -> String {
    // SAFETY: the library returns static text for every status.
    unsafe { CStr::from_ptr(sys::nvrtcGetErrorString(status)) }.to_string_lossy().into_owned()
}

fn compile_log(handle: &Handle) -> String {
    let mut len = 0;
    // SAFETY: the program lives and the library writes a size.
    if unsafe { sys::nvrtcGetProgramLogSize(handle.0, &mut len) } != nvrtcResult::NVRTC_SUCCESS {
        return String::new();
    }
    let mut log = vec![0u8; len];
    // SAFETY: the vector has the size the library asked for.
    unsafe { sys::nvrtcGetProgramLog(handle.0, log.as_mut_ptr().cast()) };
    String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned()
}

/// The error for a program that failed with `log`.
///
/// Where `#line` points into the user's file, the positions in the log do too. Compiling again without those lines gives
/// positions in the text we have, which is what can be shown.
#[cold]
fn explain(program: &Program, log: String) -> Error {
    let plain = without_line_directives(program.source);
    let log = if plain == program.source { log } else { compile_text(program, &plain).err().unwrap_or(log) };
    let shown = faults(&log, program.name).map(|fault| fault.show(program.source)).collect::<Vec<_>>().join("\n");
    let detail = if shown.is_empty() { log } else { shown };
    Error::compile(format!("kernel `{}` does not compile for {}\n{detail}", program.name, program.arch))
}

/// The source with its `#line` directives emptied, so that every other line keeps its number.
fn without_line_directives(source: &str) -> String {
    source.split('\n').map(|line| if is_line_directive(line) { "" } else { line }).collect::<Vec<_>>().join("\n")
}

/// Whether a line of source only says where the lines below it come from.
pub(super) fn is_line_directive(line: &str) -> bool {
    line.trim_start().starts_with("#line")
}

/// A line of the log that names a line of the source.
struct Fault<'a> {
    line: usize,
    text: &'a str,
}

/// The first errors of a log of lines like `k0.cu(12): error: identifier "y" is undefined`.
fn faults<'a>(log: &'a str, name: &str) -> impl Iterator<Item = Fault<'a>> {
    let place = format!("{name}.cu(");
    let parse = move |line: &'a str| {
        let (number, text) = line.strip_prefix(&place)?.split_once("): ")?;
        text.starts_with("error").then_some(Fault { line: number.parse().ok()?, text })
    };
    log.lines().filter_map(parse).take(SHOWN)
}

impl Fault<'_> {
    /// The message and the numbered source around the line, which is marked.
    fn show(&self, source: &str) -> String {
        let first = self.line.saturating_sub(AROUND + 1);
        let lines = source.lines().enumerate().skip(first).take(2 * AROUND + 1);
        let numbered = lines.map(|(index, line)| {
            let mark = if index + 1 == self.line { '>' } else { ' ' };
            format!("{mark}{:>5} | {line}", index + 1)
        });
        std::iter::once(self.text.to_owned()).chain(numbered).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_shows_the_numbered_source_around_it() {
        let source = "a\nb\nc\nd\ne\nf\ng\nh\ni";
        let log = "k.cu(5): error: e is wrong\n  e\n  ^\n\nk.cu(7): warning: unused\n1 error detected";
        let shown: Vec<String> = faults(log, "k").map(|fault| fault.show(source)).collect();
        let expected =
            "error: e is wrong\n     2 | b\n     3 | c\n     4 | d\n>    5 | e\n     6 | f\n     7 | g\n     8 | h";
        assert_eq!(shown, [expected]);
    }

    #[test]
    fn emptied_line_directives_keep_the_numbers_of_the_others() {
        assert_eq!(without_line_directives("a\n#line 3 \"m.rs\"\nb\n"), "a\n\nb\n");
    }
}
