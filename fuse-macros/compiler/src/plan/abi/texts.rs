//! Which texts of a kernel are compiled, so that no sweep over sizes compiles without bound.
//!
//! The first layout a kernel meets gets the text that is best for it, because most programs only ever have one. Layouts
//! after it take a text that is there and serves them, or one that is made to serve them all; those that turn out to be
//! called often get texts of their own, so many and no more.

use super::{Geometry, Variant, is_turnable, splittable};
use crate::plan::{Kernel, Kind, Phases};
use crate::types::DType;

/// So many layouts of a kernel have a text of their own.
const OWN: usize = 8;

/// So many texts are made for all other layouts that ask for the same kind of grid, the last of them for whatever there may
/// be.
const SHARED: usize = 3;

/// Layouts of fewer points share texts however often they come: their launches take longer than what is done in them.
const SMALL: i64 = 1 << 14;

/// The texts of one kernel on one device.
#[derive(Debug, Default)]
pub struct Texts {
    /// Compiled before the process began.
    ahead: Vec<Variant>,
    own: Vec<Variant>,
    shared: Vec<Variant>,
}

/// What a layout asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The variant that [`Variant::choose`] or [`Variant::product`] gives it.
    pub best: &'a Variant,
    /// Its collapsed axes.
    pub axes: &'a Geometry,
    /// Whether it was called often enough to be worth a text of its own.
    pub often: bool,
    /// `dynamic` of the attribute: `false` gives every layout its own text, `true` none before it was called often.
    pub dynamic: Option<bool>,
}

/// What a layout gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The text, over axes of [`Geometry::padded`].
    pub variant: Variant,
    /// Whether the layout may get another one when it has been called often.
    pub may_change: bool,
}

impl Texts {
    /// The most texts there can be of a kernel on one device, unless `dynamic = false`.
    pub fn most(kernel: &Kernel) -> usize {
        let grids = match kernel.kind {
            Kind::Row if splittable(&Phases::of(kernel)) => 2,
            Kind::Map => 1 << kernel.leaves.iter().filter(|leaf| is_turnable(kernel, leaf)).count(),
            _ => 1,
        };
        OWN + SHARED * grids
    }

    /// The same of a product: plain tiles, strips of few rows, floats in thirds, and halves in either order of either
    /// operand, of few rows in strips of five widths.
    pub fn most_of_product(dtype: DType) -> usize {
        let grids = match dtype {
            DType::F32 => 3,
            // Of a generic type every instance has texts of its own, and those of halves are most.
            DType::F16 | DType::BF16 | DType::Param(_) | DType::Compute(_) => 10,
            DType::F64 | DType::F8E4M3 | DType::I32 | DType::I64 => 2,
            DType::U8 | DType::Bool => 1,
        };
        OWN + SHARED * grids
    }

    /// With texts that were compiled before.
    pub fn with(ahead: Vec<Variant>) -> Texts {
        Texts { ahead, ..Texts::default() }
    }

    /// The text for a layout where nothing can be compiled: one that was compiled before.
    pub fn compiled_before(&self, kernel: &Kernel, wish: Wish<'_>) -> Option<Variant> {
        let best = wish.best;
        let serving = self.ahead.iter().filter(|text| *text == best || text.serves(kernel, best, wish.axes));
        let any = self.ahead.iter().find(|text| text.runs_any(kernel));
        serving.max_by_key(|text| likeness(text, best)).or(any).cloned()
    }

    /// The text for a layout, which is there from now on.
    pub fn choose(&mut self, kernel: &Kernel, wish: Wish<'_>) -> Choice {
        let first = self.all().next().is_none() && wish.dynamic != Some(true);
        let room = self.own.len() < OWN && wish.axes.rows() * wish.axes.len() >= SMALL;
        if wish.dynamic == Some(false) || self.all().any(|text| text == wish.best) {
            return Choice { variant: wish.best.clone(), may_change: false };
        }
        if first || wish.often && room {
            self.own.push(wish.best.clone());
            return Choice { variant: wish.best.clone(), may_change: false };
        }
        let variant = self.serving(kernel, wish).cloned().unwrap_or_else(|| self.share(kernel, wish.best));
        Choice { variant, may_change: room && !wish.often }
    }

    fn all(&self) -> impl Iterator<Item = &Variant> {
        self.own.iter().chain(&self.shared).chain(&self.ahead)
    }

    /// The text most like the best one among those that serve a layout.
    fn serving(&self, kernel: &Kernel, wish: Wish<'_>) -> Option<&Variant> {
        let serving = self.all().filter(|text| text.serves(kernel, wish.best, wish.axes));
        serving.max_by_key(|text| likeness(text, wish.best))
    }

    /// Makes a text for a layout and all like it.
    fn share(&mut self, kernel: &Kernel, best: &Variant) -> Variant {
        let like = |text: &&Variant| text.joins(best);
        let joined = self.all().filter(like).fold(best.join(kernel, best), |all, text| all.join(kernel, text));
        let last = self.shared.iter().filter(like).count() + 1 >= SHARED;
        let variant = if last { joined.for_all(kernel) } else { joined };
        self.shared.push(variant.clone());
        variant
    }
}

/// How much a text that serves a layout is like the one that is best for it.
fn likeness(text: &Variant, best: &Variant) -> impl Ord + use<> {
    (text.walk == best.walk, text.vec, !text.wide)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{H200, kernel, rows, softmax, square, transpose_add};
    use super::*;
    use std::collections::HashSet;

    /// Asks for the text of a layout.
    fn ask(texts: &mut Texts, kernel: &Kernel, layout: &Geometry, often: bool, dynamic: Option<bool>) -> Choice {
        let axes = layout.collapse(kernel);
        let best = Variant::choose(kernel, &axes, &H200);
        let choice = texts.choose(kernel, Wish { best: &best, axes: &axes, often, dynamic });
        let text = &choice.variant;
        assert!(*text == best || text.serves(kernel, &best, &axes), "{text:?} for {best:?}");
        choice
    }

    /// How many texts layouts take that are called once each.
    fn count(kernel: &Kernel, layouts: impl IntoIterator<Item = Geometry>) -> usize {
        let mut texts = Texts::default();
        let ask = |layout| ask(&mut texts, kernel, &layout, false, None).variant;
        layouts.into_iter().map(ask).collect::<HashSet<_>>().len()
    }

    #[test]
    fn lengths_up_to_a_thousand_take_two_texts_and_all_there_are_take_four() {
        let plan = softmax();
        let lengths = |first: i64, most: i64| [first].into_iter().chain(0..=most).map(|len| rows(1000, len, 0));
        for first in [64, 72, 127, 512, 1000] {
            assert!(count(kernel(&plan), lengths(first, 1024)) <= 2, "{first}");
            assert!(count(kernel(&plan), lengths(first, 20_000)) <= 4, "{first}");
        }
    }

    #[test]
    fn views_at_any_offset_and_with_any_stride_take_a_third() {
        let plan = softmax();
        let offsets = (0..16).map(|offset| rows(1000, 768, offset));
        let strides = [[768, 1], [1, 1000], [0, 1], [800, 2], [0, 0]].map(|strides| {
            let mut layout = rows(1000, 768, 0);
            layout.operands[0].strides = strides.to_vec();
            layout
        });
        assert!(count(kernel(&plan), offsets.chain(strides)) <= 3);
    }

    #[test]
    fn small_tiles_serve_large_ones() {
        let plan = transpose_add();
        assert_eq!(count(kernel(&plan), [32, 4096, 40, 1000].map(square)), 1);
        // Where an operand is not turned after all, tiles are of no use.
        let mut plain = square(4096);
        plain.operands[1].strides = vec![4096, 1];
        assert_eq!(count(kernel(&plan), [square(32), plain]), 2);
    }

    #[test]
    fn what_is_called_often_gets_a_text_of_its_own_as_long_as_there_is_room() {
        let plan = softmax();
        let (kernel, mut texts) = (kernel(&plan), Texts::default());
        assert!(!ask(&mut texts, kernel, &rows(1000, 64, 0), false, None).may_change);
        assert!(ask(&mut texts, kernel, &rows(1000, 768, 0), false, None).may_change);
        let mut seen = HashSet::new();
        for len in 1..2000 {
            seen.insert(ask(&mut texts, kernel, &rows(1000, len, 0), true, None).variant);
        }
        assert!(seen.len() > OWN && texts.all().count() <= Texts::most(kernel), "{seen:#?}");
        assert!(!ask(&mut texts, kernel, &rows(1000, 5000, 0), false, None).may_change, "there is no room");
        let few = &rows(4, 64, 0);
        let mut texts = Texts::default();
        ask(&mut texts, kernel, &rows(4, 100, 2), false, None);
        assert!(!ask(&mut texts, kernel, few, true, None).may_change && texts.own.len() == 1, "it is not worth it");
    }

    #[test]
    fn the_attribute_decides_whether_layouts_have_texts_of_their_own() {
        let plan = softmax();
        let (kernel, mut texts) = (kernel(&plan), Texts::default());
        let own = |texts: &mut Texts, dynamic| {
            let chosen =
                [64, 768, 1000, 500].map(|len| ask(texts, kernel, &rows(1000, len, 0), false, dynamic).variant);
            HashSet::from(chosen).len()
        };
        assert_eq!(own(&mut texts, Some(false)), 4);
        assert_eq!(own(&mut Texts::default(), Some(true)), 1);
    }
}
