//! Device memory that outlives calls.

use crate::cuda::{Buffer, Context};
use crate::error::Result;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Counters by device. Everything of a device goes to one stream, so launches never use them at the same time.
static COUNTERS: Mutex<BTreeMap<usize, Arc<Buffer>>> = Mutex::new(BTreeMap::new());

/// At least `count` u32 counters that are 0; a kernel that uses them leaves them at 0.
pub(super) fn counters(context: &Arc<Context>, ordinal: usize, count: usize) -> Result<Arc<Buffer>> {
    let mut counters = COUNTERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let bytes = count * size_of::<u32>();
    if let Some(buffer) = counters.get(&ordinal).filter(|buffer| buffer.len() >= bytes) {
        return Ok(buffer.clone());
    }
    // Grown by doubling; the memory of the old ones is freed behind the launches that use them.
    let buffer = Buffer::new(context, bytes.next_power_of_two().max(4096))?;
    buffer.fill(0, buffer.len(), 0)?;
    let buffer = Arc::new(buffer);
    counters.insert(ordinal, buffer.clone());
    Ok(buffer)
}
