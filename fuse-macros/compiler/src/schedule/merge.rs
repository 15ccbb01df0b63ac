//! Merges kernels that walk the same domain over the same inputs, so that shared inputs are read once.

use super::groups::{Group, GroupId, Groups, Shape};
use super::views::behind_views;
use crate::op::{Class, Val};
use crate::plan::{Decision, Kind};
use std::collections::BTreeSet;

/// Beyond this many values a kernel runs out of registers sooner than it saves reads.
const MAX_MEMBERS: usize = 160;

/// Merges what can be merged, earlier pairs first.
pub fn siblings(groups: &mut Groups<'_>) {
    for early in 0..groups.list.len() {
        for late in early + 1..groups.list.len() {
            let (a, b) = (GroupId(early), GroupId(late));
            if mergeable(groups, a, b) {
                merge(groups, a, b);
            }
        }
    }
}

fn mergeable(groups: &Groups<'_>, a: GroupId, b: GroupId) -> bool {
    let (early, late) = (&groups.list[a.0], &groups.list[b.0]);
    !early.members.is_empty()
        && !late.members.is_empty()
        && merged_shape(early, late).is_some()
        && early.domain == late.domain
        && early.members.len() + late.members.len() <= MAX_MEMBERS
        && !reads(groups, early).is_disjoint(&reads(groups, late))
        && !groups.depends(b, a)
        && !groups.depends(a, b)
}

/// What two groups over one domain become together.
fn merged_shape(a: &Group, b: &Group) -> Option<(Shape, usize)> {
    use Kind::{Column, Map, Row};
    match (a.shape, b.shape) {
        (Shape::Nest(Map), Shape::Nest(Map)) => Some((a.shape, 0)),
        (Shape::Nest(Row), Shape::Nest(Map)) => Some((a.shape, a.reduced)),
        (Shape::Nest(Map), Shape::Nest(Row)) => Some((b.shape, b.reduced)),
        (Shape::Nest(Row), Shape::Nest(Row)) | (Shape::Nest(Column), Shape::Nest(Column)) => {
            (a.reduced == b.reduced).then_some((a.shape, a.reduced))
        }
        _ => None,
    }
}

fn merge(groups: &mut Groups<'_>, into: GroupId, from: GroupId) {
    let (shape, reduced) = merged_shape(&groups.list[into.0], &groups.list[from.0]).expect("checked before");
    let moved = std::mem::take(&mut groups.list[from.0].members);
    let deps = std::mem::take(&mut groups.list[from.0].deps);
    let first = &groups.graph.nodes[moved[0].node as usize];
    groups.decisions.push(Decision {
        fused: true,
        reason: format!("`{}` shares its inputs with a kernel over the same extents", first.op.name),
        place: first.place,
    });
    moved.iter().for_each(|m| groups.of[m.node as usize] = Some(into));
    let group = &mut groups.list[into.0];
    (group.shape, group.reduced) = (shape, reduced);
    group.members.extend(moved);
    group.members.sort_by_key(|m| m.node);
    group.deps.extend(deps);
    for other in &mut groups.list {
        if other.deps.remove(&from) {
            other.deps.insert(into);
        }
    }
}

/// The values a group reads from memory: inputs, and what other groups make.
fn reads(groups: &Groups<'_>, group: &Group) -> BTreeSet<Val> {
    let graph = groups.graph;
    let args = group.members.iter().flat_map(|m| &graph.nodes[m.node as usize].args);
    let roots = args.map(|&a| behind_views(graph, a).0);
    let outside = roots.filter(|r| group.member(r.node).is_none());
    outside.filter(|&r| !matches!(graph.node(r).op.class, Class::Source(_)) || graph.inputs.contains(&r)).collect()
}
