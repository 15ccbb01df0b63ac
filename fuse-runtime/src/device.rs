//! Devices.

use crate::cuda::Context;
use crate::eager;
use crate::error::{Error, ErrorKind, Result};
use crate::generator::{Generator, draw_blocks, with_generator};
use crate::philox;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Where the data of a tensor lives and its ops run.
///
/// A device is a name and costs nothing to copy. Its random generator belongs to it: see [`Device::manual_seed`].
///
/// ```
/// use fuse_runtime::Device;
/// let device = Device::cpu();
/// assert_eq!(device.to_string(), "cpu");
/// assert_eq!(device, Device::cpu());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device(Place);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    Cpu,
    Cuda(usize),
}

impl Device {
    /// The processor of this machine.
    pub fn cpu() -> Self {
        Device(Place::Cpu)
    }

    /// The GPU with this number; fails where there is no driver or no such GPU.
    pub fn cuda(ordinal: usize) -> Result<Self> {
        crate::cuda::probe(ordinal)?;
        Ok(Device(Place::Cuda(ordinal)))
    }

    /// A device that runs nothing and notes what it is asked to, see [`crate::rt::recorder`].
    pub(crate) fn recorder() -> Self {
        Device(Place::Cuda(crate::cuda::RECORDER))
    }

    /// The device of tensors that stand for the arguments of a call while it is taken down.
    pub(crate) fn tracing() -> Self {
        Device(Place::Cuda(crate::cuda::TRACING))
    }

    /// The device named by `FUSE_DEVICE` (`cpu` or `cuda:N`), else the first GPU, else the processor.
    ///
    /// Panics where `FUSE_DEVICE` names a device that does not exist: silently running elsewhere would mislead.
    #[track_caller]
    pub fn best() -> Self {
        match crate::env::device() {
            Some(name) => name.parse().unwrap_or_else(|error| crate::error::raise(error)),
            None => Device::cuda(0).unwrap_or(Device::cpu()),
        }
    }

    /// Whether this is the processor.
    pub fn is_cpu(self) -> bool {
        self.0 == Place::Cpu
    }

    /// The number of the GPU, if this is one.
    pub fn cuda_ordinal(self) -> Option<usize> {
        match self.0 {
            Place::Cpu => None,
            Place::Cuda(ordinal) => Some(ordinal),
        }
    }

    /// Waits for everything that was launched on this device, and returns the first fault of it that no read has returned.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let device = Device::best();
    /// let x = Tensor::<f32, 1>::ones([3], device);
    /// let start = std::time::Instant::now();
    /// let y = &x + 1.0;
    /// device.synchronize()?;
    /// println!("{:?} for {y}", start.elapsed());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn synchronize(&self) -> Result<()> {
        let Some(context) = self.context()? else { return Ok(()) };
        context.synchronize()?;
        eager::check_calls(&context, u64::MAX)
    }

    /// The bytes of device memory in use; 0 on the processor, whose memory is not counted.
    pub fn memory_allocated(&self) -> Result<usize> {
        Ok(self.context()?.map_or(0, |context| context.memory_allocated()))
    }

    /// The most bytes of device memory in use at once since the start of the process or since
    /// [`Device::reset_peak_memory_stats`]; 0 on the processor.
    pub fn max_memory_allocated(&self) -> Result<usize> {
        Ok(self.context()?.map_or(0, |context| context.max_memory_allocated()))
    }

    /// Makes what is in use now the new peak of [`Device::max_memory_allocated`].
    pub fn reset_peak_memory_stats(&self) -> Result<()> {
        self.context()?.into_iter().for_each(|context| context.reset_peak_memory_stats());
        Ok(())
    }

    fn context(self) -> Result<Option<Arc<Context>>> {
        self.cuda_ordinal().map(Context::get).transpose()
    }

    /// Restarts the random numbers of this device from `seed`.
    ///
    /// ```
    /// use fuse_runtime::Device;
    /// let device = Device::cpu();
    /// device.manual_seed(7);
    /// let first = device.draw(100);
    /// device.manual_seed(7);
    /// assert_eq!(device.draw(100), first);
    /// ```
    pub fn manual_seed(&self, seed: u64) {
        self.set_generator(Generator::new(seed));
    }

    /// The generator of this device as it is now, to be kept and set again.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let device = Device::cpu();
    /// let state = device.generator();
    /// let first = Tensor::<f32, 1>::rand([4], device);
    /// device.set_generator(state);
    /// assert_eq!(Tensor::<f32, 1>::rand([4], device).to_vec(), first.to_vec());
    /// ```
    pub fn generator(&self) -> Generator {
        with_generator(*self, |generator| *generator)
    }

    /// Has this device go on from the state of a generator.
    pub fn set_generator(&self, generator: Generator) {
        with_generator(*self, |own| *own = generator);
    }

    /// The seed this device draws from.
    pub fn initial_seed(&self) -> u64 {
        self.generator().initial_seed()
    }

    /// Takes `elements` random numbers from the generator: the `(seed, offset)` of the draw, see [`philox`].
    pub fn draw(&self, elements: usize) -> (u64, u64) {
        self.draw_blocks(philox::blocks_of(elements))
    }

    /// Takes `blocks` blocks of four random numbers from the generator, inside of [`Generator::scope`] from that one.
    pub fn draw_blocks(&self, blocks: u64) -> (u64, u64) {
        draw_blocks(*self, blocks)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Place::Cpu => f.write_str("cpu"),
            Place::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let unknown = || Error::new(ErrorKind::Device, format!("unknown device `{name}`: expected `cpu` or `cuda:N`"));
        match name.split_once(':') {
            None if name == "cpu" => Ok(Device::cpu()),
            None if name == "cuda" => Device::cuda(0),
            Some(("cuda", ordinal)) => Device::cuda(ordinal.parse().map_err(|_| unknown())?),
            _ => Err(unknown()),
        }
    }
}

impl From<&Device> for Device {
    fn from(device: &Device) -> Device {
        *device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_say_what_is_known() {
        let error = "tpu".parse::<Device>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert_eq!(error.to_string(), "unknown device `tpu`: expected `cpu` or `cuda:N`");
    }
}
