//! Moves the end of a product's epilogue to the rows that read it.
//!
//! A library multiplies and adds a bias; what follows would be a kernel of its own between the product and its readers.
//! Where a softmax or a norm reads it, that kernel does the rest while it reads the product, and memory is passed once
//! less. Our own product loses nothing: the rows read what it stores either way.

use super::group::{Group, GroupId, Shape};
use super::groups::Groups;
use super::matmul::Reach;
use super::merge::{over_one_domain, try_merge};
use crate::plan::Kind;
use std::collections::BTreeSet;

/// Tries every product.
pub fn run(groups: &mut Groups<'_>) {
    for id in (0..groups.list.len()).map(GroupId) {
        if groups.list[id.0].shape == Shape::Matmul {
            spill(groups, id);
        }
    }
}

fn spill(groups: &mut Groups<'_>, product: GroupId) {
    let taken = Reach::of(groups.graph, &groups.list[product.0]).nodes;
    if taken.len() == groups.list[product.0].members.len() {
        return;
    }
    let (list, of, decisions) = (groups.list.clone(), groups.of.clone(), groups.decisions.len());
    let rest = split(groups, product, &taken);
    let rows: Vec<GroupId> = (0..rest.0).map(GroupId).filter(|id| is_rows(&groups.list[id.0])).collect();
    if !rows.into_iter().any(|rows| try_merge(groups, rest, rows, over_one_domain)) {
        (groups.list, groups.of) = (list, of);
        groups.decisions.truncate(decisions);
    }
}

fn is_rows(group: &Group) -> bool {
    group.shape == Shape::Nest(Kind::Row) && !group.members.is_empty()
}

/// Makes what a library does not take a group of its own.
fn split(groups: &mut Groups<'_>, product: GroupId, taken: &[u32]) -> GroupId {
    let rest = GroupId(groups.list.len());
    let group = &mut groups.list[product.0];
    let (kept, moved) = group.members.iter().cloned().partition(|member| taken.contains(&member.node));
    group.members = kept;
    let moved = Group { shape: Shape::Nest(Kind::Map), members: moved, deps: BTreeSet::new(), ..group.clone() };
    moved.members.iter().for_each(|member| groups.of[member.node as usize] = Some(rest));
    for other in groups.list.iter_mut().filter(|other| other.deps.contains(&product)) {
        other.deps.insert(rest);
    }
    groups.list.push(moved);
    for id in [product, rest] {
        let members = groups.list[id.0].members.clone();
        let deps = members.iter().flat_map(|member| groups.direct_deps(member.node));
        groups.list[id.0].deps = deps.filter(|dep| *dep != id).collect();
    }
    rest
}
