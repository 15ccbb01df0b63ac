//! One text for many layouts.
//!
//! [`Variant::choose`] gives every layout the text that is best for it: each length of rows and each alignment may have one
//! of its own, and a sweep over sizes would compile without bound. So a layout may also be run by a text that was made for
//! another one, if that [serves](Variant::serves) it, and two texts can be [joined](Variant::join) to one that serves
//! whatever either was made for, point by point. All give the same bits, but of products and attention, whose sums depend on
//! the tiles.

use super::product::{FEW_ROWS, SLIM_ROWS};
use super::walk::keep_up_to;
use super::warps::has_few;
use super::{Access, Geometry, Lie, Step, THREADS, Variant, Walk};
use crate::plan::{Kernel, Kind};

impl Variant {
    /// Whether this text runs a layout whose own variant is `best`, over its collapsed axes, see [`Geometry::padded`].
    pub fn serves(&self, kernel: &Kernel, best: &Variant, axes: &Geometry) -> bool {
        let room = self.outer >= best.outer && self.inner >= best.inner && (self.wide || !best.wide);
        room && self.accesses_serve(kernel, best, axes) && self.steps_serve(best) && self.walk_serves(best, axes)
    }

    /// The text for any layout that one of the two is for.
    pub fn join(&self, kernel: &Kernel, other: &Variant) -> Variant {
        Variant {
            outer: self.outer.max(other.outer),
            inner: self.inner.max(other.inner),
            vec: 1,
            steps: self.steps.iter().map(|step| if *step == Step::Across { *step } else { Step::Apart }).collect(),
            wide: self.wide || other.wide,
            walk: self.joined_walk(kernel, other),
        }
    }

    /// A joined text for any layout that asks for the same kind of grid.
    pub fn for_all(&self, kernel: &Kernel) -> Variant {
        let (domain, reduced) = (kernel.domain.len(), kernel.reduced as usize);
        let walk = match self.walk {
            Walk::Product { tile, .. } => Walk::Product { tile, left: Lie::Apart, right: Lie::Apart },
            Walk::Thirds { columns, shares, .. } => {
                Walk::Thirds { columns, shares, left: Lie::Apart, right: Lie::Apart }
            }
            Walk::Strips { .. } => Walk::Strips { rows: FEW_ROWS, right: Lie::Apart },
            Walk::Slim { columns, right, .. } => Walk::Slim { rows: SLIM_ROWS, columns, left: Lie::Apart, right },
            Walk::Keep { .. } => Walk::Stream { team: THREADS },
            walk => walk,
        };
        let inner = if self.inner > 0 { self.inner.max(reduced) } else { 0 };
        Variant { outer: self.outer.max(domain - reduced), inner, wide: true, walk, ..self.clone() }
    }

    /// Whether there is such a text: a row that many blocks share, operands that are turned, strips of a product and floats on
    /// tensor cores ask for another grid, and heads of another size for other registers.
    pub fn joins(&self, other: &Variant) -> bool {
        let grid = |variant: &Variant| match variant.walk {
            Walk::Split => 1,
            Walk::Strips { .. } => 2,
            Walk::Thirds { .. } => 3,
            // There is none for operands that lie anyhow.
            Walk::Halves { left, right, .. } => 4 + 3 * left as u8 + right as u8,
            // How many warps share a sum decides its order, and how many columns they have its speed.
            Walk::Slim { columns, right, .. } => 13 + 8 * right as u8 + columns.ilog2() as u8,
            _ => 0,
        };
        // What may differ is left out.
        let heads = |variant: &Variant| match variant.walk {
            Walk::Attention { part, depth, columns, keys, is_causal, .. } => {
                Some(Walk::Attention { part, depth, columns, groups: 0, keys, is_causal })
            }
            Walk::Warps { part, depth, columns, rows, keys, pieces, is_causal, keeps } => {
                let rows = if has_few(rows) { rows } else { 0 };
                Some(Walk::Warps { part, depth, columns, rows, keys, pieces, is_causal, keeps })
            }
            _ => None,
        };
        grid(self) == grid(other) && heads(self) == heads(other) && self.turned().eq(other.turned())
    }

    /// Accesses of several points need them where the layout has them, and whole ones unless a map has one axis.
    fn accesses_serve(&self, kernel: &Kernel, best: &Variant, axes: &Geometry) -> bool {
        let tail = kernel.kind == Kind::Map && best.outer == 1 && self.outer > 1;
        let whole = |extent: &i64| extent % i64::from(self.vec) == 0;
        self.vec <= best.vec && (!tail || axes.outer.last().is_some_and(whole)) && (self.vec == 1 || self.inner <= 1)
    }

    fn steps_serve(&self, best: &Variant) -> bool {
        let mut pairs = self.steps.iter().zip(&best.steps);
        self.turned().eq(best.turned()) && pairs.all(|(own, best)| own == best || *own == Step::Apart)
    }

    fn walk_serves(&self, best: &Variant, axes: &Geometry) -> bool {
        let lies = |own: Lie, best: Lie| own == best || own == Lie::Apart;
        match (self.walk, best.walk) {
            (Walk::Keep { whole: true, .. }, _) => self.row() == Some(axes.len()),
            (Walk::Keep { .. }, _) => self.row().is_some_and(|most| axes.len() <= most),
            (Walk::Stream { .. }, Walk::Keep { .. } | Walk::Resident { .. } | Walk::Stream { .. }) => true,
            (Walk::Tiled { tile: own }, Walk::Tiled { tile }) => own <= tile,
            (Walk::Product { left: l, right: r, .. }, Walk::Product { left, right, .. }) => {
                lies(l, left) && lies(r, right)
            }
            (Walk::Strips { rows: own, right: r }, Walk::Strips { rows, right }) => own >= rows && lies(r, right),
            (Walk::Slim { rows: own, left: l, .. }, Walk::Slim { rows, left, .. }) => {
                self.joins(best) && own >= rows && lies(l, left)
            }
            (Walk::Thirds { left: l, right: r, .. }, Walk::Thirds { left, right, .. }) => {
                lies(l, left) && lies(r, right)
            }
            (Walk::Halves { left: l, right: r, .. }, Walk::Halves { left, right, .. }) => (l, r) == (left, right),
            // Warpgroups beyond the last query have nothing to write; one alone takes twice as long for many queries.
            (Walk::Attention { groups: own, .. }, Walk::Attention { groups, .. }) => {
                self.joins(best) && (own > 1 || groups == 1)
            }
            (Walk::Warps { .. }, Walk::Warps { .. }) => self.joins(best),
            (own, best) => own == best,
        }
    }

    /// The walk that serves both. A row in shared memory is of one length; one in registers of any up to a bound.
    fn joined_walk(&self, kernel: &Kernel, other: &Variant) -> Walk {
        let lie = |own: Lie, other: Lie| if own == other { own } else { Lie::Apart };
        match (self.walk, other.walk) {
            (Walk::Keep { .. } | Walk::Stream { .. } | Walk::Resident { .. }, _) => {
                let most = self.row().zip(other.row()).map(|(own, other)| own.max(other));
                most.and_then(|most| keep_up_to(most, kernel)).unwrap_or(Walk::Stream { team: THREADS })
            }
            (Walk::Tiled { tile: own }, Walk::Tiled { tile }) => Walk::Tiled { tile: own.min(tile) },
            (Walk::Product { tile: own, left: l, right: r }, Walk::Product { tile, left, right }) => {
                Walk::Product { tile: own.min(tile), left: lie(l, left), right: lie(r, right) }
            }
            (
                Walk::Thirds { columns: own, shares: one, left: l, right: r },
                Walk::Thirds { columns, shares, left, right },
            ) => {
                let (left, right) = (lie(l, left), lie(r, right));
                Walk::Thirds { columns: own.min(columns), shares: one || shares, left, right }
            }
            (Walk::Halves { columns: own, left, right }, Walk::Halves { columns, .. }) => {
                Walk::Halves { columns: own.min(columns), left, right }
            }
            (Walk::Strips { rows: own, right: r }, Walk::Strips { rows, right }) => {
                Walk::Strips { rows: own.max(rows), right: lie(r, right) }
            }
            (Walk::Slim { rows: own, columns, left: l, right }, Walk::Slim { rows, left, .. }) => {
                Walk::Slim { rows: own.max(rows), columns, left: lie(l, left), right }
            }
            (
                Walk::Attention { part, depth, columns, groups: own, keys, is_causal },
                Walk::Attention { groups, .. },
            ) => Walk::Attention { part, depth, columns, groups: own.max(groups), keys, is_causal },
            (own, _) => own,
        }
    }

    /// The longest row that is kept in registers.
    fn row(&self) -> Option<i64> {
        match self.walk {
            Walk::Keep { team, items, .. } => Some(i64::from(team * items * self.vec)),
            _ => None,
        }
    }

    /// Which operands are turned.
    pub(super) fn turned(&self) -> impl Iterator<Item = bool> {
        self.steps.iter().map(|step| *step == Step::Across)
    }
}

impl Geometry {
    /// Collapsed axes for a text with so many outer and inner ones: axes of extent 1 come before the others of their group.
    pub fn padded(&self, outer: usize, inner: usize) -> Geometry {
        let (before, between) = (outer - self.outer.len(), inner - self.inner.len());
        let pad = |list: &[i64], count: usize, with: i64| [vec![with; count], list.to_vec()].concat();
        let strides = |all: &[i64]| match all.split_at_checked(self.outer.len()) {
            None => vec![],
            Some((first, [])) => pad(first, before, 0),
            Some((first, rest)) => [pad(first, before, 0), pad(rest, between, 0)].concat(),
        };
        let padded = |access: &Access| Access { strides: strides(&access.strides), ..access.clone() };
        Geometry {
            outer: pad(&self.outer, before, 1),
            inner: pad(&self.inner, between, 1),
            operands: self.operands.iter().map(padded).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{H200, kernel, rows, softmax};
    use super::*;

    #[test]
    fn a_joined_text_serves_what_its_parts_were_for() {
        let plan = softmax();
        let kernel = kernel(&plan);
        let layouts: Vec<Geometry> = [(1, 64), (1000, 64), (4, 1), (0, 5), (7, 0), (1 << 18, 1 << 15), (3, 771)]
            .map(|(outer, len)| rows(outer, len, 0).collapse(kernel))
            .into();
        let best: Vec<Variant> = layouts.iter().map(|axes| Variant::choose(kernel, axes, &H200)).collect();
        for (axes, own) in layouts.iter().zip(&best) {
            for other in &best {
                let joined = own.join(kernel, other);
                assert!(joined.serves(kernel, own, axes), "{joined:?} for {axes:?}");
                assert!(joined.for_all(kernel).serves(kernel, own, axes), "{joined:?} for {axes:?}");
            }
        }
    }

    #[test]
    fn a_row_kept_in_registers_serves_what_has_room_in_them() {
        let plan = softmax();
        let kernel = kernel(&plan);
        let axes = |len: i64| rows(1000, len, 0).collapse(kernel);
        let text = |len: i64| Variant::choose(kernel, &axes(len), &H200);
        let serves = |own: i64, other: i64| text(own).serves(kernel, &text(other), &axes(other));
        // 768 is divided among the threads evenly, 1000 is not.
        assert!(serves(768, 768) && !serves(768, 512) && serves(1000, 512) && !serves(1000, 4096));
        // Of 1001 halves a row the second starts at an odd address.
        assert!(!serves(1000, 1001) && serves(1001, 1000));
    }

    #[test]
    fn padding_keeps_every_point_where_it_is() {
        let padded = rows(1000, 768, 0).padded(3, 2);
        assert_eq!((padded.outer, padded.inner), (vec![1, 1, 1000], vec![1, 768]));
        assert_eq!(padded.operands[0].strides, [0, 0, 768, 0, 1]);
    }
}
