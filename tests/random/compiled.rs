//! Functions made from random programs, compiled by rustc, against their eager twins.

use crate::common::{Lay, Rng, device, lay_out, same_bits};
use fuse_compiler::types::DType;
use fuse_runtime::{Element, RawTensor, Tensor};

/// A function and how it is called.
pub struct Function {
    pub seed: u64,
    pub arguments: &'static [Argument],
    pub compiled: fn(&[RawTensor]) -> Vec<RawTensor>,
    pub eager: fn(&[RawTensor]) -> Vec<RawTensor>,
}

/// An argument.
pub struct Argument {
    pub dtype: DType,
    pub dims: &'static [usize],
    pub lay: Lay,
    /// Where positions end, for arguments that are positions.
    pub below: Option<usize>,
}

impl Argument {
    fn tensor(&self, rng: &mut Rng) -> RawTensor {
        let value = match self.below {
            Some(end) => rng.index(self.dims, end),
            None => rng.value(self.dtype, self.dims, (-4.0, 4.0)),
        };
        lay_out(&self.lay.adapt(value), self.lay, device())
    }
}

/// An argument as a function takes it.
pub fn tensor<T: Element, const R: usize>(x: &[RawTensor], k: usize) -> Tensor<T, R> {
    Tensor::from_raw(x[k].clone())
}

/// The results of a call that gives a tuple of so many tensors.
macro_rules! results {
    (1; $call:expr) => {{
        let (a,) = $call;
        vec![a.into()]
    }};
    (2; $call:expr) => {{
        let (a, b) = $call;
        vec![a.into(), b.into()]
    }};
    (3; $call:expr) => {{
        let (a, b, c) = $call;
        vec![a.into(), b.into(), c.into()]
    }};
    (4; $call:expr) => {{
        let (a, b, c, d) = $call;
        vec![a.into(), b.into(), c.into(), d.into()]
    }};
}

pub(crate) use results;

impl Function {
    /// Compares compiled and eager, for several values of the arguments.
    pub fn check(&self) -> Result<(), String> {
        for round in 0..3 {
            let mut rng = Rng::new(self.seed * 100 + round);
            let x: Vec<RawTensor> = self.arguments.iter().map(|argument| argument.tensor(&mut rng)).collect();
            let (got, want) = ((self.compiled)(&x), (self.eager)(&x));
            for (k, (got, want)) in got.iter().zip(&want).enumerate() {
                same_bits(got, want).map_err(|text| format!("p{}, result {k}: {text}", self.seed))?;
            }
        }
        Ok(())
    }
}
