//! Ops that draw random numbers, on a tape.
//!
//! A backward that ran such an op again would draw other numbers. So the graph the op stands for runs node by node, and
//! what was drawn is a constant of the tape.

use crate::device::Device;
use crate::eager::{self, Arg};
use crate::error::OrRaise;
use crate::raw::RawTensor;
use fuse_compiler::op::{Attr, Build, Op, Val};
use fuse_compiler::types::{Dim, Ty};

/// Runs the graph that an op stands for.
#[track_caller]
pub(crate) fn run(device: Device, op: Op, args: &[Arg], attrs: &[Attr]) -> Vec<RawTensor> {
    let mut steps = Steps { device, values: vec![] };
    let vals: Vec<Val> = args.iter().map(|arg| steps.add(arg.clone())).collect();
    let outs = op.open(&mut steps, &vals, attrs).expect("an op that draws stands for a graph");
    outs.into_iter().map(|val| steps.tensor(val)).collect()
}

/// Runs every node as it is built.
struct Steps {
    device: Device,
    values: Vec<(Arg, Ty)>,
}

impl Steps {
    fn add(&mut self, value: Arg) -> Val {
        let ty = match &value {
            Arg::Tensor(tensor) => {
                let dims = tensor.shape().iter().map(|&n| Dim::Const(n as i64));
                Ty::new(tensor.dtype(), dims.collect::<Vec<_>>())
            }
            Arg::Scalar(_, dtype) => Ty::new(*dtype, []),
        };
        self.values.push((value, ty));
        Val { node: self.values.len() as u32 - 1, out: 0 }
    }

    fn tensor(&self, val: Val) -> RawTensor {
        match &self.values[val.node as usize].0 {
            Arg::Tensor(tensor) => tensor.clone(),
            Arg::Scalar(..) => unreachable!("an op on tensors gives tensors"),
        }
    }
}

impl Build for Steps {
    #[track_caller]
    fn push(&mut self, op: Op, args: &[Val], attrs: Vec<Attr>) -> Val {
        let args: Vec<Arg> = args.iter().map(|arg| self.values[arg.node as usize].0.clone()).collect();
        let result = eager::run(self.device, op.name, &args, &attrs).or_raise().remove(0);
        self.add(Arg::Tensor(result))
    }

    fn ty(&self, val: Val) -> &Ty {
        &self.values[val.node as usize].1
    }
}
