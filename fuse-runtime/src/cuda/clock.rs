//! How long the device takes for what it is asked to do.

use super::driver::{Backend, Context, Real};
use super::memory::Buffer;
use super::status::check;
use crate::error::Result;
use cudarc::driver::sys;
use std::sync::Arc;

/// Times launches, each with the cache of the device full of something else, as it is between the calls of a large program.
pub(crate) struct Clock {
    context: Arc<Context>,
    /// Twice as large as the cache.
    other: Buffer,
    events: Option<[Event; 2]>,
    /// The most memory in use before.
    peak: usize,
}

impl Clock {
    /// A clock on a device; what it takes of the memory does not count as used by the program.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Clock> {
        let peak = context.max_memory_allocated();
        let events = match &context.backend {
            Backend::Real(real) => Some([Event::new(real)?, Event::new(real)?]),
            _ => None,
        };
        let other = Buffer::new(context, 2 * context.facts().l2_bytes as usize)?;
        Ok(Clock { context: context.clone(), other, events, peak })
    }

    /// Microseconds that the device spends on what `launch` asks for.
    pub(crate) fn time(&self, launch: impl FnOnce() -> Result<()>) -> Result<f64> {
        self.other.fill(0, self.other.len(), 0)?;
        match (&self.context.backend, &self.events) {
            (Backend::Real(real), Some([start, end])) => {
                start.record(&self.context, real)?;
                launch()?;
                end.record(&self.context, real)?;
                end.since(start)
            }
            _ => {
                launch()?;
                Ok(self.context.recorded_time())
            }
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.context.lower_peak(self.peak);
    }
}

/// A point on the stream.
struct Event(sys::CUevent);

// SAFETY: an event may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; the driver locks for itself.
unsafe impl Sync for Event {}

impl Event {
    fn new(real: &Real) -> Result<Event> {
        real.make_current()?;
        let mut event = Event(std::ptr::null_mut());
        // SAFETY: the context is current and the driver writes one handle.
        check(unsafe { sys::cuEventCreate(&mut event.0, 0) }, "create an event")?;
        Ok(event)
    }

    fn record(&self, context: &Context, real: &Real) -> Result<()> {
        real.make_current()?;
        // SAFETY: event and stream belong to the current context.
        check(unsafe { sys::cuEventRecord(self.0, context.stream(real)) }, "record an event")
    }

    /// Microseconds between two points, once the stream has passed this one.
    fn since(&self, start: &Event) -> Result<f64> {
        let mut ms = 0f32;
        // SAFETY: both events were recorded, and the driver writes one number.
        unsafe {
            check(sys::cuEventSynchronize(self.0), "finish the timed launch")?;
            check(sys::cuEventElapsedTime_v2(&mut ms, start.0, self.0), "read the time of a launch")?;
        }
        Ok(f64::from(ms) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event was created, and is destroyed once.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}
