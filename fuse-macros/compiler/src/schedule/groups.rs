//! Which ops share a kernel.
//!
//! Nodes are taken in program order. Each joins the latest kernel that makes one of its operands, if its elements line
//! up with that kernel's domain and nothing would have to run both before and after it; else it starts a kernel of its
//! own. Afterwards kernels that walk the same domain over the same inputs are merged. Elementwise values that are not
//! kept by then are computed again where they are read, if that is cheaper than memory (see `lower`).

use super::facts::{axis_attr, is_draw, is_from_nothing, is_row_order, reduced_last, reduction};
use super::frame::{Axis, Frame, frame, keeps_axes};
use super::group::{Group, GroupId, Member, Shape};
use super::views::{behind_views, broadcast, inverse, normal};
use super::walk::reads_in_place;
use crate::graph::Graph;
use crate::op::{Class, Source, Val};
use crate::plan::{Decision, Kind, Level, View};
use crate::types::Dim;
use std::collections::BTreeSet;

/// The groups of a graph, and the reasons for them.
pub struct Groups<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// The groups; merged ones are left empty.
    pub list: Vec<Group>,
    /// Where a node is computed.
    pub of: Vec<Option<GroupId>>,
    /// Why.
    pub decisions: Vec<Decision>,
}

/// How a node would sit in a group.
struct Fit {
    level: Level,
    onto: Vec<View>,
    deps: BTreeSet<GroupId>,
}

impl<'g> Groups<'g> {
    /// Groups the nodes of a graph.
    pub fn build(graph: &'g Graph) -> Self {
        let mut groups = Groups { graph, list: Vec::new(), of: vec![None; graph.nodes.len()], decisions: Vec::new() };
        for node in 0..graph.nodes.len() as u32 {
            groups.place(node);
        }
        super::merge::siblings(&mut groups);
        super::spill::run(&mut groups);
        groups
    }

    fn place(&mut self, node: u32) {
        match self.graph.nodes[node as usize].op.class {
            Class::Elementwise | Class::Gather => self.place_elementwise(node),
            Class::Source(Source::Uniform | Source::Normal) => self.place_elementwise(node),
            Class::Reduce(_) => self.place_reduction(node),
            Class::Scan(_) => self.place_scan(node),
            Class::Matmul => self.start(node, Shape::Matmul, self.result(node).to_vec(), 0, Level::Elem),
            Class::Join | Class::Write => self.start(node, Shape::Join, self.result(node).to_vec(), 0, Level::Elem),
            Class::Scatter => self.start(node, Shape::Scatter, self.result(node).to_vec(), 0, Level::Elem),
            Class::View(_) | Class::Source(_) => {}
            Class::Composite | Class::Host => unreachable!("composites are opened and host ops break the graph"),
        }
    }

    fn result(&self, node: u32) -> &'g [Dim] {
        &self.graph.nodes[node as usize].outs[0].dims
    }

    fn place_elementwise(&mut self, node: u32) {
        for id in self.candidates(node) {
            if let Some(fit) = self.fit_elementwise(node, id) {
                return self.join(node, id, fit);
            }
        }
        let domain = self.result(node).to_vec();
        self.start(node, Shape::Nest(Kind::Map), domain, 0, Level::Elem);
    }

    fn place_reduction(&mut self, node: u32) {
        let info = &self.graph.nodes[node as usize];
        let (_, axes) = reduction(self.graph, node);
        let operand = self.graph.node(info.args[0]).outs[info.args[0].out as usize].dims.clone();
        let kind = if is_row_order(&axes, operand.len()) { Kind::Row } else { Kind::Column };
        for id in self.candidates(node) {
            if self.join_reduction(node, id, &operand, &axes, kind) {
                return;
            }
        }
        let order = reduced_last(operand.len(), &axes);
        let domain = order.iter().map(|&k| operand[k as usize].clone()).collect();
        self.start(node, Shape::Nest(kind), domain, axes.len(), Level::Row);
    }

    fn place_scan(&mut self, node: u32) {
        let axis = axis_attr(self.graph, node, 0);
        let dims = self.result(node);
        let order = reduced_last(dims.len(), &[axis]);
        let domain = order.iter().map(|&k| dims[k as usize].clone()).collect();
        self.start(node, Shape::Nest(Kind::Line), domain, 1, Level::Elem);
        self.list.last_mut().expect("just started").members[0].onto = normal(dims, &[View::Permute(order)]);
    }

    /// Starts a group with one member.
    fn start(&mut self, node: u32, shape: Shape, domain: Vec<Dim>, reduced: usize, level: Level) {
        let id = GroupId(self.list.len());
        let member = Member { node, level, onto: vec![] };
        let group = Group { shape, domain, reduced, members: vec![member], deps: BTreeSet::new() };
        self.list.push(group);
        let deps = self.direct_deps(node);
        self.list[id.0].deps = deps;
        self.of[node as usize] = Some(id);
    }

    fn join(&mut self, node: u32, id: GroupId, fit: Fit) {
        let group = &mut self.list[id.0];
        group.members.push(Member { node, level: fit.level, onto: fit.onto });
        group.deps.extend(fit.deps.into_iter().filter(|d| *d != id));
        self.of[node as usize] = Some(id);
        let info = &self.graph.nodes[node as usize];
        self.decisions.push(Decision {
            fused: true,
            reason: format!("`{}` runs in the kernel that makes its operand", info.op.name),
            place: info.place,
        });
    }

    /// Groups that make operands of a node, latest first. Draws are made again wherever they are read, so nothing but what
    /// is made of them alone joins them.
    fn candidates(&self, node: u32) -> Vec<GroupId> {
        let mut found = BTreeSet::new();
        for &arg in &self.graph.nodes[node as usize].args {
            let (root, _) = behind_views(self.graph, arg);
            if let Some(id) = self.of[root.node as usize] {
                found.insert(id);
            }
        }
        found.retain(|id| !self.is_made_of_draws(*id) || self.needs_only(node, *id));
        found.into_iter().rev().collect()
    }

    /// Whether a group reads no memory and draws random numbers.
    fn is_made_of_draws(&self, id: GroupId) -> bool {
        let members = &self.list[id.0].members;
        members.iter().any(|m| is_draw(self.graph, m.node)) && members.iter().all(|m| self.needs_only(m.node, id))
    }

    /// Whether the operands of a node are members of a group or made of nothing.
    fn needs_only(&self, node: u32, id: GroupId) -> bool {
        self.graph.nodes[node as usize].args.iter().all(|&arg| {
            let (root, _) = behind_views(self.graph, arg);
            self.of[root.node as usize] == Some(id) || is_from_nothing(self.graph, root)
        })
    }

    fn is_elementwise(&self, node: u32) -> bool {
        self.graph.nodes[node as usize].op.class == Class::Elementwise
    }

    /// The groups that make the operands of a node.
    pub fn direct_deps(&self, node: u32) -> BTreeSet<GroupId> {
        let args = &self.graph.nodes[node as usize].args;
        args.iter().filter_map(|&a| self.of[behind_views(self.graph, a).0.node as usize]).collect()
    }

    fn fit_elementwise(&self, node: u32, id: GroupId) -> Option<Fit> {
        let group = &self.list[id.0];
        let levels: &[Level] = match group.shape {
            Shape::Nest(Kind::Map) | Shape::Matmul => &[Level::Elem],
            Shape::Nest(Kind::Row) => &[Level::Elem, Level::Row, Level::All],
            Shape::Nest(Kind::Column) => &[Level::Row],
            Shape::Nest(Kind::Line) | Shape::Join | Shape::Scatter => &[],
        };
        levels.iter().find_map(|&level| {
            let onto = self.onto(node, group, level)?;
            self.fit(node, id, level, onto)
        })
    }

    /// The views that would bring a node's result onto a level of a group, if its extents line up.
    fn onto(&self, node: u32, group: &Group, level: Level) -> Option<Vec<View>> {
        let dims = self.result(node);
        if level == Level::All && !group.members.iter().any(|m| m.level == Level::All) {
            return None;
        }
        let target = group.dims_at(level);
        if dims == target {
            return Some(vec![]);
        }
        if level == Level::Row && self.is_keepdim(dims, group) {
            return Some(normal(dims, &[View::Reshape(target.to_vec())]));
        }
        if level == Level::Elem { self.permuted_onto(node, group) } else { None }
    }

    /// Whether extents are those of a group's input with 1 for every reduced axis.
    fn is_keepdim(&self, dims: &[Dim], group: &Group) -> bool {
        let outer = group.outer();
        let kept: Vec<&Dim> = dims.iter().filter(|d| **d != Dim::Const(1)).collect();
        let wanted: Vec<&Dim> = outer.iter().filter(|d| **d != Dim::Const(1)).collect();
        dims.len() == group.domain.len() && kept == wanted
    }

    /// A node that reads a member only through a transposition runs in the member's order and stores transposed.
    fn permuted_onto(&self, node: u32, group: &Group) -> Option<Vec<View>> {
        let dims = self.result(node);
        self.graph.nodes[node as usize].args.iter().find_map(|&arg| {
            let (root, views) = behind_views(self.graph, arg);
            let member = group.member(root.node)?;
            let from = &self.graph.node(root).outs[root.out as usize].dims;
            let order = permutation(&frame(from, &views)?)?;
            let onto = normal(dims, &[&[View::Permute(inverse(&order))], member.onto.as_slice()].concat());
            (super::frame::dims_after(dims, &onto) == group.domain).then_some(onto)
        })
    }

    /// Whether a node can sit in a group: its operands line up or come from elsewhere, and no cycle arises.
    fn fit(&self, node: u32, id: GroupId, level: Level, onto: Vec<View>) -> Option<Fit> {
        let mut deps = BTreeSet::new();
        let info = &self.graph.nodes[node as usize];
        let dims = self.result(node);
        if info.op.class == Class::Gather && (level == Level::All || !keeps_axes(dims, &onto)) {
            return None;
        }
        for (k, &arg) in info.args.iter().enumerate() {
            let from = &self.graph.node(arg).outs[arg.out as usize].dims;
            let stored = info.op.class == Class::Gather && k == 0;
            let chain = [broadcast(from, if stored { from } else { dims }), onto.clone()].concat();
            if stored {
                let (root, _) = behind_views(self.graph, arg);
                if self.of[root.node as usize] == Some(id) {
                    return None;
                }
                deps.extend(self.of[root.node as usize]);
            } else if !self.reach(arg, &chain, level, id, &mut deps) {
                return None;
            }
        }
        let cyclic = deps.iter().any(|&d| d != id && self.depends(d, id));
        (!cyclic).then_some(Fit { level, onto, deps })
    }

    /// Follows an operand to what it is made from. False if it needs a member of the group at other positions.
    fn reach(&self, val: Val, chain: &[View], level: Level, id: GroupId, deps: &mut BTreeSet<GroupId>) -> bool {
        let (root, views) = behind_views(self.graph, val);
        let chain = [views.as_slice(), chain].concat();
        let Some(owner) = self.of[root.node as usize] else { return true };
        if owner != id {
            deps.insert(owner);
            return true;
        }
        let group = &self.list[id.0];
        let member = group.member(root.node).expect("the owner has it");
        if member.level == Level::Row && level == Level::Elem && group.is_single_phase() {
            return false;
        }
        // What all rows together reduce to is known after the last row.
        if member.level == Level::All && level != Level::All {
            return false;
        }
        if lines_up(self.graph, root, group, member, &chain, level) {
            return true;
        }
        if !self.is_elementwise(root.node) || !reads_in_place(self.graph, root, &chain) {
            return false;
        }
        let dims = self.result(root.node);
        self.graph.nodes[root.node as usize].args.iter().all(|&arg| {
            let from = &self.graph.node(arg).outs[arg.out as usize].dims;
            let chain = [broadcast(from, dims), chain.clone()].concat();
            self.reach(arg, &chain, level, id, deps)
        })
    }

    fn join_reduction(&mut self, node: u32, id: GroupId, operand: &[Dim], axes: &[usize], kind: Kind) -> bool {
        let arg = self.graph.nodes[node as usize].args[0];
        let group = &self.list[id.0];
        let all_rows = group.shape == Shape::Nest(Kind::Row)
            && axes.len() == operand.len()
            && !operand.is_empty()
            && operand == group.outer();
        if all_rows && let Some(fit) = self.fit_operand(arg, &[], id, Level::Row) {
            self.join(node, id, Fit { level: Level::All, ..fit });
            return true;
        }
        let order = reduced_last(operand.len(), axes);
        let domain: Vec<Dim> = order.iter().map(|&k| operand[k as usize].clone()).collect();
        let same_rows = group.shape == Shape::Nest(kind) && group.domain == domain && group.reduced == axes.len();
        let from_map = group.shape == Shape::Nest(Kind::Map) && kind == Kind::Row && group.domain == domain;
        if !(same_rows || from_map) {
            return false;
        }
        let chain = normal(operand, &[View::Permute(order)]);
        let Some(fit) = self.fit_operand(arg, &chain, id, Level::Elem) else { return false };
        let group = &mut self.list[id.0];
        (group.shape, group.reduced) = (Shape::Nest(kind), axes.len());
        self.join(node, id, Fit { level: Level::Row, ..fit });
        true
    }

    /// Whether a reduction's operand lines up with a level of a group.
    fn fit_operand(&self, arg: Val, chain: &[View], id: GroupId, level: Level) -> Option<Fit> {
        let mut deps = BTreeSet::new();
        let fits = self.reach(arg, chain, level, id, &mut deps);
        let cyclic = deps.iter().any(|&d| d != id && self.depends(d, id));
        (fits && !cyclic).then_some(Fit { level, onto: vec![], deps })
    }

    /// Whether every operand of every member lines up with the group or comes from elsewhere.
    pub fn is_sound(&self, id: GroupId) -> bool {
        self.list[id.0].members.iter().all(|member| {
            let node = &self.graph.nodes[member.node as usize];
            let mut deps = BTreeSet::new();
            match node.op.class {
                Class::Reduce(_) if member.level == Level::All => {
                    let operand = &self.graph.node(node.args[0]).outs[node.args[0].out as usize].dims;
                    let rows = self.list[id.0].onto_rows(operand);
                    self.reach(node.args[0], &rows, Level::Row, id, &mut deps)
                }
                Class::Reduce(_) => {
                    let (_, axes) = reduction(self.graph, member.node);
                    let operand = &self.graph.node(node.args[0]).outs[node.args[0].out as usize].dims;
                    let order = normal(operand, &[View::Permute(reduced_last(operand.len(), &axes))]);
                    self.reach(node.args[0], &order, Level::Elem, id, &mut deps)
                }
                _ => self.fit(member.node, id, member.level, member.onto.clone()).is_some(),
            }
        })
    }

    /// Whether one group runs after another.
    pub fn depends(&self, later: GroupId, earlier: GroupId) -> bool {
        let mut stack = vec![later];
        let mut seen = BTreeSet::new();
        while let Some(id) = stack.pop() {
            if id == earlier {
                return true;
            }
            if seen.insert(id) {
                stack.extend(self.list[id.0].deps.iter().copied());
            }
        }
        false
    }
}

/// Whether a member, read under a chain at a level, is read exactly where it is computed.
pub fn lines_up(graph: &Graph, val: Val, group: &Group, member: &Member, chain: &[View], level: Level) -> bool {
    let dims = &graph.node(val).outs[val.out as usize].dims;
    let Some(lift) = group.lift(member, level) else { return false };
    matches!((frame(dims, chain), frame(dims, &lift)), (Some(read), Some(made)) if read == made)
}

/// The order a frame permutes a value's axes in, if it does nothing else.
fn permutation(frame: &Frame) -> Option<Vec<u32>> {
    let axis = |axis: &Axis| if let Axis::Of(k) = axis { Some(*k as u32) } else { None };
    let order: Option<Vec<u32>> = frame.iter().map(axis).collect();
    let order = order?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    (0..).zip(&sorted).all(|(k, &axis)| k == axis).then_some(order)
}
