//! Merges kernels that walk the same domain over the same inputs, so that shared inputs are read once.

use super::group::{Group, GroupId, Shape};
use super::groups::Groups;
use super::views::{behind_views, normal};
use crate::op::{Class, Source, Val};
use crate::plan::{Decision, Kind, Level, View};
use crate::types::Dim;
use std::collections::BTreeSet;

/// Beyond this many values a kernel runs out of registers sooner than it saves reads.
const MAX_MEMBERS: usize = 160;

/// Merges what can be merged, earlier pairs first, until nothing changes: a merge can put two others next to each other.
pub fn siblings(groups: &mut Groups<'_>) {
    while one_pass(groups) {}
}

fn one_pass(groups: &mut Groups<'_>) -> bool {
    let mut merged = false;
    for early in 0..groups.list.len() {
        for late in early + 1..groups.list.len() {
            let (a, b) = (GroupId(early), GroupId(late));
            merged |= try_merge(groups, a, b, over_one_domain) || try_merge(groups, a, b, into_rows);
        }
    }
    merged
}

/// How two groups become one: the new group, without its dependencies.
pub type Union = fn(&Groups<'_>, &Group, &Group) -> Option<Group>;

/// Merges two groups if they share memory traffic, nothing has to run between them, and every operand still lines up.
pub fn try_merge(groups: &mut Groups<'_>, a: GroupId, b: GroupId, union: Union) -> bool {
    let (early, late) = (&groups.list[a.0], &groups.list[b.0]);
    if early.members.is_empty() || late.members.is_empty() || early.members.len() + late.members.len() > MAX_MEMBERS {
        return false;
    }
    let touching = late.deps.contains(&a)
        || !reads(groups, early).is_disjoint(&reads(groups, late))
        || are_columns_of_one_pass(groups, early, late);
    let Some(mut merged) = union(groups, early, late).filter(|_| touching && !between(groups, a, b)) else {
        return false;
    };
    merged.deps = early.deps.union(&late.deps).copied().filter(|d| *d != a && *d != b).collect();
    merged.members.sort_by_key(|m| m.node);
    let undo = (groups.list[a.0].clone(), groups.list[b.0].clone());
    let moved: Vec<u32> = undo.1.members.iter().map(|m| m.node).collect();
    groups.list[a.0] = merged;
    groups.list[b.0].members.clear();
    moved.iter().for_each(|&m| groups.of[m as usize] = Some(a));
    if !groups.is_sound(a) {
        (groups.list[a.0], groups.list[b.0]) = undo;
        moved.iter().for_each(|&m| groups.of[m as usize] = Some(b));
        return false;
    }
    adopt(groups, a, b, moved[0]);
    true
}

/// Whether two groups of column sums are made of the same values, as the gradients of a norm's weight and bias are. Sums
/// that only happen to have the same extents stay apart: waiting for each other, they would keep their operands in memory.
fn are_columns_of_one_pass(groups: &Groups<'_>, a: &Group, b: &Group) -> bool {
    let columns = Shape::Nest(Kind::Column);
    let shared = || !sources(groups, a).is_disjoint(&sources(groups, b));
    a.shape == columns && b.shape == columns && a.domain == b.domain && shared()
}

/// The values of a group's size that what it reads is made of, a few ops back.
fn sources(groups: &Groups<'_>, group: &Group) -> BTreeSet<Val> {
    const OPS: usize = 4;
    let size = |dims: &[Dim]| dims.iter().cloned().fold(Dim::Const(1), Dim::mul);
    let all = size(&group.domain);
    let mut found = reads(groups, group);
    let mut newest = found.clone();
    for _ in 0..OPS {
        let made = newest.iter().filter(|val| groups.graph.node(**val).op.class == Class::Elementwise);
        let args = made.flat_map(|val| &groups.graph.node(*val).args);
        newest = args.map(|&arg| behind_views(groups.graph, arg).0).collect();
        found.extend(newest.iter().copied());
    }
    found.retain(|val| size(&groups.graph.node(*val).outs[val.out as usize].dims) == all);
    found
}

/// Whether some third group would have to run after one of the two and before the other.
fn between(groups: &Groups<'_>, a: GroupId, b: GroupId) -> bool {
    let through = |late: GroupId, early: GroupId| {
        groups.list[late.0].deps.iter().any(|&d| d != early && groups.depends(d, early))
    };
    through(b, a) || through(a, b)
}

fn adopt(groups: &mut Groups<'_>, into: GroupId, from: GroupId, first: u32) {
    groups.list[from.0].deps.clear();
    for other in &mut groups.list {
        if other.deps.remove(&from) {
            other.deps.insert(into);
        }
    }
    let node = &groups.graph.nodes[first as usize];
    let reason = format!("`{}` shares its inputs with a kernel over the same extents", node.op.name);
    groups.decisions.push(Decision { fused: true, reason, place: node.place });
}

/// Two groups over the same domain.
pub fn over_one_domain(_: &Groups<'_>, a: &Group, b: &Group) -> Option<Group> {
    use Kind::{Column, Map, Row};
    let (shape, reduced) = match (a.shape, b.shape) {
        (Shape::Nest(Map), Shape::Nest(Map)) => (a.shape, 0),
        (Shape::Nest(Row), Shape::Nest(Map)) => (a.shape, a.reduced),
        (Shape::Nest(Map), Shape::Nest(Row)) => (b.shape, b.reduced),
        (Shape::Nest(Row), Shape::Nest(Row)) | (Shape::Nest(Column), Shape::Nest(Column)) if a.reduced == b.reduced => {
            (a.shape, a.reduced)
        }
        _ => return None,
    };
    let members = [a.members.as_slice(), &b.members].concat();
    (a.domain == b.domain).then(|| Group { shape, reduced, members, ..a.clone() })
}

/// A group over the rows of another: its points become rows, and what it reduces to becomes one value for all rows.
fn into_rows(groups: &Groups<'_>, a: &Group, b: &Group) -> Option<Group> {
    let (rows, points) = if has_rows_like(a, b) {
        (a, b)
    } else if has_rows_like(b, a) {
        (b, a)
    } else {
        return None;
    };
    let outer = rows.outer().to_vec();
    let mut members = rows.members.clone();
    for member in &points.members {
        let mut member = member.clone();
        match member.level {
            Level::Elem => {
                let dims = &groups.graph.nodes[member.node as usize].outs[0].dims;
                let onto = [member.onto.as_slice(), &[View::Reshape(outer.clone())]].concat();
                (member.level, member.onto) = (Level::Row, normal(dims, &onto));
            }
            _ => member.level = Level::All,
        }
        members.push(member);
    }
    Some(Group { members, ..rows.clone() })
}

fn has_rows_like(rows: &Group, points: &Group) -> bool {
    let ones = |dims: &[Dim]| dims.iter().filter(|d| **d != Dim::Const(1)).cloned().collect::<Vec<_>>();
    let whole = points.shape == Shape::Nest(Kind::Row) && points.outer().is_empty();
    rows.shape == Shape::Nest(Kind::Row)
        && !rows.outer().is_empty()
        && (points.shape == Shape::Nest(Kind::Map) || whole)
        && ones(rows.outer()) == ones(&points.domain)
        && points.members.iter().all(|m| m.level != Level::All)
}

/// The values a group reads from memory: inputs, and what other groups make.
fn reads(groups: &Groups<'_>, group: &Group) -> BTreeSet<Val> {
    let graph = groups.graph;
    let args = group.members.iter().flat_map(|m| &graph.nodes[m.node as usize].args);
    let roots = args.map(|&a| behind_views(graph, a).0);
    let outside = roots.filter(|r| group.member(r.node).is_none());
    outside.filter(|&r| !matches!(graph.node(r).op.class, Class::Source(kind) if kind != Source::Input)).collect()
}
