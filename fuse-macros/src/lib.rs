//! The `#[compile]` attribute of fuse.
