//! Why an op does not run in the kernel that makes its operand, for the report.

use super::group::{Group, GroupId, Shape};
use super::groups::Groups;
use super::views::behind_views;
use crate::graph::Graph;
use crate::op::{Class, Val};
use crate::plan::{Decision, Kind};

/// A reason for every value that is stored for another kernel to read, in program order; `stored` says which are.
pub fn find(groups: &Groups<'_>, stored: impl Fn(Val) -> bool) -> Vec<Decision> {
    let graph = groups.graph;
    let mut found = Vec::new();
    for (id, node) in graph.nodes.iter().enumerate() {
        let Some(reader) = groups.of[id] else { continue };
        for (k, &arg) in node.args.iter().enumerate() {
            let val = behind_views(graph, arg).0;
            let Some(maker) = groups.of[val.node as usize].filter(|maker| *maker != reader && stored(val)) else {
                continue;
            };
            let reason = reason(groups, (id as u32, k), reader, (maker, val));
            let missed = Decision { fused: false, reason, place: node.place };
            if !found.contains(&missed) {
                found.push(missed);
            }
        }
    }
    found
}

/// Why operand `k` of a node comes through memory.
fn reason(groups: &Groups<'_>, (node, k): (u32, usize), reader: GroupId, (maker, val): (GroupId, Val)) -> String {
    let name = |node: u32| written(groups.graph, node);
    let (reads, made) = (name(node), name(val.node));
    let (late, early) = (&groups.list[reader.0], &groups.list[maker.0]);
    match (groups.graph.nodes[node as usize].op.class, early.shape) {
        (Class::Matmul, _) => {
            format!("`{reads}` reads its operands many times, so what `{made}` gives is stored first")
        }
        (Class::Gather, _) if k == 0 => {
            format!("`{reads}` reads at computed positions, so all of `{made}` is stored first")
        }
        (Class::Scan(_), _) => format!("`{reads}` goes along lines, in a kernel of its own"),
        (Class::Join | Class::Write | Class::Scatter, _) => {
            format!("`{reads}` copies what `{made}` gives, in kernels of its own")
        }
        (_, Shape::Nest(Kind::Line) | Shape::Join | Shape::Scatter) => {
            format!("nothing joins the kernel of `{made}`, so `{reads}` reads its result from memory")
        }
        (_, Shape::Matmul) if late.shape == Shape::Nest(Kind::Row) => {
            format!("`{reads}` wants whole rows, and `{made}` makes its result in tiles")
        }
        _ if early.is_single_phase() => format!("`{reads}` has to wait for all of `{made}`, which many blocks share"),
        _ if !same_points(late, early) => {
            format!("`{reads}` may run over other extents than `{made}`, unless `#[dims]` say that they are equal")
        }
        _ => format!("`{reads}` wants other elements of `{made}` than those its kernel has at hand"),
    }
}

/// A node as its user wrote it, on one line; the name of the op where it stands for no text.
fn written(graph: &Graph, node: u32) -> String {
    let info = &graph.nodes[node as usize];
    let text = graph.places.get(info.place as usize).map_or("", |place| place.text.as_str());
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { info.op.name.to_owned() } else { line }
}

/// Whether two groups walk the same points, whatever their order.
fn same_points(a: &Group, b: &Group) -> bool {
    let sorted = |group: &Group| {
        let mut extents: Vec<String> = group.domain.iter().map(|dim| dim.to_string()).collect();
        extents.sort();
        extents
    };
    sorted(a) == sorted(b)
}
