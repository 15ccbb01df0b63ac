//! Device memory that outlives calls.

use crate::cuda::{Buffer, Context, Lane};
use crate::error::Result;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Counters by device and stream, the largest last. Launches of a stream never use them at the same time. Those that became too few stay: a launch that was made ready with them may be under way.
static COUNTERS: Mutex<BTreeMap<(usize, Lane), Vec<Buffer>>> = Mutex::new(BTreeMap::new());

/// The address of at least `count` u32 counters that are 0; a kernel that uses them leaves them at 0.
pub(super) fn counters(context: &Arc<Context>, count: usize) -> Result<u64> {
    if let Some(address) = context.trace_counters(count) {
        return Ok(address);
    }
    let mut counters = COUNTERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let of_device = counters.entry((context.facts().ordinal, context.lane())).or_default();
    let bytes = count * size_of::<u32>();
    if let Some(buffer) = of_device.last().filter(|buffer| buffer.len() >= bytes) {
        return Ok(buffer.ptr());
    }
    // Grown by doubling, so all of them together are at most twice the last.
    let buffer = Buffer::new(context, bytes.next_power_of_two().max(4096))?;
    buffer.fill(0, buffer.len(), 0)?;
    let address = buffer.ptr();
    of_device.push(buffer);
    Ok(address)
}
