//! Running a tape: memory, patches, launches.

use super::{Address, Decided, Launch, Multiplication, Op, Outcome, Repeated, Tape, Value};
use crate::cuda::{Args, Buffer, Context, Matmul};
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
    pub fn run(self: &Arc<Self>, call: &Call<'_>) -> Result<Vec<RawTensor>> {
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
        held.at_the_start(addresses)?;
        call.will_use()?;
        let number = self.context.next_call();
        if let Some(names) = &call.program.names {
            names.announce(self.ordinal, number);
        }
        let draws = self.draws(call.device);
        let facts = Facts { scalars: call.scalars, draws: &draws, number };
        let program = std::ptr::from_ref(call.program).addr();
        let replayed = self.replay.as_ref().map(|replay| replay.launch(self, program, &Values { addresses, facts }));
        if !replayed.transpose()?.unwrap_or(false) {
            self.launch(&mut held, addresses, facts)?;
        }
        Ok(self.results.iter().map(|outcome| held.result(outcome, addresses, number)).collect())
    }

    /// Launches one op after the other.
    fn launch(&self, held: &mut Held<'_>, addresses: &mut [u64], facts: Facts<'_>) -> Result<()> {
        self.context.make_current()?;
        let mut args = Args::new();
        for (k, op) in self.ops.iter().enumerate() {
            match op {
                Op::Loop(repeated) => return self.repeat(repeated, &self.ops[k + 1..], &Values { addresses, facts }),
                Op::Branch(decided) => return self.decide(decided, k, &Values { addresses, facts }),
                _ => {}
            }
            held.before(k, addresses)?;
            op.launch(&self.context, &Values { addresses, facts }, &mut args)?;
            held.behind(k);
        }
        Ok(())
    }

    /// Launches a part as long as the device says so; the host asks it every time.
    fn repeat(&self, repeated: &Repeated, ops: &[Op], values: &Values<'_>) -> Result<()> {
        let (mut args, mut flag) = (Args::new(), repeated.first);
        while self.context.read_flag(values.address(flag))? {
            self.context.make_current()?;
            ops.iter().try_for_each(|op| op.launch(&self.context, values, &mut args))?;
            flag = repeated.next;
        }
        Ok(())
    }

    /// Launches one of two parts; the host asks the device which.
    fn decide(&self, decided: &Decided, at: usize, values: &Values<'_>) -> Result<()> {
        let holds = self.context.read_flag(values.address(decided.test))?;
        let part = if holds { &self.ops[at + 1..decided.otherwise] } else { &self.ops[decided.otherwise..] };
        self.context.make_current()?;
        let mut args = Args::new();
        part.iter().try_for_each(|op| op.launch(&self.context, values, &mut args))
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

    /// Asks for everything, unless that is done step by step.
    fn at_the_start(&mut self, addresses: &mut [u64]) -> Result<()> {
        if self.tape.stepwise {
            return Ok(());
        }
        (0..self.tape.blocks.len()).try_for_each(|_| self.ask(addresses))
    }

    /// Asks for what a launch is the first to use; blocks are in this order.
    #[inline]
    fn before(&mut self, op: usize, addresses: &mut [u64]) -> Result<()> {
        while self.tape.blocks.get(self.blocks.len()).is_some_and(|block| block.ops.start <= op) {
            self.ask(addresses)?;
        }
        Ok(())
    }

    /// Lets go of what a launch is the last to use, but for results, which are needed behind all of them.
    #[inline]
    fn behind(&mut self, op: usize) {
        let last = op + 1 == self.tape.ops.len();
        if !self.tape.stepwise || last {
            return;
        }
        for (held, block) in self.blocks.iter_mut().zip(&self.tape.blocks) {
            if block.ops.end <= op + 1 {
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
            // An argument that is written over stays as it is where its call fails.
            let is_own = outcome.at.is_some_and(|at| at.place as usize >= self.call.tensors.len());
            memory.note_may_fail((is_own && self.call.program.may_fault).then_some(number));
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
pub(super) struct Values<'a> {
    addresses: &'a [u64],
    facts: Facts<'a>,
}

/// What is known of a call before its memory is there.
#[derive(Clone, Copy)]
struct Facts<'a> {
    scalars: &'a [Scalar],
    draws: &'a [Draw],
    number: u64,
}

impl Values<'_> {
    #[inline]
    pub fn address(&self, address: Address) -> u64 {
        self.addresses[address.place as usize].wrapping_add_signed(address.delta)
    }

    /// A value as it lies in packed arguments: bytes, and how many of them.
    pub fn bytes(&self, value: &Value) -> ([u8; 8], usize) {
        let word = |word: u64| (word.to_ne_bytes(), 8);
        match *value {
            Value::Address(address) => word(self.address(address)),
            Value::Scalar(k, dtype) => scalar_bytes(self.facts.scalars[k as usize], dtype),
            Value::Seed => word(self.facts.draws.first().map_or(0, |draw| draw.seed)),
            Value::Offset(draw) => word(self.facts.draws[draw as usize].offset),
            Value::Call => word(self.facts.number),
        }
    }
}

fn scalar_bytes(scalar: Scalar, dtype: DType) -> ([u8; 8], usize) {
    fn padded<const N: usize>(bytes: [u8; N]) -> ([u8; 8], usize) {
        let mut all = [0; 8];
        all[..N].copy_from_slice(&bytes);
        (all, N)
    }
    match dtype {
        DType::F32 => padded(scalar_as::<f32>(scalar).to_ne_bytes()),
        DType::F64 => padded(scalar_as::<f64>(scalar).to_ne_bytes()),
        DType::I64 => padded(scalar_as::<i64>(scalar).to_ne_bytes()),
        DType::I32 => padded(scalar_as::<i32>(scalar).to_ne_bytes()),
        DType::U8 => padded([scalar_as::<u8>(scalar)]),
        DType::Bool => padded([u8::from(scalar_as::<bool>(scalar))]),
        other => unreachable!("no scalar is passed as {other}"),
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
            Op::Loop(_) | Op::Branch(_) => unreachable!("nothing is nested in what is nested"),
            Op::Copy { to, from, bytes } => context.copy(values.address(*to), values.address(*from), *bytes),
        }
    }
}

impl Launch {
    /// The arguments of a call.
    fn patch(&self, values: &Values<'_>, args: &mut Args) {
        args.refill(&self.args);
        for patch in &self.patches {
            match patch.value {
                Value::Address(address) => args.write(patch.at as usize, &values.address(address).to_ne_bytes()),
                _ => {
                    let (bytes, len) = values.bytes(&patch.value);
                    args.write(patch.at as usize, &bytes[..len]);
                }
            }
        }
    }
}

impl Multiplication {
    /// The product of a call.
    pub(super) fn matmul(&self, values: &Values<'_>) -> Matmul {
        let mut matmul = self.product.matmul;
        matmul.a.address = values.address(self.a);
        matmul.b.address = values.address(self.b);
        matmul.c.address = values.address(self.c);
        matmul.bias = self.bias.map(|bias| values.address(bias));
        matmul
    }

    fn launch(&self, context: &Context, values: &Values<'_>) -> Result<()> {
        match context.multiply(&self.product, &self.matmul(values))? {
            true => Ok(()),
            false => Err(Error::driver("cuda: cuBLASLt does not multiply matrices that it has multiplied before")),
        }
    }
}
