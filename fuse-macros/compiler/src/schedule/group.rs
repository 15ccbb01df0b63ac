//! Ops that share a kernel, over one domain.

use super::views::normal;
use crate::plan::{Kind, Level, View};
use crate::types::Dim;
use std::collections::BTreeSet;

/// A kernel under construction, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub usize);

/// What a group becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A generated kernel.
    Nest(Kind),
    /// A product of matrices with its epilogue.
    Matmul,
    /// One copy kernel an operand: joins, and writes over a part of a copy.
    Join,
    /// A copy kernel, then a scatter.
    Scatter,
}

/// Nodes that share a kernel.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it becomes.
    pub shape: Shape,
    /// The extents it iterates over, reduced axes last.
    pub domain: Vec<Dim>,
    /// How many of the last axes are reduced.
    pub reduced: usize,
    /// What it computes, in program order.
    pub members: Vec<Member>,
    /// Groups it reads from.
    pub deps: BTreeSet<GroupId>,
}

/// A node in a kernel.
#[derive(Clone, Debug)]
pub struct Member {
    /// The node.
    pub node: u32,
    /// How often it is computed.
    pub level: Level,
    /// Views that bring its result onto the domain (or onto the outer axes for `Row`, rank 0 for `All`).
    pub onto: Vec<View>,
}

impl Group {
    /// The extents that are not reduced.
    pub fn outer(&self) -> &[Dim] {
        &self.domain[..self.domain.len() - self.reduced]
    }

    /// The extents at a level.
    pub fn dims_at(&self, level: Level) -> &[Dim] {
        match level {
            Level::Elem => &self.domain,
            Level::Row => self.outer(),
            Level::All => &[],
        }
    }

    /// The member that is this node.
    pub fn member(&self, node: u32) -> Option<&Member> {
        self.members.iter().find(|m| m.node == node)
    }

    /// Whether points cannot use what rows (or columns) reduce to, because one row is spread over many blocks.
    pub fn is_single_phase(&self) -> bool {
        const ONE_BLOCK: i64 = 1 << 16;
        let extent = self.domain.iter().cloned().fold(Dim::Const(1), Dim::mul);
        let small = extent.as_const().is_some_and(|n| n <= ONE_BLOCK);
        match self.shape {
            Shape::Nest(Kind::Row) => self.outer().is_empty() && !small,
            shape => shape == Shape::Nest(Kind::Column),
        }
    }

    /// Views that bring values of these extents onto the rows; the two may differ by axes of extent 1.
    pub fn onto_rows(&self, dims: &[Dim]) -> Vec<View> {
        normal(dims, &[View::Reshape(self.outer().to_vec())])
    }

    /// Views from a member's own extents to the extents of a level at or inside its own.
    pub fn lift(&self, member: &Member, to: Level) -> Option<Vec<View>> {
        let mut views = member.onto.clone();
        let mut at = member.level;
        while at < to {
            let (from, next) = match at {
                Level::Row => (self.outer().len(), Level::Elem),
                // What all rows reduce to is known only after the last of them.
                Level::All | Level::Elem => return None,
            };
            let dims = self.dims_at(next);
            views.extend((from..dims.len()).map(|k| View::Unsqueeze(k as u32)));
            views.push(View::Expand(dims.to_vec()));
            at = next;
        }
        (at == to).then_some(views)
    }
}
