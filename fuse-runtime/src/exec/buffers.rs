//! The memory of a call.

use super::overwritten::Overwritten;
use super::program::Program;
use super::run::Call;
use super::symbols::Sizes;
use super::views::view;
use crate::device::Device;
use crate::error::Result;
use crate::raw::RawTensor;
use fuse_compiler::plan::{BufClass, BufId, Expr, Kernel, Kind, Operand, Phases, Plan, Store, abi};

/// The buffers of a plan during one call. Memory is taken when a step first touches a buffer and let go after the last
/// step that does, so that later temporaries take it over from the allocator.
pub(super) struct Buffers<'a> {
    program: &'a Program,
    plan: &'a Plan,
    sizes: &'a Sizes,
    device: Device,
    held: Vec<Option<RawTensor>>,
    /// Inputs that the current step may overwrite.
    givers: Vec<BufId>,
    /// Whether the caller gives up the storage of each input, and nothing else holds it.
    given: Vec<bool>,
    /// What was in the place of results that lie in the memory of inputs.
    overwritten: Vec<Overwritten>,
    /// Results that lie in the memory of inputs, where they stay as they are in a call that fails.
    unharmed: Vec<BufId>,
}

impl<'a> Buffers<'a> {
    /// Before the first step only the inputs are there.
    pub fn new(call: &Call<'a>, sizes: &'a Sizes) -> Self {
        let (program, device, tensors) = (call.program, call.device, call.tensors);
        let plan = &program.plan;
        let given = (0..tensors.len()).map(|k| call.gives(k)).collect();
        let held = plan.bufs.iter().map(|buf| match buf.class {
            BufClass::In(k) => Some(tensors[k as usize].clone()),
            BufClass::Out | BufClass::Temp => None,
        });
        let held = held.collect();
        let (overwritten, unharmed) = (Vec::new(), Vec::new());
        Buffers { program, plan, sizes, device, held, givers: Vec::new(), given, overwritten, unharmed }
    }

    /// Where the call runs.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Whether the last step may write over an input.
    pub fn may_give(&self) -> bool {
        self.given.contains(&true)
    }

    /// Before a step, finds the inputs it may overwrite.
    pub fn start_step(&mut self, step: u32) {
        self.givers = self.find_givers(step);
    }

    /// Whether a step need not be done: it copies an input that the caller gives up, so that the next step may write a part of its
    /// new value. That is written over the input instead, see [`PartWrite`].
    ///
    /// On a GPU a call is done so where nothing behind the write asks for memory: where the write comes last, and where all memory is there
    /// before the first launch, when the call is taken down.
    pub fn takes_over(&mut self, step: u32) -> Result<bool> {
        let Some(write) = self.plan.write_at(step as usize) else { return Ok(false) };
        let (from, to) = (write.from.0 as usize, write.to.0 as usize);
        let BufClass::In(input) = self.plan.bufs[from].class else { return Ok(false) };
        let Some(old) = self.held[from].clone().filter(|_| self.given[input as usize]) else { return Ok(false) };
        let fits = old.layout().is_contiguous() && old.shape() == self.sizes.extents(&self.plan.bufs[to].ty.dims)?;
        let asks_no_more = write.comes_last(self.plan) || self.device == Device::tracing();
        let can = self.device.is_cpu() || write.on_gpu && asks_no_more && !self.has_empty()?;
        if !fits || !can {
            return Ok(false);
        }
        if self.device.is_cpu() && !self.keep_old(&old, step + 1)? {
            return Ok(false);
        }
        // Nothing else may take it now.
        self.given[input as usize] = false;
        self.held[to] = Some(old);
        self.unharmed.push(write.to);
        Ok(true)
    }

    /// Whether there is a tensor without elements, of which kernels test no positions.
    fn has_empty(&self) -> Result<bool> {
        for buf in &self.plan.bufs {
            if self.sizes.extents(&buf.ty.dims)?.contains(&0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps what a step will write over of a tensor on the processor; `false` if it is about to write outside of it.
    fn keep_old(&mut self, tensor: &RawTensor, step: u32) -> Result<bool> {
        let Some(kernel) = self.plan.steps[step as usize].kernel() else { return Ok(false) };
        let [store] = &kernel.stores[..] else { return Ok(false) };
        let parts = match &store.scatter {
            None => vec![*view(tensor, &store.to.views, self.sizes)?.layout()],
            Some(scatter) => {
                let Expr::Load(leaf) = kernel.stmt(scatter.index).expr else { return Ok(false) };
                let Some(index) = kernel.leaves[leaf as usize].buf() else { return Ok(false) };
                let (index, axis) = (self.get(index)?, scatter.axis as isize);
                let extent = tensor.shape()[scatter.axis as usize] as i64;
                let places = index.to_vec::<i64>()?;
                if places.iter().any(|place| !(0..extent).contains(place)) {
                    return Ok(false);
                }
                places.iter().map(|&place| tensor.layout().narrow(axis, place as usize, 1)).collect::<Result<_>>()?
            }
        };
        self.overwritten.push(Overwritten::keep(tensor, parts)?);
        Ok(true)
    }

    /// Gives inputs that were written over their old values back, the last write first.
    pub fn undo(&mut self) {
        self.overwritten.drain(..).rev().for_each(Overwritten::restore);
    }

    /// Leaves all inputs as they are from here on: the call has failed.
    pub fn keep_inputs(&mut self) {
        self.given.fill(false);
    }

    /// Inputs that the caller gives up and that a step does not read, or reads only where it writes, as an elementwise
    /// kernel, or on a GPU one that walks its rows once.
    ///
    /// Only the last step may overwrite an input, and only if it cannot fault, nor, on a GPU, where it runs all the same, any
    /// step before it: a call that fails changes no tensor.
    fn find_givers(&self, step: u32) -> Vec<BufId> {
        let Some(kernel) = self.plan.steps[step as usize].kernel() else { return Vec::new() };
        let last = step as usize + 1 == self.plan.steps.len();
        let may_fault = if self.device.is_cpu() { abi::may_fault(kernel) } else { self.program.may_fault };
        if !last || may_fault || !self.may_give() {
            return Vec::new();
        }
        let gives = |buf: &BufId| {
            let BufClass::In(k) = self.plan.bufs[buf.0 as usize].class else { return false };
            let contiguous = self.held[buf.0 as usize].as_ref().is_some_and(|tensor| tensor.layout().is_contiguous());
            let once = kernel.kind == Kind::Map || !self.device.is_cpu() && is_walked_once(kernel);
            self.given[k as usize] && contiguous && reads_in_place(kernel, *buf, once)
        };
        (0..self.plan.bufs.len() as u32).map(BufId).filter(gives).collect()
    }

    /// The tensor of a buffer; a new one, or its donor, where no step has touched it yet.
    pub fn get(&mut self, buf: BufId) -> Result<RawTensor> {
        let at = buf.0 as usize;
        if self.held[at].is_none() {
            self.held[at] = Some(self.make(at)?);
        }
        Ok(self.held[at].clone().expect("the buffer was made above"))
    }

    /// Puts one element in the place of a buffer that never lies in memory as a whole, so that its readers can be bound.
    pub fn stand_in(&mut self, buf: BufId) -> Result<()> {
        let ty = &self.plan.bufs[buf.0 as usize].ty;
        let one = RawTensor::empty(ty.dtype, &[1], self.device)?;
        let layout = one.layout().broadcast_to(&self.sizes.extents(&ty.dims)?)?;
        self.held[buf.0 as usize] = Some(one.with_layout(layout));
        Ok(())
    }

    /// Whether a buffer is there.
    pub fn has(&self, buf: BufId) -> bool {
        self.held[buf.0 as usize].is_some()
    }

    /// Lets go of a buffer that was made again for a step, unless one from `step` on reads it.
    pub fn end_again(&mut self, buf: BufId, step: u32) {
        if self.plan.bufs[buf.0 as usize].live.1 < step {
            self.held[buf.0 as usize] = None;
        }
    }

    /// Takes a stand-in away again, so that the buffer may come to lie in memory after all.
    pub fn forget_stand_in(&mut self, buf: BufId) {
        self.held[buf.0 as usize] = None;
    }

    /// The tensor of a buffer under its views.
    pub fn operand(&mut self, operand: &Operand) -> Result<RawTensor> {
        let tensor = self.get(operand.buf)?;
        view(&tensor, &operand.views, self.sizes)
    }

    /// Notes on what a call has written on a GPU that it came from this call.
    pub fn note_call(&self, number: u64) {
        for (id, (buf, held)) in (0..).map(BufId).zip(self.plan.bufs.iter().zip(&self.held)) {
            if let (BufClass::Out, Some(tensor)) = (buf.class, held) {
                let Some(memory) = tensor.storage().as_cuda() else { continue };
                memory.note_call(number);
                let may_change = self.program.may_fault && !self.unharmed.contains(&id);
                memory.note_may_fail(may_change.then_some(number));
            }
        }
    }

    /// Lets go of what no later step needs.
    pub fn end_step(&mut self, step: u32) {
        for (buf, held) in self.plan.bufs.iter().zip(&mut self.held) {
            if buf.class == BufClass::Temp && buf.live.1 == step {
                *held = None;
            }
        }
    }

    fn make(&mut self, at: usize) -> Result<RawTensor> {
        let buf = &self.plan.bufs[at];
        if let Some(donor) = buf.donor.and_then(|donor| self.held[donor.0 as usize].clone()) {
            return Ok(donor);
        }
        let extents = self.sizes.extents(&buf.ty.dims)?;
        if let Some(tensor) = self.take_giver(at, &extents) {
            return Ok(tensor);
        }
        RawTensor::empty(buf.ty.dtype, &extents, self.device)
    }

    /// An input that may be overwritten by a store without views: of the same type and extents, or, if the step does not read
    /// it, of the same size.
    fn take_giver(&mut self, at: usize, extents: &[usize]) -> Option<RawTensor> {
        let kernel = self.plan.steps.last()?.kernel()?;
        let whole = |store: &Store| store.to.buf.0 as usize == at && store.to.views.is_empty();
        if !kernel.stores.iter().any(whole) {
            return None;
        }
        let dtype = self.plan.bufs[at].ty.dtype;
        let fitting = |buf: &BufId| {
            let held = self.held[buf.0 as usize].as_ref()?;
            let same = (held.dtype(), held.shape()) == (dtype, extents);
            if same { Some(held.clone()) } else { held.recast(dtype, extents).filter(|_| !kernel.reads(*buf)) }
        };
        let (found, tensor) = self.givers.iter().enumerate().find_map(|(k, buf)| Some((k, fitting(buf)?)))?;
        self.givers.swap_remove(found);
        Some(tensor)
    }
}

/// Whether a kernel has no use for a buffer but to read each element where it writes one.
fn reads_in_place(kernel: &Kernel, buf: BufId, once: bool) -> bool {
    let mut leaves = kernel.leaves.iter().filter(|leaf| leaf.buf() == Some(buf));
    match (leaves.next(), leaves.next()) {
        (None, _) => true,
        (Some(leaf), None) => once && leaf.is_in_place(),
        _ => false,
    }
}

/// Whether the threads of a GPU read each element of a row once, and before they write what becomes of it.
fn is_walked_once(kernel: &Kernel) -> bool {
    kernel.kind == Kind::Row && Phases::of(kernel).walks.len() == 1
}
