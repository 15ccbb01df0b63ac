//! Calls that go together: one launch for a list of tensors of different extents.
//!
//! Inside of [`as_list`] a call of a plan that is one map is bound and packed as ever, but put down. At the end all that
//! was put down for one text is launched at once, see [`abi::list`]. What a call gives is there, but has no values before.

use super::bind::{Bound, bind};
use super::call::{CudaCall, function};
use super::launch::{Prepared, grid};
use crate::cuda::{Context, Function};
use crate::device::Device;
use crate::env::is_without;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::exec::program::Program;
use crate::exec::run::Call;
use crate::exec::symbols::Sizes;
use crate::raw::RawTensor;
use fuse_compiler::emit;
use fuse_compiler::plan::Kernel;
use fuse_compiler::plan::abi::{THREADS, Variant, list};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

thread_local! {
    static OPEN: RefCell<Option<List>> = const { RefCell::new(None) };
}

/// Runs calls that do not depend on one another, on a GPU all that can go together in one launch.
///
/// Nothing is launched if the body fails.
pub(crate) fn as_list<R>(device: Device, body: impl FnOnce() -> Result<R>) -> Result<R> {
    let Some(ordinal) = device.cuda_ordinal().filter(|_| uses_lists() && !is_open()) else { return body() };
    OPEN.set(Some(List { ordinal, groups: Vec::new() }));
    let closed = Close;
    let out = body()?;
    let list = OPEN.take();
    drop(closed);
    list.map_or(Ok(()), List::launch)?;
    Ok(out)
}

/// Ends a list, also where its body has failed.
struct Close;

impl Drop for Close {
    fn drop(&mut self) {
        OPEN.set(None);
    }
}

/// `FUSE_WITHOUT=list` launches every call for itself.
fn uses_lists() -> bool {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("list"));
    *USED
}

/// Whether calls of this thread are put down.
#[inline]
pub(super) fn is_open() -> bool {
    OPEN.with_borrow(Option::is_some)
}

/// Puts a call down, if a list is open and the call can be one of it.
pub(super) fn join(call: &Call<'_>, ordinal: usize) -> Option<Result<Vec<RawTensor>>> {
    let open = OPEN.with_borrow(|list| list.as_ref().is_some_and(|list| list.ordinal == ordinal));
    let text = call.program.list_text().filter(|_| open)?;
    Some(put_down(call, ordinal, text))
}

fn put_down(call: &Call<'_>, ordinal: usize, text: &Arc<ListText>) -> Result<Vec<RawTensor>> {
    let (program, context) = (call.program, Context::get(ordinal)?);
    let (plan, kernel) = (&program.plan, &text.kernel);
    let sizes = Sizes::of(plan, call.tensors, call.host_ints)?;
    call.will_use()?;
    let cuda = CudaCall {
        context: &context,
        ordinal,
        source: &text.source,
        contract: plan.contract,
        params: &program.params,
        tunes: false,
        functions: &program.functions,
        sizes: &sizes,
        scalars: call.scalars,
        draws: &[],
        number: context.next_call(),
    };
    let mut buffers = Buffers::new(call, &sizes);
    buffers.start_step(0);
    let bound = bind(kernel, &mut buffers, &sizes)?;
    let axes = bound.geometry.collapse(kernel);
    let variant = Variant::choose(kernel, &axes, &context.facts().target());
    if axes.rows() > 0 {
        let prepared = Prepared::for_list(&cuda, kernel, &axes, &variant)?;
        let (blocks, args) = prepared.member(&cuda, kernel, &bound)?;
        let member = Member { args, blocks, _bound: bound };
        OPEN.with_borrow_mut(|list| list.as_mut().map(|list| list.add(text, variant, member)));
    }
    buffers.note_call(cuda.number);
    plan.outs.iter().map(|out| buffers.operand(out)).collect()
}

/// What was put down.
struct List {
    ordinal: usize,
    groups: Vec<Group>,
}

/// Calls of one text in one variant.
struct Group {
    text: Arc<ListText>,
    variant: Variant,
    members: Vec<Member>,
}

/// A launch that was not made: its packed arguments.
struct Member {
    args: Vec<u8>,
    blocks: u64,
    /// Its operands, which have to be there until the launch.
    _bound: Bound,
}

impl List {
    fn add(&mut self, text: &Arc<ListText>, variant: Variant, member: Member) {
        let fits = |group: &&mut Group| Arc::ptr_eq(&group.text, text) && group.variant == variant;
        match self.groups.iter_mut().find(fits) {
            Some(group) => group.members.push(member),
            None => self.groups.push(Group { text: text.clone(), variant, members: vec![member] }),
        }
    }

    fn launch(self) -> Result<()> {
        let context = Context::get(self.ordinal)?;
        self.groups.iter().try_for_each(|group| group.launch(&context, self.ordinal))
    }
}

impl Group {
    fn launch(&self, context: &Arc<Context>, ordinal: usize) -> Result<()> {
        let most = context.facts().max_argument_bytes();
        let room = list::room(self.members.len(), self.members[0].args.len(), most);
        let function = self.text.function(context, ordinal, &self.variant, room)?;
        context.make_current()?;
        for members in self.members.chunks(room) {
            let blocks = members.iter().map(|member| member.blocks).sum();
            let blocks = grid(&self.text.kernel, blocks)?;
            let table = list::table(room, members.iter().map(|member| (member.args.as_slice(), member.blocks as u32)));
            context.launch_packed(&function, [blocks, 1, 1], [THREADS, 1, 1], 0, &table)?;
        }
        Ok(())
    }
}

/// The text of a program's kernel for lists, and what was compiled of it.
pub(crate) struct ListText {
    source: String,
    contract: bool,
    kernel: Kernel,
    /// By device, variant and room.
    loaded: Mutex<HashMap<(usize, Variant, usize), Function>>,
}

impl ListText {
    /// The text for a program; `None` where its calls cannot go together.
    pub fn of(program: &Program) -> Option<Arc<ListText>> {
        let kernel = list::kernel(&program.plan)?;
        Some(Arc::new(ListText {
            source: emit::cuda::list(&program.plan, kernel),
            contract: program.plan.contract,
            kernel: kernel.clone(),
            loaded: Mutex::default(),
        }))
    }

    fn function(&self, context: &Context, ordinal: usize, variant: &Variant, room: usize) -> Result<Function> {
        let key = (ordinal, variant.clone(), room);
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = loaded.get(&key) {
            return Ok(function.clone());
        }
        let defines = list::defines(&self.kernel, variant, room);
        let function = function(context, (&self.source, self.contract), &self.kernel.name, &defines)?;
        loaded.insert(key, function.clone());
        Ok(function)
    }
}
