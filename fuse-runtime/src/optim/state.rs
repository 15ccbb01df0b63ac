//! What an optimiser keeps from step to step.

use super::{Optimizer, Parameters, methods::Rule, tensors, told};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::raw::RawTensor;
use crate::tensor::Tensor;
use fuse_compiler::types::DType;

/// The number of steps, and for every parameter its states and master copy.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// How many steps were made; on the device, which decides about skipping them.
    pub step: Option<Tensor<f64, 0>>,
    /// One for each parameter, in order.
    pub slots: Vec<Slot>,
}

/// What belongs to one parameter.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
    device: Device,
    /// The f32 copy of a half.
    pub master: Option<RawTensor>,
    /// One for each name of [`Rule::states`].
    pub values: Vec<RawTensor>,
}

impl State {
    /// Makes states of zeros for parameters that have none yet, or checks that they are the ones of the last step.
    pub fn prepare(&mut self, parameters: &impl Parameters, states: &[&str], device: Device) -> Result<()> {
        let parameters = tensors(parameters, "");
        if self.step.is_some() {
            return self.check(&parameters);
        }
        self.slots = parameters.iter().map(|(name, of)| Slot::new(name, of, states)).collect::<Result<_>>()?;
        self.step = Some(Tensor::zeros([], device));
        Ok(())
    }

    fn check(&self, parameters: &[(String, &RawTensor)]) -> Result<()> {
        if self.slots.len() != parameters.len() {
            let text = format!("{} parameters, where the last step had {}", parameters.len(), self.slots.len());
            return Err(Error::shape("step", text));
        }
        match self.slots.iter().zip(parameters).find(|(slot, (_, parameter))| !slot.fits(parameter)) {
            None => Ok(()),
            Some((slot, (name, parameter))) => {
                let was = format!("{}{:?} on {}", slot.dtype, slot.shape, slot.device);
                let text = format!("parameter `{name}` is {}, where the last step had {was}", told(parameter));
                Err(Error::shape("step", text))
            }
        }
    }
}

impl Slot {
    /// States of zeros, and a master copy of a half.
    fn new(name: &str, parameter: &RawTensor, states: &[&str]) -> Result<Self> {
        let master = is_half(parameter).then(|| as_f32(parameter)).transpose()?;
        let dtype = if master.is_some() { DType::F32 } else { parameter.dtype() };
        let values = states.iter().map(|_| zeros(dtype, parameter.shape(), parameter.device()));
        let (name, shape) = (name.to_owned(), parameter.shape().to_vec());
        let (dtype, device) = (parameter.dtype(), parameter.device());
        Ok(Slot { name, shape, dtype, device, master, values: values.collect::<Result<_>>()? })
    }

    fn fits(&self, parameter: &RawTensor) -> bool {
        (self.dtype, self.shape.as_slice(), self.device) == (parameter.dtype(), parameter.shape(), parameter.device())
    }
}

impl<R: Rule> Optimizer<R> {
    /// What is kept from step to step, by name, for a file: `step`, and for a parameter `p` such as `exp_avg.p` and `master.p`.
    /// Nothing before the first step.
    pub fn state(&self) -> Vec<(String, RawTensor)> {
        let mut named: Vec<_> = self.state.step.iter().map(|step| ("step".to_owned(), step.into())).collect();
        for slot in &self.state.slots {
            named.extend(slot.master.iter().map(|master| (format!("master.{}", slot.name), master.clone())));
            let values = self.rule.states().iter().zip(&slot.values);
            named.extend(values.map(|(state, value)| (format!("{state}.{}", slot.name), value.clone())));
        }
        named
    }

    /// Takes up the state that [`Optimizer::state`] gave for these parameters: `find` gives the tensor of a name, which must
    /// have this element type and these extents. Without it the optimiser has made no step.
    ///
    /// Fails with what `find` fails with; then the optimiser keeps the state it had.
    pub fn load_state(
        &mut self,
        parameters: &impl Parameters,
        find: Option<impl FnMut(&str, DType, &[usize]) -> Result<RawTensor>>,
    ) -> Result<()> {
        let parameters = tensors(parameters, "");
        let device = parameters.first().map(|(_, parameter)| parameter.device());
        let mut state = State::default();
        if let (Some(mut find), Some(device)) = (find, device) {
            state.step = Some(Tensor::from_raw(find("step", DType::F64, &[])?.to_device(device)?));
            for (name, parameter) in parameters {
                let mut slot = Slot::new(&name, parameter, self.rule.states())?;
                let Slot { master, values, .. } = &mut slot;
                let names = master.iter().map(|_| "master").chain(self.rule.states().iter().copied());
                let kept: Vec<String> = names.map(|state| format!("{state}.{name}")).collect();
                for (kept, value) in kept.iter().zip(master.iter_mut().chain(values)) {
                    *value = find(kept, value.dtype(), value.shape())?.to_device(device)?;
                }
                state.slots.push(slot);
            }
        }
        self.state = state;
        Ok(())
    }
}

fn is_half(tensor: &RawTensor) -> bool {
    matches!(tensor.dtype(), DType::F16 | DType::BF16)
}

/// The f32 copy of a half.
fn as_f32(parameter: &RawTensor) -> Result<RawTensor> {
    let shape = parameter.shape();
    let wide: RawTensor = crate::error::catch(|| match parameter.dtype() {
        DType::F16 => super::flat::vector::<half::f16>(parameter).map(|vector| vector.cast::<f32>().into()),
        _ => super::flat::vector::<half::bf16>(parameter).map(|vector| vector.cast::<f32>().into()),
    })??;
    wide.reshape(shape)
}

fn zeros(dtype: DType, shape: &[usize], device: Device) -> Result<RawTensor> {
    let n = shape.iter().product();
    let zeros: RawTensor = crate::error::catch(|| match dtype {
        DType::F64 => Tensor::<f64, 1>::zeros([n], device).into(),
        _ => Tensor::<f32, 1>::zeros([n], device).into(),
    })?;
    zeros.reshape(shape)
}
