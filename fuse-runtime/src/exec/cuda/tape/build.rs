//! From a call that was taken down to its tape.

use super::device_loop::with_further_turns;
use super::memory::{self, Memory, Need};
use super::replay::{Nested, Replay, Touch};
use super::{Address, Decided, Launch, Multiplication, Op, Outcome, Patch, Repeated, Tape, Value};
use crate::cuda::{COUNTERS, Context, Mark, Product, TRACING, Traced, block_of, take_down};
use crate::device::Device;
use crate::error::Result;
use crate::exec::cuda::run::steps;
use crate::exec::run::Call;
use crate::exec::symbols::Sizes;
use crate::layout::Layout;
use crate::raw::RawTensor;
use crate::rt::Draw;
use crate::storage::{CudaBuffer, Storage};
use fuse_compiler::plan::BufClass;
use std::sync::Arc;

impl Tape {
    /// Takes a call down instead of running it.
    pub fn take_down(call: &Call<'_>, ordinal: usize) -> Result<Tape> {
        let (plan, context) = (&call.program.plan, Context::get(ordinal)?);
        let sizes = Sizes::of(plan, call.tensors, call.host_ints)?;
        let draws: Vec<u64> = plan.draws.iter().map(|counters| sizes.value(counters) as u64).collect();
        take_down(&context, |tracing| {
            let arguments = Tape::stand_ins(call)?;
            let given: Vec<bool> = (0..arguments.len()).map(|k| call.gives(k)).collect();
            let tensors: Vec<&RawTensor> = arguments.iter().collect();
            let traced = Call { tensors: &tensors, given: &given, device: Device::tracing(), ..*call };
            let unknown: Vec<Draw> = draws.iter().map(|_| Draw { seed: 0, offset: 0 }).collect();
            let results = steps(&traced, tracing, ordinal, &sizes, &unknown, 0)?;
            let is_out = |buf: usize| plan.bufs[buf].class == BufClass::Out;
            let written: Vec<bool> = plan.outs.iter().map(|out| is_out(out.buf.0 as usize)).collect();
            let (arguments, results) = (&arguments, &results);
            Ok(TakenDown { call, arguments, results, written, draws, scalars: [0; 2] }.tape(&context, ordinal, tracing))
        })
    }

    /// Tensors that lie like the arguments of a call and are nowhere.
    pub(in crate::exec::cuda) fn stand_ins(call: &Call<'_>) -> Result<Vec<RawTensor>> {
        call.tensors.iter().map(|tensor| stand_in(tensor)).collect()
    }
}

/// A call that was taken down.
pub(super) struct TakenDown<'a> {
    /// The call.
    pub call: &'a Call<'a>,
    /// What stood in for its tensors.
    pub arguments: &'a [RawTensor],
    /// What it gave.
    pub results: &'a [RawTensor],
    /// Of each result, whether a kernel has written it.
    pub written: Vec<bool>,
    /// How many counters each random draw uses up.
    pub draws: Vec<u64>,
    /// From which scalar of the call on those of the first part are, before a loop or an `else`, and those of the second.
    pub scalars: [u32; 2],
}

impl TakenDown<'_> {
    /// The tape of what a context has taken down, to be run on another.
    pub fn tape(self, context: &Arc<Context>, ordinal: usize, tracing: &Context) -> Tape {
        let (events, counters) = tracing.traced();
        let events = with_further_turns(events);
        let graphs = self.call.program.mode.uses_graphs();
        // The launches of a graph, and those that are repeated, find their memory where it was when the first of them started. What
        // writes over an argument must not be followed by a request for memory that may fail.
        let writes = self.call.program.plan.writes.iter().any(|write| write.on_gpu);
        let at_once = graphs || writes || nested(&events).is_some();
        let map = Map::new(self.arguments, self.results, &events, at_once);
        let touches: Vec<Vec<Touch>> = events.iter().filter_map(|event| map.touches(event)).collect();
        let replay = if graphs { Replay::of(&touches, nested(&events)) } else { None };
        let outcome = |(result, written): (&RawTensor, bool)| map.outcome(result, written);
        let results = self.results.iter().zip(self.written).map(outcome).collect();
        let ops = map.ops(events, self.scalars);
        let Memory { blocks, stepwise, .. } = map.memory;
        Tape { context: context.clone(), ordinal, ops, blocks, stepwise, results, draws: self.draws, counters, replay }
    }
}

/// The part of the launches that the device repeats or chooses from.
fn nested(events: &[Traced]) -> Option<Nested> {
    let is_nested = |event: &&Traced| matches!(event, Traced::Loop(_) | Traced::Branch(_));
    let before = |end: usize| events[..end].iter().filter(|event| event.is_op()).count();
    let at = before(events.iter().position(|event| is_nested(&event))?);
    let otherwise = events.iter().position(|event| matches!(event, Traced::Otherwise)).unwrap_or(events.len());
    Some(Nested { at, second: before(otherwise) })
}

/// A tensor that lies like an argument, in memory of its own that is nowhere. It starts as far into its storage as need be
/// for the same alignment.
fn stand_in(tensor: &RawTensor) -> Result<RawTensor> {
    /// Enough elements to be aligned as any address is.
    const ALIGNED: isize = 256;
    let (layout, size) = (tensor.layout(), tensor.dtype().bytes());
    let (low, high) = layout.span().unwrap_or((0, 0));
    let cut = low.div_euclid(ALIGNED) * ALIGNED;
    let offset = layout.offset() - if layout.span().is_some() { cut } else { layout.offset() };
    let bytes = (high - cut + 1) as usize * size;
    let storage = Arc::new(Storage::Cuda(CudaBuffer::new(TRACING, bytes)?));
    let layout = Layout::strided(layout.shape(), layout.strides(), offset);
    Ok(RawTensor::from_storage(storage, tensor.dtype(), layout, Device::tracing()))
}

fn address_at(args: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(args[at..at + 8].try_into().expect("eight bytes"))
}

/// Where symbolic addresses come to lie.
struct Map<'a> {
    arguments: &'a [RawTensor],
    memory: Memory,
    /// How large each block of the call is.
    sizes: Vec<usize>,
}

impl<'a> Map<'a> {
    /// The blocks of the arguments were asked for first, then those of temporaries and results.
    fn new(arguments: &'a [RawTensor], results: &[RawTensor], events: &[Traced], at_once: bool) -> Self {
        let mut needs: Vec<Need> = Vec::new();
        let (mut launches, mut repeated) = (0, 0);
        for event in events {
            match event {
                Traced::Loop(_) => {
                    launches += 1;
                    repeated = launches;
                }
                // What says whether there is a turn is looked at in all of it.
                Traced::EndOfLoop(next) => {
                    let asked = block_of(*next).and_then(|(block, _)| needs.get_mut(block as usize));
                    asked.into_iter().for_each(|need| need.ops.start = need.ops.start.min(repeated));
                }
                Traced::Allocate(bytes) => {
                    needs.push(Need { bytes: *bytes, ops: launches..usize::MAX, result: false });
                }
                Traced::Free(block) => needs[*block as usize].ops.end = launches,
                op => launches += usize::from(op.is_op()),
            }
        }
        for (block, _) in results.iter().filter_map(|result| block_of(result.storage().address())) {
            needs[block as usize].result = true;
        }
        needs.iter_mut().for_each(|need| need.ops.end = need.ops.end.min(launches.max(need.ops.start)));
        let needs = &needs[arguments.len()..];
        let memory = if at_once { memory::shared(needs, launches) } else { memory::plan(needs, launches) };
        Map { arguments, memory, sizes: needs.iter().map(|need| need.bytes).collect() }
    }

    /// Where a symbolic address comes to lie; `None` for one that is the same in every call.
    fn address(&self, address: u64) -> Option<Address> {
        let (block, delta) = block_of(address)?;
        if block == COUNTERS {
            return Some(Address { place: (self.arguments.len() + self.memory.blocks.len()) as u32, delta });
        }
        if let Some(argument) = self.arguments.get(block as usize) {
            return Some(Address { place: block, delta: address.wrapping_sub(argument.address()) as i64 });
        }
        let (block, start) = *self.memory.places.get(block as usize - self.arguments.len())?;
        Some(Address { place: (self.arguments.len() + block) as u32, delta: delta + start as i64 })
    }

    /// An address that must be in memory of the call.
    fn known(&self, address: u64) -> Address {
        self.address(address).expect("a call uses its own memory")
    }

    /// What a launch touches; `None` where nothing is launched.
    fn touches(&self, event: &Traced) -> Option<Vec<Touch>> {
        let touch = |address, write| self.touch(address, write);
        match event {
            Traced::Allocate(_) | Traced::Free(_) | Traced::EndOfLoop(_) => None,
            Traced::Otherwise | Traced::EndOfBranch => None,
            Traced::Loop(flag) | Traced::Branch(flag) => Some(touch(*flag, false).into_iter().collect()),
            Traced::Launch { args, marks, .. } => {
                let touch = |&(at, mark): &(usize, Mark)| match mark {
                    Mark::Read => touch(address_at(args, at), false),
                    Mark::Write => touch(address_at(args, at), true),
                    _ => None,
                };
                Some(marks.iter().filter_map(touch).collect())
            }
            Traced::Product(product) => {
                let matmul = &product.matmul;
                let reads = [Some(matmul.a.address), Some(matmul.b.address), matmul.bias];
                let reads = reads.into_iter().flatten().filter_map(|address| touch(address, false));
                let shared = product.uses_workspace();
                let workspace = shared.then_some(Touch { place: u32::MAX, bytes: 0..usize::MAX, write: true });
                Some(reads.chain(touch(matmul.c.address, true)).chain(workspace).collect())
            }
            Traced::Copy { to, from, .. } => {
                Some([touch(*to, true), touch(*from, false)].into_iter().flatten().collect())
            }
        }
    }

    /// The whole of what lies behind an address of the call, since how far a launch goes in it is not known.
    fn touch(&self, address: u64, write: bool) -> Option<Touch> {
        let (block, _) = block_of(address)?;
        let place = self.address(address)?.place;
        let own = (block as usize).checked_sub(self.arguments.len()).filter(|&own| own < self.sizes.len());
        let bytes = own.map_or(0..usize::MAX, |own| {
            let start = self.memory.places[own].1;
            start..start + self.sizes[own]
        });
        Some(Touch { place, bytes, write })
    }

    fn ops(&self, events: Vec<Traced>, [first_part, second_part]: [u32; 2]) -> Vec<Op> {
        let end = events.iter().find_map(|event| if let Traced::EndOfLoop(next) = event { Some(*next) } else { None });
        let nested = nested(&events);
        let (mut ops, mut later) = (Vec::new(), first_part);
        for event in events {
            match event {
                Traced::Loop(first) => {
                    later = second_part;
                    let next = end.expect("a loop that begins ends");
                    ops.push(Op::Loop(Repeated { first: self.known(first), next: self.known(next) }));
                }
                Traced::Branch(test) => {
                    let otherwise = nested.map_or(0, |nested| nested.second);
                    ops.push(Op::Branch(Decided { test: self.known(test), otherwise }));
                }
                Traced::Otherwise => later = second_part,
                _ => {}
            }
            ops.extend(self.op(event, later));
        }
        ops
    }

    fn op(&self, event: Traced, later: u32) -> Option<Op> {
        match event {
            Traced::Allocate(_) | Traced::Free(_) | Traced::Loop(_) | Traced::EndOfLoop(_) => None,
            Traced::Branch(_) | Traced::Otherwise | Traced::EndOfBranch => None,
            Traced::Launch { function, grid, block, shared, args, marks } => {
                let patches = marks.iter().filter_map(|&(at, mark)| self.patch(&args, at, mark, later)).collect();
                Some(Op::Launch(Launch { function, grid, block, shared, patches, args }))
            }
            Traced::Product(product) => Some(Op::Product(Box::new(self.multiplication(*product)))),
            Traced::Copy { to, from, bytes } => Some(Op::Copy { to: self.known(to), from: self.known(from), bytes }),
        }
    }

    fn patch(&self, args: &[u8], at: usize, mark: Mark, later: u32) -> Option<Patch> {
        let value = match mark {
            Mark::Read | Mark::Write => Value::Address(self.address(address_at(args, at))?),
            Mark::Scalar(k, dtype) => Value::Scalar(k + later, dtype),
            Mark::Seed => Value::Seed,
            Mark::Offset(draw) => Value::Offset(draw),
            Mark::Call => Value::Call,
            // It stays null: what is launched at all has something to do.
            Mark::Asked => return None,
        };
        Some(Patch { at: at as u32, value })
    }

    fn multiplication(&self, product: Product) -> Multiplication {
        let matmul = product.matmul;
        let [a, b, c] = [matmul.a, matmul.b, matmul.c].map(|matrix| self.known(matrix.address));
        Multiplication { product, a, b, c, bias: matmul.bias.map(|bias| self.known(bias)) }
    }

    fn outcome(&self, result: &RawTensor, written: bool) -> Outcome {
        let at = self.address(result.address()).filter(|_| result.storage().bytes() > 0);
        Outcome { dtype: result.dtype(), layout: *result.layout(), at, written }
    }
}
