//! The sizes of a call: what every symbol stands for, and whether they go together.

use crate::error::{Error, ErrorKind, Result};
use crate::raw::RawTensor;
use fuse_compiler::graph::SymSource;
use fuse_compiler::plan::{BufClass, Plan};
use fuse_compiler::types::{Dim, Sym};

/// The values of the symbols of a plan for one call.
pub(crate) struct Sizes(Vec<i64>);

impl Sizes {
    /// Reads the symbols off the inputs and the host integers, then checks all that the plan demands.
    pub fn of(plan: &Plan, tensors: &[&RawTensor], host_ints: &[i64]) -> Result<Self> {
        let sizes = Sizes::read(plan, tensors, host_ints);
        sizes.check(plan)?;
        sizes.check_inputs(plan, tensors)?;
        Ok(sizes)
    }

    /// Reads the symbols off the inputs and the host integers.
    pub fn read(plan: &Plan, tensors: &[&RawTensor], host_ints: &[i64]) -> Self {
        let value = |source: &SymSource| match *source {
            // A tensor of another rank than the plan's is found by the checks of the inputs.
            SymSource::Input { input, axis } => {
                tensors[input as usize].shape().get(axis as usize).map_or(0, |&extent| extent as i64)
            }
            SymSource::Host(k) => host_ints[k as usize],
        };
        Sizes(plan.syms.iter().map(|sym| value(&sym.source)).collect())
    }

    /// The value of a formula.
    pub fn value(&self, dim: &Dim) -> i64 {
        dim.eval(&|Sym(k)| self.0[k as usize])
    }

    /// The value of a formula as an extent. A negative one is a mistake that a check has let through.
    pub fn extent(&self, dim: &Dim) -> Result<usize> {
        let value = self.value(dim);
        usize::try_from(value).map_err(|_| Error::shape("shape", format!("an extent is negative: {value}")))
    }

    /// The values of formulas as extents.
    pub fn extents(&self, dims: &[Dim]) -> Result<Vec<usize>> {
        dims.iter().map(|dim| self.extent(dim)).collect()
    }

    fn check(&self, plan: &Plan) -> Result<()> {
        for item in &plan.checks {
            let (left, right) = (self.value(&item.check.left), self.value(&item.check.right));
            if let Some(text) = item.check.failure(left, right) {
                return Err(Error::new(ErrorKind::Shape, text));
            }
        }
        Ok(())
    }

    /// The extents a plan was made for hold for every input, whatever the checks say.
    fn check_inputs(&self, plan: &Plan, tensors: &[&RawTensor]) -> Result<()> {
        for buf in &plan.bufs {
            let BufClass::In(k) = buf.class else { continue };
            let (tensor, extents) = (tensors[k as usize], self.extents(&buf.ty.dims)?);
            if tensor.shape() != extents {
                let text = format!("`{}` has extents {:?} where {extents:?} are expected", buf.name, tensor.shape());
                return Err(Error::shape(&plan.name, text));
            }
            assert_eq!(tensor.dtype(), buf.ty.dtype, "`{}` has the element type of its plan", buf.name);
        }
        Ok(())
    }
}

/// Whether the sizes of a call go together.
pub(crate) fn check_sizes(plan: &Plan, tensors: &[&RawTensor], host_ints: &[i64]) -> Result<()> {
    Sizes::of(plan, tensors, host_ints).map(drop)
}
