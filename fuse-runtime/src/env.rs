//! What the environment of the process says.
//!
//! | variable | meaning |
//! |---|---|
//! | `FUSE_BACKEND` | `eager` runs the original of every compiled function; `auto`, or nothing, leaves it to the attribute |
//! | `FUSE_MODE` | `default`, `reduce-overhead` or `max-autotune` for every compiled function, whatever its attribute says |
//! | `FUSE_DYNAMIC` | `true` or `false` for every function, whatever its attribute says about extents that differ from call to call |
//! | `FUSE_DEVICE` | the device of `Device::best()`: `cpu` or `cuda:N` |
//! | `FUSE_LOG` | topics to write lines about: `compile,launch,cache,tune,break` |
//! | `FUSE_CACHE_DIR` | the folder of compiled kernels |
//! | `FUSE_TUNE_FILE` | the file of what was fastest, read and added to by `max-autotune`; else `tune.ron` in that folder |
//! | `FUSE_WITHOUT` | what to do without: libraries, as if they were not installed, blocks of memory kept for later, calls made ready, first calls that are not, reads of a few bytes without a copy, launches for lists of tensors, kernels that start early, products on Hopper's tensor cores, several products in one kernel, several small kernels in one launch, attention in one kernel, and Hopper's own kernels of attention: `nvrtc,cublaslt,kept,tape,steps,mailbox,list,overlap,hopper,products,small,attention,wgmma` |

use crate::log;
use fuse_compiler::options::Mode;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Whether `FUSE_BACKEND` asks for the originals of compiled functions; read once.
pub(crate) fn wants_eager() -> bool {
    static EAGER: OnceLock<bool> = OnceLock::new();
    *EAGER.get_or_init(|| {
        let backend = variable("FUSE_BACKEND").unwrap_or_default();
        parse_backend(&backend).unwrap_or_else(|| {
            log::warn(format_args!("FUSE_BACKEND: unknown backend `{backend}`, known are auto, eager"));
            false
        })
    })
}

/// The mode that `FUSE_MODE` asks for, whatever the attributes say; read once.
pub(crate) fn mode() -> Option<Mode> {
    static MODE: OnceLock<Option<Mode>> = OnceLock::new();
    *MODE.get_or_init(|| {
        let name = variable("FUSE_MODE")?;
        let mode = Mode::from_word(&name);
        if mode.is_none() {
            log::warn(format_args!("FUSE_MODE: unknown mode `{name}`, known are {}", Mode::WORDS.join(", ")));
        }
        mode
    })
}

/// Whether extents differ from call to call as `FUSE_DYNAMIC` has it, whatever the attributes say; read once.
pub(crate) fn dynamic() -> Option<bool> {
    static DYNAMIC: OnceLock<Option<bool>> = OnceLock::new();
    *DYNAMIC.get_or_init(|| {
        let value = variable("FUSE_DYNAMIC")?;
        let dynamic = value.parse().ok();
        if dynamic.is_none() {
            log::warn(format_args!("FUSE_DYNAMIC is true or false, not `{value}`"));
        }
        dynamic
    })
}

/// The device that `FUSE_DEVICE` names.
pub(crate) fn device() -> Option<String> {
    variable("FUSE_DEVICE")
}

/// The topics that `FUSE_LOG` lists.
pub(crate) fn log_topics() -> String {
    variable("FUSE_LOG").unwrap_or_default()
}

/// The folder of compiled kernels: `FUSE_CACHE_DIR`, else `fuse` in the user's cache folder; none where there is no home.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let in_home = || path("HOME").map(|home| home.join(".cache"));
    let in_cache = || path("XDG_CACHE_HOME").or_else(in_home).map(|cache| cache.join("fuse"));
    path("FUSE_CACHE_DIR").or_else(in_cache)
}

/// The file of what was fastest: `FUSE_TUNE_FILE`, else `tune.ron` beside the compiled kernels.
pub(crate) fn tune_file() -> Option<PathBuf> {
    path("FUSE_TUNE_FILE").or_else(|| cache_folder().map(|folder| folder.join("tune.ron")))
}

/// Whether `FUSE_WITHOUT` lists a library.
pub(crate) fn is_without(library: &str) -> bool {
    variable("FUSE_WITHOUT").is_some_and(|list| list.split(',').any(|name| name.trim() == library))
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A variable that names a place, which need not be text.
fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Whether a backend is the eager one, or `None` if there is no such backend.
fn parse_backend(name: &str) -> Option<bool> {
    match name {
        "" | "auto" => Some(false),
        "eager" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_known_by_name() {
        assert_eq!(["", "auto", "eager", "egaer"].map(parse_backend), [Some(false), Some(false), Some(true), None]);
    }
}
