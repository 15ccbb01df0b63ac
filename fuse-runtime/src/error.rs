//! The one error of the runtime.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};

/// What went wrong, for programs that want to react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Extents, ranks or dims of tensors do not go together.
    Shape,
    /// Tensors live on different devices, or the device asked for does not exist.
    Device,
    /// The device, or the host, has no memory left.
    OutOfMemory,
    /// A kernel could not be compiled.
    Compile,
    /// The CUDA driver or one of its libraries reported a failure.
    Driver,
    /// A file could not be read or written, or holds something else than expected.
    Io,
    /// An index was out of range, or an integer was divided by zero.
    Index,
}

/// The result of everything that can fail at run time.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure at run time: its [`kind`](Error::kind) for programs, its text for people.
///
/// Eager ops panic with an `Error` as payload; a function under `#[compile]` that returns `Result<_, E>` with
/// `E: From<Error>` returns it.
///
/// ```
/// use fuse_runtime::{Error, ErrorKind};
/// let error = Error::shape("reshape", "6 elements do not fill [4, 2]");
/// assert_eq!(error.kind(), ErrorKind::Shape);
/// assert_eq!(error.to_string(), "`reshape`: 6 elements do not fill [4, 2]");
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    kind: ErrorKind,
    text: Box<str>,
}

impl Error {
    /// An error of any kind whose text stands as it is.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Error { kind, text: text.into().into_boxed_str() }
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Extents that do not fit, found by `op`.
    pub fn shape(op: &str, text: impl fmt::Display) -> Self {
        Error::of_op(ErrorKind::Shape, op, text)
    }

    /// An index out of range or an integer division by zero, found by `op`.
    pub fn index(op: &str, text: impl fmt::Display) -> Self {
        Error::of_op(ErrorKind::Index, op, text)
    }

    /// Tensors on different devices, found by `op`, or a device that does not exist.
    pub fn device(op: &str, text: impl fmt::Display) -> Self {
        Error::of_op(ErrorKind::Device, op, text)
    }

    /// `bytes` more than `place` could give.
    pub fn out_of_memory(place: impl fmt::Display, bytes: usize) -> Self {
        Error::new(ErrorKind::OutOfMemory, format!("out of memory: {place} could not give {bytes} bytes"))
    }

    /// A kernel that does not compile; the text carries the numbered source around the fault.
    pub fn compile(text: impl Into<String>) -> Self {
        Error::new(ErrorKind::Compile, text)
    }

    /// A failure reported by the CUDA driver or one of its libraries.
    pub fn driver(text: impl Into<String>) -> Self {
        Error::new(ErrorKind::Driver, text)
    }

    /// A file that could not be read or written; `path` is named.
    pub fn io(path: impl fmt::Display, text: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Io, format!("{path}: {text}"))
    }

    fn of_op(kind: ErrorKind, op: &str, text: impl fmt::Display) -> Self {
        Error::new(kind, format!("`{op}`: {text}"))
    }
}

// `unwrap` prints the Debug form, so it carries the words and not the fields.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} error: {}", self.kind, self.text)
    }
}

thread_local! {
    /// How many [`catch`] scopes this thread is in.
    static CATCHING: Cell<usize> = const { Cell::new(0) };
}

/// Panics with `error` as payload, as eager ops do.
///
/// The default panic hook knows no payload but text, so the text is printed first, unless a [`catch`] waits for it.
#[track_caller]
#[cold]
pub fn raise(error: Error) -> ! {
    if CATCHING.get() > 0 {
        resume_unwind(Box::new(error));
    }
    eprintln!("error: {error}");
    panic_any(error)
}

/// Runs `body` and returns the [`Error`] an eager op in it panicked with; other panics go on.
///
/// ```
/// use fuse_runtime::error::{catch, raise};
/// use fuse_runtime::{Error, ErrorKind};
/// let caught: Result<(), Error> = catch(|| raise(Error::index("embedding", "index 4 is out of range")));
/// assert_eq!(caught.unwrap_err().kind(), ErrorKind::Index);
/// ```
pub fn catch<R>(body: impl FnOnce() -> R) -> Result<R> {
    CATCHING.set(CATCHING.get() + 1);
    // Tensors change only by whole successful ops, so no half-done state can be seen after the unwinding.
    let outcome = catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(CATCHING.get() - 1);
    outcome.or_else(|payload| match payload.downcast::<Error>() {
        Ok(error) => Err(*error),
        Err(other) => resume_unwind(other),
    })
}

/// Unwraps at the op of the user's line, or panics there with the error as payload.
pub trait OrRaise<T> {
    /// The value, or a panic with the error as payload at the caller's line.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T> {
    #[track_caller]
    fn or_raise(self) -> T {
        match self {
            Ok(value) => value,
            Err(error) => raise(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catch_returns_the_error_of_an_eager_op() {
        let caught: Result<()> = catch(|| Err(Error::index("gather", "index 9 is out of range")).or_raise());
        assert_eq!(caught, Err(Error::index("gather", "index 9 is out of range")));
    }

    #[test]
    fn catch_lets_other_panics_through() {
        let outcome = catch_unwind(|| catch(|| resume_unwind(Box::new("not ours"))));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"not ours"));
        assert_eq!(CATCHING.get(), 0);
    }

    #[test]
    fn raise_outside_of_catch_panics_with_the_error() {
        let outcome: std::thread::Result<()> =
            catch_unwind(|| raise(Error::shape("add", "[2] and [3] do not broadcast")));
        let error = outcome.unwrap_err().downcast::<Error>().unwrap();
        assert_eq!(error.kind(), ErrorKind::Shape);
    }
}
