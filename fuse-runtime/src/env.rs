//! What the environment of the process says.
//!
//! | variable | meaning |
//! |---|---|
//! | `FUSE_BACKEND` | `eager` runs the original of every compiled function; `auto`, or nothing, leaves it to the attribute |
//! | `FUSE_MODE` | `default`, `reduce-overhead` or `max-autotune` for every compiled function, whatever its attribute says |
//! | `FUSE_DEVICE` | the device of `Device::best()`: `cpu` or `cuda:N` |
//! | `FUSE_LOG` | topics to write lines about: `compile,launch,cache,tune,break` |
//! | `FUSE_CACHE_DIR` | the folder of compiled kernels, read by the cache on disk |
//! | `FUSE_WITHOUT` | what to do without: libraries, as if they were not installed, blocks of memory kept for later, calls made ready, first calls that are not, and reads of a few bytes without a copy: `nvrtc,cublaslt,kept,tape,steps,mailbox` |

use crate::log;
use fuse_compiler::options::Mode;
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

/// The device that `FUSE_DEVICE` names.
pub(crate) fn device() -> Option<String> {
    variable("FUSE_DEVICE")
}

/// The topics that `FUSE_LOG` lists.
pub(crate) fn log_topics() -> String {
    variable("FUSE_LOG").unwrap_or_default()
}

/// Whether `FUSE_WITHOUT` lists a library.
pub(crate) fn is_without(library: &str) -> bool {
    variable("FUSE_WITHOUT").is_some_and(|list| list.split(',').any(|name| name.trim() == library))
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
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
