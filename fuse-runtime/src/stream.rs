//! Streams: work on one device that may go on side by side.

use crate::cuda::{Context, Lane};
use crate::device::Device;
use crate::error::Result;
use std::fmt;
use std::sync::Arc;

/// A queue of work on a device. What is launched in one stream is done in order, what is launched in different streams may be done
/// at the same time.
///
/// Everything outside of a [`Stream::scope`] goes to the stream that the device has by itself. Tensors may be used in any
/// stream: the first use in another stream than the one that made a tensor waits for it, and memory is not given out again
/// before its last use in every stream. So streams change when things happen, never what comes out.
///
/// On the processor everything is done at once and a stream changes nothing.
///
/// ```
/// use fuse_runtime::prelude::*;
/// use fuse_runtime::Stream;
///
/// let device = Device::best();
/// let x = Tensor::<f32, 1>::ones([4], device);
/// let side = Stream::new(device)?;
/// let doubled = side.scope(|| &x * 2.0);
/// let shifted = &x + 1.0; // perhaps at the same time
/// assert_eq!((doubled + shifted).to_vec(), [4.0; 4]);
/// # Ok::<(), Error>(())
/// ```
pub struct Stream {
    device: Device,
    lane: Option<(Arc<Context>, Lane)>,
}

impl Stream {
    /// A new stream of a device; fails beyond 63 of them.
    pub fn new(device: impl Into<Device>) -> Result<Stream> {
        let device = device.into();
        let context = device.cuda_ordinal().map(Context::get).transpose()?;
        let lane = context.map(|context| Ok((context.clone(), context.open_lane()?))).transpose()?;
        Ok(Stream { device, lane })
    }

    /// The device the work is done on.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Runs `body` with everything that this thread launches on the device in this stream. Scopes nest; other threads are not
    /// touched.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// use fuse_runtime::Stream;
    /// let side = Stream::new(Device::best())?;
    /// let y = side.scope(|| Tensor::<f32, 1>::ones([3], side.device()).exp());
    /// assert_eq!(y.dims(), [3]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn scope<R>(&self, body: impl FnOnce() -> R) -> R {
        match &self.lane {
            Some((context, lane)) => context.on_lane(*lane, body),
            None => body(),
        }
    }

    /// Waits for everything that was launched in this stream.
    pub fn synchronize(&self) -> Result<()> {
        self.lane.as_ref().map_or(Ok(()), |(context, lane)| context.synchronize_lane(*lane))
    }

    /// Lets everything that is launched in this stream from now on wait for what was launched in another of the device so far.
    ///
    /// Tensors need no such care; it is for what else is shared, such as the time a benchmark takes.
    pub fn wait_stream(&self, other: &Stream) -> Result<()> {
        match (&self.lane, &other.lane) {
            (Some((context, lane)), Some((of_other, other))) if Arc::ptr_eq(context, of_other) => {
                context.wait_for(*lane, *other)
            }
            // Two devices have no order but that of the host.
            _ => other.synchronize(),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = self.lane.as_ref().map_or(0, |(_, lane)| *lane);
        write!(f, "stream {lane} of {}", self.device)
    }
}

impl Drop for Stream {
    /// What was launched in the stream is done all the same.
    fn drop(&mut self) {
        if let Some((context, lane)) = &self.lane {
            context.close_lane(*lane);
        }
    }
}
