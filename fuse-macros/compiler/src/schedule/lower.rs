//! From groups to a plan.
//!
//! Groups are lowered last to first, so that a group knows which of its values are read by others and must be stored.
//! A group none of whose values are wanted leaves no kernel: everything it made was computed again where it was read.

use super::facts::{axis_attr, is_draw, is_from_nothing, reduced_last};
use super::group::{Group, GroupId, Member, Shape};
use super::groups::Groups;
use super::kernel::KernelBuilder;
use super::views::{behind_views, broadcast, normal};
use super::walk::reads_in_place;
use crate::graph::Graph;
use crate::op::{Attr, Class, Val};
use crate::plan::{Buf, BufClass, BufId, Kernel, Kind, Level, Operand, Plan, PlanCheck, Scatter, Step, View};
use crate::types::{DType, Dim};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Up to this many cheap ops are computed again where they are read rather than stored and loaded.
const CHEAP_OPS: usize = 4;
/// Up to this many ops, whatever they are, if a value of fewer bytes is stored and loaded instead.
const OPS_FOR_LESS: usize = 16;

/// Lowering in progress.
pub struct Lower<'g> {
    /// The graph.
    pub graph: &'g Graph,
    groups: &'g Groups<'g>,
    plan: Plan,
    /// Buffers of inputs and of values that somebody reads from memory.
    bufs: HashMap<Val, BufId>,
    /// Groups that read a value, through views.
    readers: HashMap<Val, BTreeSet<GroupId>>,
    /// Values that are known to be stored, because they are not cheap to compute again.
    kept: HashSet<Val>,
    /// Draw numbers by node, in program order.
    draws: HashMap<u32, u32>,
    /// Buffers whose parts, of equal extents, are copied to their places.
    joined: Vec<BufId>,
    /// Steps of the groups lowered so far, last first.
    steps: Vec<Vec<Step>>,
}

/// Lowers the groups of a graph; gives as well the buffers whose parts are copied to their places.
///
/// What a value costs to compute again depends on what else is stored, which is known only at the end. So this is done
/// twice, and the second time knows what the first one stored.
pub fn run(groups: &Groups<'_>) -> (Plan, Vec<BufId>) {
    let mut first = Lower::new(groups);
    first.lower();
    let mut second = Lower::new(groups);
    second.keep(first.bufs.into_keys().collect());
    second.lower();
    second.finish()
}

impl<'g> Lower<'g> {
    fn new(groups: &'g Groups<'g>) -> Self {
        let graph = groups.graph;
        let mut lower = Lower {
            graph,
            groups,
            plan: Plan {
                name: graph.name.clone(),
                syms: graph.syms.clone(),
                places: graph.places.clone(),
                ..Plan::default()
            },
            bufs: HashMap::new(),
            readers: readers(groups),
            kept: HashSet::new(),
            draws: HashMap::new(),
            joined: Vec::new(),
            steps: Vec::new(),
        };
        lower.plan.checks = graph.checks.iter().map(|(node, check)| lower.check(*node, check.clone())).collect();
        lower.plan.guards = graph.guards.iter().map(|(node, check)| lower.check(*node, check.clone())).collect();
        lower.plan.scalars = graph.scalars.iter().map(|&v| graph.node(v).outs[0].dtype).collect();
        lower.plan.decisions = groups.decisions.clone();
        for (k, &input) in graph.inputs.iter().enumerate() {
            lower.new_buffer(input, BufClass::In(k as u32));
        }
        for (id, node) in graph.nodes.iter().enumerate().filter(|(id, _)| is_draw(graph, *id as u32)) {
            lower.draws.insert(id as u32, lower.plan.draws.len() as u32);
            // One counter gives four numbers.
            lower.plan.draws.push(Dim::ceil_div(node.outs[0].numel(), Dim::Const(4)));
        }
        lower
    }

    fn lower(&mut self) {
        self.mark_results();
        for id in order(self.groups).into_iter().rev() {
            let steps = self.group(id);
            self.steps.push(steps);
        }
    }

    /// Notes which of these values stay in memory, in program order: each is as cheap as what it is made of allows.
    fn keep(&mut self, mut stored: Vec<Val>) {
        stored.sort_unstable();
        for val in stored {
            if self.groups.of[val.node as usize].is_some_and(|owner| self.if_cheap(val, owner).is_none()) {
                self.kept.insert(val);
            }
        }
    }

    fn check(&self, node: u32, check: crate::op::Check) -> PlanCheck {
        let info = &self.graph.nodes[node as usize];
        PlanCheck { check, op: info.op.name.to_owned(), place: info.place }
    }

    fn mark_results(&mut self) {
        for k in 0..self.graph.outs.len() {
            let (root, views) = behind_views(self.graph, self.graph.outs[k]);
            let buf = self.buffer(root);
            if self.plan.bufs[buf.0 as usize].class == BufClass::Temp {
                self.plan.bufs[buf.0 as usize].class = BufClass::Out;
            }
            self.plan.outs.push(Operand { buf, views });
        }
        for val in super::faults::unread(self.graph) {
            self.buffer(val);
        }
    }

    /// The buffer of a value; asking for it is what makes its group store it.
    pub fn buffer(&mut self, val: Val) -> BufId {
        match self.bufs.get(&val) {
            Some(&buf) => buf,
            None => self.new_buffer(val, BufClass::Temp),
        }
    }

    fn new_buffer(&mut self, val: Val, class: BufClass) -> BufId {
        let node = self.graph.node(val);
        let name = node.name.clone().unwrap_or_else(|| format!("{}{}", node.op.name, val.node));
        let buf = self.push_buffer(name, node.outs[val.out as usize].clone(), class);
        self.bufs.insert(val, buf);
        buf
    }

    /// A buffer that is no value of the graph.
    pub fn push_buffer(&mut self, name: String, ty: crate::types::Ty, class: BufClass) -> BufId {
        self.plan.bufs.push(Buf { name, ty, class, live: (0, 0), donor: None });
        BufId(self.plan.bufs.len() as u32 - 1)
    }

    /// The number of a random draw.
    pub fn draw_site(&self, node: u32) -> u32 {
        self.draws[&node]
    }

    /// A value in memory.
    pub fn operand(&mut self, val: Val, onto: &[View]) -> Operand {
        let (root, views) = behind_views(self.graph, val);
        let dims = self.graph.node(root).outs[root.out as usize].dims.clone();
        let views = normal(&dims, &[views.as_slice(), onto].concat());
        Operand { buf: self.buffer(root), views }
    }

    /// Whether a value outside a group (or at other positions inside it) is computed again where the group reads it.
    pub fn computes_again(&self, val: Val, group: &Group, chain: &[View]) -> bool {
        let Some(owner) = self.groups.of[val.node as usize] else { return false };
        let node = self.graph.node(val);
        if node.op.class == Class::Gather && !super::frame::keeps_axes(&node.outs[0].dims, chain) {
            return false;
        }
        if group.member(val.node).is_some() {
            return true;
        }
        if node.op.class == Class::Elementwise && !reads_in_place(self.graph, val, chain) {
            return false;
        }
        let from = &self.groups.list[owner.0];
        let is_stored = self.bufs.contains_key(&val);
        if !is_stored && (self.is_cast_up(val) || from.shape == Shape::Matmul && self.is_made_of_less(val, owner)) {
            return true;
        }
        let repeatable = match node.op.class {
            Class::Elementwise | Class::Gather => true,
            _ => is_draw(self.graph, val.node),
        };
        if !repeatable || is_stored || matches!(from.shape, Shape::Matmul | Shape::Nest(Kind::Line)) {
            return false;
        }
        // A table is walked axis by axis, so its axes must not be merged or split.
        if node.op.class == Class::Gather && chain.iter().any(|view| matches!(view, View::Reshape(_))) {
            return false;
        }
        // A launch for it would cost more than any number of instructions.
        if is_from_nothing(self.graph, val) {
            return true;
        }
        let repeats =
            chain.iter().any(|v| matches!(v, View::Expand(dims) if certainly_repeats(&node.outs[0].dims, dims)));
        // A launch for one value costs more than a division wherever it is read.
        let lone = node.outs[0].dims.is_empty() && from.shape == Shape::Nest(Kind::Map);
        if self.if_cheap(val, owner).is_some_and(|cost| lone || !repeats || cost.heavy == 0) {
            return true;
        }
        from.shape == Shape::Nest(Kind::Map) && !repeats && self.only_read_by(val, group)
    }

    /// Whether a value is a cast from a type of fewer bytes, which memory holds in its place.
    fn is_cast_up(&self, val: Val) -> bool {
        let node = self.graph.node(val);
        node.op.name == "cast" && self.bytes(node.args[0]) < self.bytes(val)
    }

    /// Whether a value is arithmetic on a single other one of the same group, of the same extents and fewer bytes.
    fn is_made_of_less(&self, val: Val, owner: GroupId) -> bool {
        let is_beside = |val: Val| self.groups.of[val.node as usize] == Some(owner);
        let (mut sources, mut ops, mut open) = (BTreeSet::new(), BTreeSet::from([val]), vec![val]);
        while let Some(next) = open.pop() {
            let node = self.graph.node(next);
            if node.op.class != Class::Elementwise || !is_beside(next) || ops.len() > OPS_FOR_LESS {
                return false;
            }
            for &arg in &node.args {
                let (root, views) = behind_views(self.graph, arg);
                match () {
                    () if is_from_nothing(self.graph, root) => {}
                    () if !views.is_empty() => return false,
                    () if self.bytes(root) < self.bytes(val) => _ = sources.insert(root),
                    () if ops.insert(root) => open.push(root),
                    () => {}
                }
            }
        }
        sources.len() == 1 && sources.into_iter().all(is_beside)
    }

    /// Whether every group that reads a value is this one, or exists only to be computed again in it.
    fn only_read_by(&self, val: Val, group: &Group) -> bool {
        let Some(readers) = self.readers.get(&val) else { return true };
        let owner = self.groups.of[val.node as usize];
        readers.iter().all(|&r| {
            let reader = &self.groups.list[r.0];
            let same = reader.members.first().map(|m| m.node) == group.members.first().map(|m| m.node);
            same || Some(r) == owner
                || reader.members.iter().all(|m| !self.bufs.contains_key(&Val { node: m.node, out: 0 }))
        })
    }

    /// What computing a value again where it is read takes, if that is little arithmetic, and no more memory traffic than
    /// storing it once and reading it there.
    fn if_cheap(&self, val: Val, owner: GroupId) -> Option<Cost> {
        let mut cost = Cost::default();
        self.add_cost(val, owner, &mut cost);
        let elsewhere = |readers: &BTreeSet<GroupId>| readers.iter().filter(|r| **r != owner).count();
        let readers = self.readers.get(&val).map_or(1, elsewhere).max(1);
        let loaded: usize = cost.loads.iter().map(|&load| self.bytes(load)).sum();
        let less_traffic = cost.loads.len() <= 1 || readers * loaded <= (1 + readers) * self.bytes(val);
        (cost.ops <= CHEAP_OPS && cost.heavy <= 1 && less_traffic).then_some(cost)
    }

    /// Bytes of one element; of a generic type as if it were a half.
    fn bytes(&self, val: Val) -> usize {
        match self.graph.node(val).outs[val.out as usize].dtype {
            DType::Param(_) => DType::F16.bytes(),
            DType::Compute(_) => DType::F16.compute().bytes(),
            dtype => dtype.bytes(),
        }
    }

    fn add_cost(&self, val: Val, owner: GroupId, cost: &mut Cost) {
        if cost.ops > CHEAP_OPS {
            return;
        }
        let node = self.graph.node(val);
        let heavy = node.op.class == Class::Gather
            || is_draw(self.graph, val.node)
            // Only divisions fault at zero.
            || node.op.scalar.as_ref().is_some_and(|s| s.heavy || s.zero_fault);
        cost.ops += (node.op.name != "cast") as usize;
        cost.heavy += heavy as usize;
        for &arg in &node.args {
            let (root, _) = behind_views(self.graph, arg);
            let full = self.graph.node(arg).outs[arg.out as usize].dims == node.outs[0].dims;
            let repeats = self.graph.node(root).op.class == Class::Elementwise && !self.kept.contains(&root);
            match self.groups.of[root.node as usize] {
                // What is smaller is stored or computed again by itself.
                _ if !full => {}
                Some(id) if id == owner && repeats => self.add_cost(root, owner, cost),
                None if !self.graph.inputs.contains(&root) => {}
                _ => _ = cost.loads.insert(root),
            }
        }
    }

    fn group(&mut self, id: GroupId) -> Vec<Step> {
        let groups = self.groups;
        let group = &groups.list[id.0];
        let wanted: Vec<(&Member, BufId)> = group
            .members
            .iter()
            .filter_map(|m| self.bufs.get(&Val { node: m.node, out: 0 }).map(|&buf| (m, buf)))
            .collect();
        if wanted.is_empty() {
            return vec![];
        }
        match group.shape {
            Shape::Nest(kind) => vec![Step::Kernel(self.nest(group, kind, &wanted))],
            Shape::Matmul => vec![Step::Matmul(super::matmul::lower(self, group, &wanted))],
            Shape::Join => self.join(group.members[0].node, wanted[0].1),
            Shape::Scatter => self.scatter(group, wanted[0].1),
        }
    }

    /// A generated kernel that stores what is wanted of a group.
    pub fn nest(&mut self, group: &Group, kind: Kind, wanted: &[(&Member, BufId)]) -> Kernel {
        let mut builder = KernelBuilder::new(self, group, kind);
        for (member, buf) in wanted {
            builder.store_member(member, *buf);
        }
        builder.finish()
    }

    /// Copies a value to a place in a buffer.
    fn copy(&mut self, val: Val, to: Operand) -> Step {
        let dims = self.graph.node(val).outs[val.out as usize].dims.clone();
        let group = self.bare(dims, 0);
        let mut builder = KernelBuilder::new(self, &group, Kind::Map);
        let stmt = builder.at_level(val, &[], Level::Elem);
        builder.store(to, stmt);
        Step::Kernel(builder.finish())
    }

    fn bare(&self, domain: Vec<Dim>, reduced: usize) -> Group {
        let kind = if reduced == 0 { Kind::Map } else { Kind::Line };
        Group { shape: Shape::Nest(kind), domain, reduced, members: vec![], deps: BTreeSet::new() }
    }

    /// A join copies each operand to its place; a write copies the base, then the part over it.
    fn join(&mut self, node: u32, buf: BufId) -> Vec<Step> {
        let info = &self.graph.nodes[node as usize];
        let axis = axis_attr(self.graph, node, 0) as u32;
        let extent = |val: Val| self.graph.node(val).outs[val.out as usize].dims[axis as usize].clone();
        let place = |start: Dim, len: Dim| Operand { buf, views: vec![View::Slice { axis, start, len, step: 1 }] };
        if info.op.class == Class::Write {
            let Attr::Dim(start) = &info.attrs[1] else { unreachable!("a write starts at a size") };
            let (base, src) = (info.args[0], info.args[1]);
            let to = place(start.clone(), extent(src));
            return vec![self.copy(base, Operand { buf, views: vec![] }), self.copy(src, to)];
        }
        // Parts of other extents could lie at odd addresses, which the kernels that make them would be slower for.
        if info.args.iter().all(|&arg| extent(arg) == extent(info.args[0])) {
            self.joined.push(buf);
        }
        let mut start = Dim::Const(0);
        let mut steps = Vec::new();
        for &arg in &info.args {
            let len = extent(arg);
            let to = place(start.clone(), len.clone());
            steps.push(self.copy(arg, to));
            start = Dim::add(start, len);
        }
        steps
    }

    /// Copies the base, then sets or adds the source line by line, in order, so that the result is repeatable.
    fn scatter(&mut self, group: &Group, buf: BufId) -> Vec<Step> {
        let node = group.members[0].node;
        let info = &self.graph.nodes[node as usize];
        let axis = axis_attr(self.graph, node, 0);
        let (add, place) = (matches!(info.attrs[1], Attr::Bool(true)), info.place);
        let [base, index, src] = info.args[..] else { unreachable!("a scatter has a base, an index and a source") };
        let dims = |val: Val| self.graph.node(val).outs[val.out as usize].dims.clone();
        let (out, index_dims, walked) = (dims(base), dims(index), dims(src));
        let last = View::Permute(reduced_last(walked.len(), &[axis]));
        let index_onto = [broadcast(&index_dims, &walked), vec![last.clone()]].concat();
        let shorter = (0..walked.len()).filter(|&k| k != axis && out[k] != walked[k]);
        let cut = |k: usize| View::Slice { axis: k as u32, start: Dim::Const(0), len: walked[k].clone(), step: 1 };
        let mut to: Vec<View> = shorter.map(cut).collect();
        to.extend([View::Expand(walked.clone()), last.clone()]);
        let line = self.bare(super::frame::dims_after(&walked, std::slice::from_ref(&last)), 1);
        let first = self.copy(base, Operand { buf, views: vec![] });
        let mut builder = KernelBuilder::new(self, &line, Kind::Line);
        let index = builder.at_level(index, &index_onto, Level::Elem);
        let value = builder.at_level(src, &[last], Level::Elem);
        builder.scatter(Operand { buf, views: to }, value, Scatter { axis: axis as u32, index, add, place });
        let mut kernel = builder.finish();
        // Where every line has the same positions, each can tell before it writes whether all of them are in range.
        let is_alike = |(k, dim): (usize, &Dim)| k == axis || *dim == Dim::Const(1);
        kernel.heeds = !add && index_dims.iter().enumerate().all(is_alike);
        vec![first, Step::Kernel(kernel)]
    }

    fn finish(mut self) -> (Plan, Vec<BufId>) {
        let stored = |val: Val| {
            let buf = self.bufs.get(&val).map(|buf| &self.plan.bufs[buf.0 as usize]);
            buf.is_some_and(|buf| buf.class == BufClass::Temp)
        };
        let missed = super::missed::find(self.groups, stored);
        self.plan.decisions.extend(missed);
        self.steps.reverse();
        self.plan.steps = self.steps.into_iter().flatten().collect();
        (self.plan, self.joined)
    }
}

/// What computing a value again would take: ops, those of many instructions, and reads of values as large as itself.
#[derive(Default)]
struct Cost {
    ops: usize,
    heavy: usize,
    loads: BTreeSet<Val>,
}

/// Whether an expansion repeats elements whatever the extents are at run time.
fn certainly_repeats(from: &[Dim], to: &[Dim]) -> bool {
    let ones = |dims: &[Dim]| dims.iter().filter(|d| **d == Dim::Const(1)).count();
    to.len() - ones(to) > from.len() - ones(from).min(from.len())
}

/// Groups in an order in which each runs after what it reads, those first that begin first in the program.
fn order(groups: &Groups<'_>) -> Vec<GroupId> {
    let mut done: Vec<GroupId> = Vec::new();
    let mut left: Vec<GroupId> = (0..groups.list.len()).map(GroupId).collect();
    left.retain(|id| !groups.list[id.0].members.is_empty());
    left.sort_by_key(|id| groups.list[id.0].members.iter().map(|member| member.node).min());
    while !left.is_empty() {
        let ready = left.iter().position(|id| groups.list[id.0].deps.iter().all(|d| done.contains(d)));
        done.push(left.remove(ready.expect("groups form no cycle")));
    }
    done
}

fn readers(groups: &Groups<'_>) -> HashMap<Val, BTreeSet<GroupId>> {
    let mut readers: HashMap<Val, BTreeSet<GroupId>> = HashMap::new();
    for (id, node) in groups.graph.nodes.iter().enumerate() {
        let Some(group) = groups.of[id] else { continue };
        for &arg in &node.args {
            readers.entry(behind_views(groups.graph, arg).0).or_default().insert(group);
        }
    }
    readers
}
