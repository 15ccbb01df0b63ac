//! What a compiler of the text is told, at run time or while the user's crate is built.

/// The arithmetic of a Rust scalar: subnormals kept, division and square root rounded correctly.
/// Sources need no headers, and what they define without `__global__` or `__host__` is meant for the device.
const OPTIONS: [&str; 6] =
    ["-ftz=false", "-prec-div=true", "-prec-sqrt=true", "--std=c++17", "-lineinfo", "-default-device"];

/// What a kernel begins with that waits for the one before it, so that it may be started early.
pub const WAITS: &str = "fuse_behind();";

/// Everything a compiler is told beside the source; `contract`: whether products may contract with the sums they go into.
pub fn options(arch: &str, contract: bool) -> impl Iterator<Item = String> {
    let own = [format!("--gpu-architecture={arch}"), format!("-fmad={contract}")];
    own.into_iter().chain(OPTIONS.map(String::from))
}

/// The source of a kernel after its defines, with its own line numbers.
///
/// As `-D` options they would also be seen by the library's built-in header, which has templates over a `T`.
pub fn with_defines<'a>(name: &str, defines: impl Iterator<Item = (&'a str, &'a str)>, source: &str) -> String {
    let defines = defines.map(|(name, value)| format!("#define {name} {value}\n"));
    let own_lines = format!("#line 1 \"{name}.cu\"\n");
    defines.chain([own_lines, source.to_owned()]).collect()
}

/// A define as [`Variant::defines`](crate::plan::abi::Variant::defines) writes it: its name and its value, if it has one.
pub fn name_and_value(define: &str) -> (&str, &str) {
    define.split_once('=').unwrap_or((define, ""))
}
