//! The streams of a context, and who has to wait for whom.
//!
//! A context has a stream of its own, lane 0, and one more for every [`crate::Stream`]. What a thread launches goes to the lane
//! of the innermost scope it is in. A block of memory remembers the lane that last wrote it and those that have used it since:
//! the first use on another lane waits for the writer, a write waits for everybody, and so does giving the block back. As long as
//! there is only one lane, all of this is one comparison.

use super::driver::{Backend, Context, Real};
use super::once::lock;
use super::status::check;
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::sys;
use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A stream of a context, by number.
pub(crate) type Lane = u8;

/// So many streams a context can have at a time.
const MOST: usize = 64;

/// How many lanes were ever opened beside those that contexts have by themselves.
static OPENED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The scopes this thread is in: device and lane.
    static SCOPES: RefCell<Vec<(usize, Lane)>> = const { RefCell::new(Vec::new()) };
}

/// Whether there is more than one lane on any device, so that memory has to be watched.
#[inline]
pub(crate) fn several_lanes() -> bool {
    OPENED.load(Ordering::Relaxed) > 0
}

/// The lanes of a context.
pub(super) struct Lanes {
    opened: Mutex<Vec<Opened>>,
    free: Mutex<Vec<Lane>>,
}

/// The driver's handles of a lane; null on a recording context.
#[derive(Clone, Copy)]
struct Opened {
    stream: sys::CUstream,
    /// For others to wait for what is in the stream so far.
    event: sys::CUevent,
}

// SAFETY: the driver's handles may be used from any thread and are never destroyed.
unsafe impl Send for Opened {}

impl Lanes {
    pub(super) fn new() -> Lanes {
        Lanes { opened: Mutex::default(), free: Mutex::default() }
    }
}

impl Context {
    /// The lane of what this thread launches.
    #[inline]
    pub(crate) fn lane(&self) -> Lane {
        if several_lanes() { self.lane_of_scope() } else { 0 }
    }

    fn lane_of_scope(&self) -> Lane {
        let ordinal = self.facts().ordinal;
        SCOPES.with_borrow(|scopes| scopes.iter().rev().find(|(of, _)| *of == ordinal).map_or(0, |(_, lane)| *lane))
    }

    /// A lane that nobody else has.
    pub(crate) fn open_lane(&self) -> Result<Lane> {
        if let Some(lane) = lock(&self.lanes.free).pop() {
            return Ok(lane);
        }
        let mut opened = lock(&self.lanes.opened);
        if opened.is_empty() {
            opened.push(self.first()?);
        }
        if opened.len() == MOST {
            return Err(Error::new(ErrorKind::Device, format!("a device has at most {} streams at a time", MOST - 1)));
        }
        opened.push(match &self.backend {
            Backend::Real(real) => real.open_stream()?,
            _ => Opened { stream: std::ptr::null_mut(), event: std::ptr::null_mut() },
        });
        OPENED.fetch_add(1, Ordering::Relaxed);
        Ok((opened.len() - 1) as Lane)
    }

    /// Lets others have a lane; what is in it goes on.
    pub(crate) fn close_lane(&self, lane: Lane) {
        lock(&self.lanes.free).push(lane);
    }

    /// Runs `body` with everything this thread launches here on a lane.
    pub(crate) fn on_lane<R>(&self, lane: Lane, body: impl FnOnce() -> R) -> R {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                SCOPES.with_borrow_mut(|scopes| scopes.pop());
            }
        }
        SCOPES.with_borrow_mut(|scopes| scopes.push((self.facts().ordinal, lane)));
        let _leave = Leave;
        body()
    }

    /// Lets everything that comes on one lane wait for what is on another so far.
    pub(crate) fn wait_for(&self, lane: Lane, other: Lane) -> Result<()> {
        match &self.backend {
            Backend::Real(real) => {
                real.make_current()?;
                // Held, so that no other thread moves the event in between.
                let opened = lock(&self.lanes.opened);
                let (before, behind) = (opened[other as usize], opened[lane as usize]);
                // SAFETY: streams and events live as long as the process. A wait is for what the event stands for now.
                unsafe {
                    check(sys::cuEventRecord(before.event, before.stream), "mark a place in a stream")?;
                    check(sys::cuStreamWaitEvent(behind.stream, before.event, 0), "wait for another stream")
                }
            }
            Backend::Recording(recorder) => {
                recorder.wait(lane, other);
                Ok(())
            }
            Backend::Tracing(_) => Ok(()),
        }
    }

    /// Waits for everything on a lane.
    pub(crate) fn synchronize_lane(&self, lane: Lane) -> Result<()> {
        let Backend::Real(real) = &self.backend else { return Ok(()) };
        real.make_current()?;
        real.synchronize(self.stream_of(real, lane))
    }

    /// The driver's stream of what this thread launches.
    #[inline]
    pub(super) fn stream(&self, real: &Real) -> sys::CUstream {
        self.stream_of(real, self.lane())
    }

    /// The driver's stream of a lane.
    #[inline]
    pub(super) fn stream_of(&self, real: &Real, lane: Lane) -> sys::CUstream {
        if lane == 0 { real.stream } else { lock(&self.lanes.opened)[lane as usize].stream }
    }

    /// The driver's streams of all lanes.
    pub(super) fn streams(&self, real: &Real) -> Vec<sys::CUstream> {
        let others = lock(&self.lanes.opened);
        std::iter::once(real.stream).chain(others.iter().skip(1).map(|lane| lane.stream)).collect()
    }

    /// Lane 0, whose stream is there from the start.
    fn first(&self) -> Result<Opened> {
        match &self.backend {
            Backend::Real(real) => Ok(Opened { stream: real.stream, event: real.new_event()? }),
            _ => Ok(Opened { stream: std::ptr::null_mut(), event: std::ptr::null_mut() }),
        }
    }
}

impl Real {
    fn open_stream(&self) -> Result<Opened> {
        let mut stream = std::ptr::null_mut();
        let event = self.new_event()?;
        let non_blocking = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the driver writes one handle.
        check(unsafe { sys::cuStreamCreate(&mut stream, non_blocking) }, "create a stream")?;
        Ok(Opened { stream, event })
    }

    fn new_event(&self) -> Result<sys::CUevent> {
        self.make_current()?;
        let mut event = std::ptr::null_mut();
        let flags = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the driver writes one handle.
        check(unsafe { sys::cuEventCreate(&mut event, flags) }, "create an event")?;
        Ok(event)
    }
}

/// Which lanes have used a block of memory since it was last written.
pub(super) struct Uses {
    /// The lane that wrote it.
    writer: AtomicU64,
    /// A bit for each lane, the writer's included.
    seen: AtomicU64,
}

impl Uses {
    /// For a block that was asked for on a lane.
    pub(super) fn new(lane: Lane) -> Uses {
        Uses { writer: AtomicU64::new(lane.into()), seen: AtomicU64::new(1 << lane) }
    }

    /// Before what this thread launches next reads the block: it comes behind the write.
    #[inline]
    pub(super) fn read(&self, context: &Context) -> Result<()> {
        if several_lanes() { self.read_on(context, context.lane()) } else { Ok(()) }
    }

    fn read_on(&self, context: &Context, lane: Lane) -> Result<()> {
        if self.seen.load(Ordering::Acquire) & (1 << lane) == 0 {
            context.wait_for(lane, self.writer.load(Ordering::Relaxed) as Lane)?;
            self.seen.fetch_or(1 << lane, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Before what this thread launches next writes the block, which nobody else is about to use.
    #[inline]
    pub(super) fn write(&self, context: &Context) -> Result<()> {
        if several_lanes() { self.write_on(context, context.lane()) } else { Ok(()) }
    }

    fn write_on(&self, context: &Context, lane: Lane) -> Result<()> {
        self.others(lane).try_for_each(|other| context.wait_for(lane, other))?;
        self.writer.store(lane.into(), Ordering::Relaxed);
        self.seen.store(1 << lane, Ordering::Release);
        Ok(())
    }

    /// The lane a block is given back on, behind every use of it.
    pub(super) fn end(&self, context: &Context) -> Lane {
        let lane = self.writer.load(Ordering::Relaxed) as Lane;
        // A failure means that the driver is gone.
        self.others(lane).for_each(|other| drop(context.wait_for(lane, other)));
        lane
    }

    fn others(&self, lane: Lane) -> impl Iterator<Item = Lane> + use<> {
        let others = self.seen.load(Ordering::Acquire) & !(1 << lane);
        (0..MOST as Lane).filter(move |other| others >> other & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Buffer, Recorded};

    /// The waits of a run: who, for whom.
    fn waits(context: &Context) -> Vec<(Lane, Lane)> {
        let wait = |noted| match noted {
            Recorded::Wait { lane, other } => Some((lane, other)),
            _ => None,
        };
        context.recorded().into_iter().filter_map(wait).collect()
    }

    #[test]
    fn the_first_use_on_another_lane_waits_for_the_writer() {
        let context = Context::recording("sm_90a");
        let side = context.open_lane().unwrap();
        let buffer = Buffer::new(&context, 8).unwrap();
        buffer.will_read().unwrap();
        assert_eq!(waits(&context), []);
        context.on_lane(side, || {
            buffer.will_read().unwrap();
            buffer.will_read().unwrap();
        });
        assert_eq!(waits(&context), [(side, 0)]);
        // A write waits for who has read, and then the others have to wait again.
        buffer.will_write().unwrap();
        context.on_lane(side, || buffer.will_read().unwrap());
        assert_eq!(waits(&context), [(0, side), (side, 0)]);
        // Given back where it was written, behind the last use.
        drop(buffer);
        assert_eq!(waits(&context), [(0, side)]);
    }

    #[test]
    fn a_closed_lane_is_opened_again() {
        let context = Context::recording("sm_90a");
        let first = context.open_lane().unwrap();
        let second = context.open_lane().unwrap();
        assert_eq!((first, second), (1, 2));
        context.close_lane(first);
        assert_eq!(context.open_lane().unwrap(), first);
        let more: Vec<Result<Lane>> = (0..MOST).map(|_| context.open_lane()).collect();
        assert!(more.iter().any(Result::is_err));
    }

    #[test]
    fn scopes_nest() {
        let context = Context::recording("sm_90a");
        let [a, b] = [context.open_lane().unwrap(), context.open_lane().unwrap()];
        context.on_lane(a, || {
            assert_eq!(context.lane(), a);
            context.on_lane(b, || assert_eq!(context.lane(), b));
            assert_eq!(context.lane(), a);
        });
        assert_eq!(context.lane(), 0);
    }
}
