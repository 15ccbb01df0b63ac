//! A choice as a line of a file.

use serde::{Deserialize, Serialize};

/// The first line of a file; another version is another format.
pub(super) const TITLE: &str = "// what was fastest, by fuse (format 1); lines may be removed, and are measured again";

/// What a choice is about. Two machines, or two versions of a kernel, never share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// The name of the device.
    pub device: String,
    /// Its architecture.
    pub arch: String,
    /// The name of the kernel, or of the library.
    pub kernel: String,
    /// A hash of the kernel's text and element types, or the version of the library.
    pub text: String,
    /// The class of sizes and layouts.
    pub shape: String,
}

/// The fastest candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Timed {
    /// The candidate, in words of those who time it.
    pub choice: String,
    /// Its time in microseconds.
    pub us: f64,
    /// The time of what would run without tuning.
    pub default_us: f64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    device: String,
    arch: String,
    kernel: String,
    text: String,
    shape: String,
    choice: String,
    us: f64,
    default_us: f64,
}

/// The line of a choice.
pub(super) fn write(subject: &Subject, timed: &Timed) -> String {
    let Subject { device, arch, kernel, text, shape } = subject.clone();
    let Timed { choice, us, default_us } = timed.clone();
    let round = |us: f64| (us * 100.0).round() / 100.0;
    let line = Line { device, arch, kernel, text, shape, choice, us: round(us), default_us: round(default_us) };
    ron::to_string(&line).expect("a line is plain data")
}

/// The choice of a line; `Ok(None)` for an empty line or a comment.
pub(super) fn read(line: &str) -> Result<Option<(Subject, Timed)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with("//") {
        return Ok(None);
    }
    let line: Line = ron::from_str(line).map_err(|error| error.to_string())?;
    let Line { device, arch, kernel, text, shape, choice, us, default_us } = line;
    Ok(Some((Subject { device, arch, kernel, text, shape }, Timed { choice, us, default_us })))
}
