//! Running a tape: memory, patches, launches.

use super::{Address, Launch, Multiplication, Op, Outcome, Tape, Value};
use crate::cuda::{Args, Buffer, Context};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::exec::cuda::scratch::counters;
use crate::exec::run::Call;
use crate::layout::Layout;
use crate::log::{self, Topic};
use crate::raw::RawTensor;
use crate::rt::{Draw, Scalar, scalar_as};
use crate::storage::Storage;
use fuse_compiler::types::DType;
use std::sync::Arc;

/// Calls with so many places of memory find room for their addresses on the stack.
const FEW: usize = 64;

impl Tape {
    /// Runs a call like the one that was taken down.
    pub fn run(&self, call: &Call<'_>) -> Result<Vec<RawTensor>> {
        log::line(Topic::Launch, format_args!("`{}` again", call.program.plan.name));
        let places = call.tensors.len() + self.blocks.len() + 1;
        let (mut few, mut many);
        let addresses = if places <= FEW {
            few = [0; FEW];
            &mut few[..places]
        } else {
            many = vec![0; places];
            &mut many[..]
        };
        for (address, tensor) in addresses.iter_mut().zip(call.tensors) {
            *address = tensor.address();
        }
        if self.counters > 0 {
            addresses[places - 1] = counters(&self.context, self.counters)?;
        }
        let mut held = Held { tape: self, call, blocks: Vec::with_capacity(self.blocks.len()) };
        if !self.stepwise {
            held.ask_for_all(addresses)?;
        }
        let number = self.context.next_call();
        if let Some(names) = &call.program.names {
            names.announce(self.ordinal, number);
        }
        let draws = self.draws(call.device);
        self.context.make_current()?;
        let mut args = Args::new();
        for (k, op) in self.ops.iter().enumerate() {
            if self.stepwise {
                held.ask_for_those_of(k, addresses)?;
            }
            let values = Values { addresses, scalars: call.scalars, draws: &draws, number };
            op.launch(&self.context, &values, &mut args)?;
            if self.stepwise {
                held.let_go_behind(k);
            }
        }
        Ok(self.results.iter().map(|outcome| held.result(outcome, addresses, number)).collect())
    }

    /// Takes the random numbers of a call from the generator, in program order.
    fn draws(&self, device: Device) -> Vec<Draw> {
        let draw = |&counters: &u64| {
            let (seed, offset) = device.draw_blocks(counters);
            Draw { seed, offset }
        };
        self.draws.iter().map(draw).collect()
    }
}

/// The memory of a call.
struct Held<'a> {
    tape: &'a Tape,
    call: &'a Call<'a>,
    /// Those that were asked for so far, in order; `None` behind their last use.
    blocks: Vec<Option<Arc<Storage>>>,
}

impl Held<'_> {
    fn ask(&mut self, addresses: &mut [u64]) -> Result<()> {
        let block = self.blocks.len();
        let buffer = Buffer::new(&self.tape.context, self.tape.blocks[block].bytes)?;
        addresses[self.call.tensors.len() + block] = buffer.ptr();
        self.blocks.push(Some(Arc::new(Storage::Cuda(buffer.into()))));
        Ok(())
    }

    fn ask_for_all(&mut self, addresses: &mut [u64]) -> Result<()> {
        (0..self.tape.blocks.len()).try_for_each(|_| self.ask(addresses))
    }

    /// Asks for what a launch is the first to use; blocks are in this order.
    fn ask_for_those_of(&mut self, op: usize, addresses: &mut [u64]) -> Result<()> {
        while self.tape.blocks.get(self.blocks.len()).is_some_and(|block| block.ops.start <= op) {
            self.ask(addresses)?;
        }
        Ok(())
    }

    /// Lets go of what a launch is the last to use, but for results, which are needed behind all of them.
    fn let_go_behind(&mut self, op: usize) {
        let last = op + 1 == self.tape.ops.len();
        for (held, block) in self.blocks.iter_mut().zip(&self.tape.blocks) {
            if block.ops.end <= op + 1 && !last {
                *held = None;
            }
        }
    }

    fn result(&self, outcome: &Outcome, addresses: &[u64], number: u64) -> RawTensor {
        let (storage, offset) = match outcome.at {
            Some(Address { place, delta }) => {
                let arguments = self.call.tensors.len();
                let storage = match self.call.tensors.get(place as usize) {
                    Some(argument) => argument.storage().clone(),
                    None => self.blocks[place as usize - arguments].clone().expect("a result is kept"),
                };
                let bytes = addresses[place as usize].wrapping_add_signed(delta).wrapping_sub(storage.address());
                (storage, bytes as isize / outcome.dtype.bytes() as isize)
            }
            None => (self.nothing(), outcome.layout.offset()),
        };
        if let Some(memory) = storage.as_cuda().filter(|_| outcome.written) {
            memory.note_call(number);
            memory.note_may_fail(self.call.program.may_fault.then_some(number));
        }
        let layout = Layout::with_offset(&outcome.layout, offset);
        RawTensor::from_storage(storage, outcome.dtype, layout, self.call.device)
    }

    /// The storage of a tensor without elements.
    fn nothing(&self) -> Arc<Storage> {
        let buffer = Buffer::new(&self.tape.context, 0).expect("nothing can be had without asking");
        Arc::new(Storage::Cuda(buffer.into()))
    }
}

/// What differs between two runs of a tape.
struct Values<'a> {
    addresses: &'a [u64],
    scalars: &'a [Scalar],
    draws: &'a [Draw],
    number: u64,
}

impl Values<'_> {
    fn address(&self, address: Address) -> u64 {
        self.addresses[address.place as usize].wrapping_add_signed(address.delta)
    }
}

impl Op {
    fn launch(&self, context: &Context, values: &Values<'_>, args: &mut Args) -> Result<()> {
        match self {
            Op::Launch(launch) => {
                launch.patch(values, args);
                context.launch_packed(&launch.function, launch.grid, launch.block, launch.shared, args.bytes())
            }
            Op::Product(multiplication) => multiplication.launch(context, values),
            Op::Copy { to, from, bytes } => context.copy(values.address(*to), values.address(*from), *bytes),
        }
    }
}

impl Launch {
    /// The arguments of a call.
    fn patch(&self, values: &Values<'_>, args: &mut Args) {
        args.refill(&self.args);
        for patch in &self.patches {
            let at = patch.at as usize;
            match patch.value {
                Value::Address(address) => args.write(at, values.address(address)),
                Value::Scalar(k, dtype) => write_scalar(args, at, values.scalars[k as usize], dtype),
                Value::Seed => args.write(at, values.draws.first().map_or(0, |draw| draw.seed)),
                Value::Offset(draw) => args.write(at, values.draws[draw as usize].offset),
                Value::Call => args.write(at, values.number),
            }
        }
    }
}

fn write_scalar(args: &mut Args, at: usize, scalar: Scalar, dtype: DType) {
    match dtype {
        DType::F32 => args.write(at, scalar_as::<f32>(scalar)),
        DType::F64 => args.write(at, scalar_as::<f64>(scalar)),
        DType::I64 => args.write(at, scalar_as::<i64>(scalar)),
        DType::I32 => args.write(at, scalar_as::<i32>(scalar)),
        DType::U8 => args.write(at, scalar_as::<u8>(scalar)),
        DType::Bool => args.write(at, u8::from(scalar_as::<bool>(scalar))),
        other => unreachable!("no scalar is passed as {other}"),
    }
}

impl Multiplication {
    fn launch(&self, context: &Context, values: &Values<'_>) -> Result<()> {
        let mut matmul = self.product.matmul;
        matmul.a.address = values.address(self.a);
        matmul.b.address = values.address(self.b);
        matmul.c.address = values.address(self.c);
        matmul.bias = self.bias.map(|bias| values.address(bias));
        match context.multiply(&self.product, &matmul)? {
            true => Ok(()),
            false => Err(Error::driver("cuda: cuBLASLt does not multiply matrices that it has multiplied before")),
        }
    }
}
