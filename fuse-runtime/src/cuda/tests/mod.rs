//! Tests that need NVRTC or a device; without them each says once that it was skipped.

mod compiled;
mod device;
pub(crate) mod scratch;
