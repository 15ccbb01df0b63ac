//! Saving a run and going on with it.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::generator::Generator;
use crate::optim::{Optimizer, Parameters, Rule, tensors};
use crate::raw::RawTensor;
use crate::safetensors::{self, Tensors};
use fuse_compiler::types::DType;
use std::path::Path;

/// What a run needs to go on, put together to be saved: parameters, the states of optimisers, generators.
///
/// It is a safetensors file, which other programs can read. [`safetensors::load`] reads it back, and a run that goes on with
/// it on the same device goes on bit for bit.
///
/// ```
/// use fuse_runtime::optim::AdamW;
/// use fuse_runtime::prelude::*;
/// use fuse_runtime::{Checkpoint, safetensors};
/// let path = std::env::temp_dir().join(format!("fuse-doc-checkpoint-{}", std::process::id()));
/// let device = Device::cpu();
/// let (mut w, mut opt) = (Tensor::from([1.0f32, 2.0]), AdamW::new(0.1));
/// let g = Tensor::from([0.5f32, -0.5]);
/// opt.step(&mut w, &g);
/// Checkpoint::new()
///     .parameters("model", &w)
///     .optimizer("optimizer", &opt)
///     .generator("generator", &device.generator())
///     .number("epoch", 3)
///     .save(&path)?;
///
/// // In another process:
/// let file = safetensors::load(&path, device)?;
/// let (mut w2, mut opt2) = (Tensor::from([0.0f32, 0.0]), AdamW::new(0.1));
/// file.read_parameters("model", &mut w2)?;
/// file.read_optimizer("optimizer", &mut opt2, &w2)?;
/// device.set_generator(file.generator("generator")?);
/// assert_eq!(file.number("epoch")?, 3);
///
/// opt.step(&mut w, &g);
/// opt2.step(&mut w2, &g);
/// assert_eq!(w2.to_vec(), w.to_vec());
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Checkpoint(Vec<(String, RawTensor)>);

impl Checkpoint {
    /// With nothing in it.
    pub fn new() -> Self {
        Checkpoint::default()
    }

    /// With the parameters of a model, or any list of tensors: `name.layers.0.weight`, and so on.
    pub fn parameters(mut self, name: &str, parameters: &impl Parameters) -> Self {
        self.0.extend(tensors(parameters, name).into_iter().map(|(name, tensor)| (name, tensor.clone())));
        self
    }

    /// With what an optimiser keeps from step to step: `name.step`, `name.exp_avg.layers.0.weight`, and so on.
    pub fn optimizer<R: Rule>(mut self, name: &str, opt: &Optimizer<R>) -> Self {
        self.0.extend(opt.state().into_iter().map(|(state, tensor)| (format!("{name}.{state}"), tensor)));
        self
    }

    /// With the state of a generator, two integers.
    pub fn generator(mut self, name: &str, generator: &Generator) -> Self {
        let state = generator.state().map(|word| word as i64);
        self.0.push((name.to_owned(), crate::Tensor::from(state).into()));
        self
    }

    /// With a number, such as that of the epoch.
    pub fn number(mut self, name: &str, number: i64) -> Self {
        self.0.push((name.to_owned(), crate::Tensor::full([], number, Device::cpu()).into()));
        self
    }

    /// Writes the file, which appears whole or not at all, and is on the disk when this returns.
    ///
    /// Fails with an [`Error`] of kind `Io` that names the file, or two things of the same name; what was at `path` then stays.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::io(path.display(), format!("`{}` is there twice", twice[0])));
        }
        safetensors::save(path, self.0.iter().map(|(name, tensor)| (name, tensor.clone())))
    }
}

impl Tensors {
    /// Reads what [`Checkpoint::parameters`] has saved into parameters of the same types and extents, each on its device.
    ///
    /// Fails with an [`Error`] of kind `Io` that names the file and the tensor if one is missing, of another type or other
    /// extents, or has no parameter; then no parameter has changed.
    pub fn read_parameters(&self, name: &str, parameters: &mut impl Parameters) -> Result<()> {
        let wanted = tensors(parameters, name);
        let prefix = format!("{name}.");
        let is_known = |found: &str| wanted.iter().any(|(name, _)| name == found);
        if let Some(other) = self.names().find(|found| found.starts_with(&prefix) && !is_known(found)) {
            return Err(self.fail(format!("`{other}` is no parameter of what is to be read")));
        }
        let read = |(name, like): &(String, &RawTensor)| {
            self.of_type(name, like.dtype(), like.shape())?.to_device(like.device())
        };
        let read: Vec<RawTensor> = wanted.iter().map(read).collect::<Result<_>>()?;
        let mut read = read.into_iter();
        parameters.visit_mut(&mut Default::default(), &mut |_, parameter| {
            *parameter = read.next().expect("one was read for each");
        });
        Ok(())
    }

    /// Reads what [`Checkpoint::optimizer`] has saved of an optimiser of these parameters.
    ///
    /// An optimiser that was saved before its first step is one that has made none. Fails as [`Tensors::read_parameters`]; then
    /// the optimiser has not changed.
    pub fn read_optimizer<R: Rule>(
        &self,
        name: &str,
        opt: &mut Optimizer<R>,
        parameters: &impl Parameters,
    ) -> Result<()> {
        let prefix = format!("{name}.");
        let saved = self.names().any(|found| found.starts_with(&prefix));
        let find = |state: &str, dtype, shape: &[usize]| self.of_type(&format!("{prefix}{state}"), dtype, shape);
        opt.load_state(parameters, saved.then_some(find))
    }

    /// Reads a generator that [`Checkpoint::generator`] has saved.
    pub fn generator(&self, name: &str) -> Result<Generator> {
        let state: Vec<i64> = self.of_type(name, DType::I64, &[2])?.to_vec()?;
        Ok(Generator::from_state([state[0] as u64, state[1] as u64]))
    }

    /// Reads a number that [`Checkpoint::number`] has saved.
    pub fn number(&self, name: &str) -> Result<i64> {
        Ok(self.of_type(name, DType::I64, &[])?.to_vec()?[0])
    }

    /// A tensor of this type and these extents.
    fn of_type(&self, name: &str, dtype: DType, shape: &[usize]) -> Result<RawTensor> {
        let found = self.untyped(name)?;
        if (found.dtype(), found.shape()) != (dtype, shape) {
            let text = format!("`{name}` is {}{:?} and not {dtype}{shape:?}", found.dtype(), found.shape());
            return Err(self.fail(text));
        }
        Ok(found.clone())
    }
}
