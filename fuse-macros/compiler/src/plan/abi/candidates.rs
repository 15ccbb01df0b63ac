//! The ways of walking a kernel that are worth timing: `mode = "max-autotune"` takes the fastest.
//!
//! All of a kernel compute the same bits: reductions have one order whoever walks them. Those of a product do not.

use super::product::{LARGE_TILE, SMALL_TILE};
use super::variant::Walked;
use super::walk::{BLOCK, LANES, keep_by};
use super::{Geometry, Target, Variant, Walk, hopper};
use crate::plan::{Kernel, Kind, Phases};
use crate::types::DType;
use serde::{Deserialize, Serialize};

/// A way of walking a kernel, in words that mean something for other sizes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Candidate {
    /// Consecutive points one access takes.
    pub vec: u32,
    /// How the points are shared among threads.
    pub way: Way,
}

/// How points are shared among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Way {
    /// The one way of the kind.
    Plain,
    /// So many threads keep a row in registers.
    Keep(u32),
    /// So many threads read a row once a phase.
    Stream(u32),
    /// A block keeps a row in shared memory.
    Resident,
    /// Several blocks share a row.
    Split,
    /// A block turns tiles of so many points along each axis.
    Tiled(u32),
    /// A block computes so many rows and columns of a product.
    Product(u32),
    /// A block computes so many columns of a product of floats at a time, on tensor cores.
    Thirds(u32),
    /// The same of halves.
    Halves(u32),
    /// Blocks compute strips of columns of a product of at most so many rows.
    Strips(u32),
}

/// Ways of multiplying that are not for few rows.
fn ways_in_tiles() -> impl Iterator<Item = Way> {
    let thirds = hopper::THIRDS.columns().map(Way::Thirds);
    thirds.chain(hopper::HALVES.columns().map(Way::Halves)).chain([LARGE_TILE, SMALL_TILE].map(Way::Product))
}

/// Threads that may share a row.
const TEAMS: [u32; 6] = [32, 64, 128, 256, 512, 1024];

impl Variant {
    /// The variants of a kernel that are worth timing, the one that [`Variant::choose`] gives first.
    pub fn candidates(kernel: &Kernel, axes: &Geometry, target: &Target) -> Vec<Variant> {
        let best = Variant::choose(kernel, axes, target);
        let widest = Walked::new(kernel, axes).widest;
        let vecs = |most: u32| [8, 4, 2, 1].into_iter().filter(move |vec| *vec <= most).take(3);
        let ways: Vec<Way> = match best.walk {
            Walk::Keep { .. } => TEAMS.map(Way::Keep).into(),
            Walk::Stream { .. } | Walk::Resident { .. } => {
                [Way::Resident].into_iter().chain(TEAMS[3..].iter().map(|team| Way::Stream(*team))).collect()
            }
            Walk::Tiled { .. } => [64, 32].map(Way::Tiled).into(),
            _ => vec![best.candidate().way],
        };
        let pairs = ways.iter().flat_map(|way| vecs(widest).map(|vec| Candidate { vec, way: *way }));
        let others = pairs.filter_map(|candidate| Variant::of_candidate(kernel, axes, target, candidate));
        distinct([best.clone()].into_iter().chain(others))
    }

    /// The variant for collapsed axes that walks them in a certain way, if they can be walked so.
    pub fn of_candidate(kernel: &Kernel, axes: &Geometry, target: &Target, candidate: Candidate) -> Option<Variant> {
        let walked = Walked::new(kernel, axes);
        let Candidate { vec, way } = candidate;
        let best = Variant::choose(kernel, axes, target);
        let walk = match (way, best.walk) {
            (Way::Keep(team), _) if kernel.kind == Kind::Row && axes.len() <= BLOCK => {
                keep_by(team, axes.len(), vec, Phases::of(kernel).kept_values())?
            }
            (Way::Stream(team), Walk::Stream { .. } | Walk::Resident { .. }) if i64::from(team * vec) <= LANES => {
                Walk::Stream { team }
            }
            (Way::Tiled(tile), Walk::Tiled { tile: most }) if tile <= most => Walk::Tiled { tile },
            (Way::Resident, Walk::Resident { .. }) if vec == best.vec => best.walk,
            (Way::Plain, Walk::Plain) | (Way::Split, Walk::Split) => best.walk,
            _ => return None,
        };
        let most = match (walk, kernel.kind) {
            (Walk::Split, _) => walked.widest.min(4),
            (Walk::Tiled { .. } | Walk::Resident { .. }, _) | (_, Kind::Column | Kind::Line) => best.vec,
            _ => walked.widest,
        };
        (vec <= most).then(|| walked.variant(kernel, axes, walk, vec))
    }

    /// The variants of a matmul template that are worth timing, the one that [`Variant::product`] gives first. Where that is one for
    /// tensor cores, plain tiles are not.
    pub fn product_candidates(epilogue: &Kernel, dtype: DType, axes: &Geometry, target: &Target) -> Vec<Variant> {
        let best = Variant::product(epilogue, dtype, axes, target);
        let has_tiles = matches!(best.walk, Walk::Product { .. });
        let is_worth_it = |way: &Way| match *way {
            Way::Product(_) => has_tiles,
            Way::Thirds(columns) | Way::Halves(columns) => hopper::may_pay(axes, columns, target),
            _ => true,
        };
        let ways = ways_in_tiles().filter(is_worth_it);
        let others = ways.filter_map(|way| Variant::of_product_candidate(epilogue, dtype, axes, target, way));
        let is_strip = matches!(best.walk, Walk::Strips { .. } | Walk::Slim { .. });
        distinct([best].into_iter().chain(others.filter(|_| !is_strip)))
    }

    /// The variant of a matmul template that computes its product in a certain way, if that can be.
    pub fn of_product_candidate(
        epilogue: &Kernel,
        dtype: DType,
        axes: &Geometry,
        target: &Target,
        way: Way,
    ) -> Option<Variant> {
        let plain = Variant::plain_product(epilogue, dtype, axes);
        let variant = match way {
            Way::Thirds(_) => plain.in_thirds(dtype, axes, target),
            Way::Halves(_) => plain.in_halves(epilogue, dtype, axes, target),
            _ => plain,
        };
        let fits = |tile: u32| tile == SMALL_TILE || tile == LARGE_TILE && hopper::bytes(axes) <= DType::F32.bytes();
        let walk = match (way, variant.walk) {
            (Way::Thirds(columns), Walk::Thirds { left, right, .. })
                if hopper::THIRDS.columns().any(|has| has == columns) =>
            {
                Walk::Thirds { columns, shares: hopper::THIRDS.is_shared(columns, axes, target), left, right }
            }
            (Way::Halves(columns), Walk::Halves { left, right, .. })
                if hopper::HALVES.columns().any(|has| has == columns) =>
            {
                Walk::Halves { columns, left, right }
            }
            (Way::Product(tile), Walk::Product { left, right, .. }) if fits(tile) => {
                Walk::Product { tile, left, right }
            }
            (Way::Strips(rows), Walk::Strips { rows: most, .. } | Walk::Slim { rows: most, .. }) if rows == most => {
                variant.walk
            }
            _ => return None,
        };
        Some(Variant { walk, ..variant })
    }

    /// The way this variant walks.
    pub fn candidate(&self) -> Candidate {
        let way = match self.walk {
            Walk::Plain | Walk::Attention { .. } | Walk::Warps { .. } => Way::Plain,
            Walk::Keep { team, .. } => Way::Keep(team),
            Walk::Stream { team } => Way::Stream(team),
            Walk::Resident { .. } => Way::Resident,
            Walk::Split => Way::Split,
            Walk::Tiled { tile } => Way::Tiled(tile),
            Walk::Product { tile, .. } => Way::Product(tile),
            Walk::Thirds { columns, .. } => Way::Thirds(columns),
            Walk::Halves { columns, .. } => Way::Halves(columns),
            Walk::Strips { rows, .. } | Walk::Slim { rows, .. } => Way::Strips(rows),
        };
        Candidate { vec: self.vec, way }
    }
}

/// Each variant once, where it comes first.
pub(super) fn distinct(variants: impl Iterator<Item = Variant>) -> Vec<Variant> {
    let mut all: Vec<Variant> = vec![];
    for variant in variants {
        if !all.contains(&variant) {
            all.push(variant);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::Access;
    use super::super::samples::{H200, kernel, product, rows, softmax, square, transpose_add};
    use super::*;
    use crate::plan::Step;

    fn ways(variants: &[Variant]) -> Vec<String> {
        variants.iter().map(|variant| format!("{:?} by {}", variant.candidate().way, variant.vec)).collect()
    }

    #[test]
    fn rows_are_timed_with_teams_that_have_work_for_all_threads() {
        let plan = softmax();
        let axes = rows(4096, 768, 0).collapse(kernel(&plan));
        let found = Variant::candidates(kernel(&plan), &axes, &H200);
        assert_eq!(found[0], Variant::choose(kernel(&plan), &axes, &H200));
        let ways = ways(&found);
        assert!(ways.contains(&"Keep(32) by 8".into()) && ways.contains(&"Keep(64) by 4".into()), "{ways:?}");
        assert!(!ways.iter().any(|way| way.starts_with("Keep(1024)")), "{ways:?}");
        assert!((4..=12).contains(&found.len()), "{ways:?}");
    }

    #[test]
    fn every_candidate_says_in_words_what_it_is() {
        let (softmax, turned) = (softmax(), transpose_add());
        let layouts = [rows(4096, 768, 0), rows(64, 40_000, 0), rows(4096, 1001, 2), rows(1, 12, 0)];
        let cases =
            layouts.map(|layout| (kernel(&softmax), layout)).into_iter().chain([(kernel(&turned), square(4096))]);
        for (kernel, layout) in cases {
            let axes = layout.collapse(kernel);
            for variant in Variant::candidates(kernel, &axes, &H200) {
                let again = Variant::of_candidate(kernel, &axes, &H200, variant.candidate());
                assert_eq!(again.as_ref(), Some(&variant), "{axes:?}");
            }
        }
    }

    #[test]
    fn products_are_timed_in_tiles_of_every_size_and_say_in_words_what_they_are() {
        let matrix = |bytes: usize| Access { strides: vec![0, 0, 0, 4096, 1], address: 0, bytes, indexed: false };
        let of = |dtype: DType, m: i64| {
            let plan = product(dtype);
            let Some(Step::Matmul(matmul)) = plan.steps.last() else { panic!("{} ends in a product", plan.name) };
            let axes = Geometry {
                outer: vec![1, 1, 1, m, 3072],
                inner: vec![768],
                operands: (0..3).map(|_| matrix(dtype.bytes())).collect(),
            };
            let found = Variant::product_candidates(&matmul.epilogue, dtype, &axes, &H200);
            assert_eq!(found[0], Variant::product(&matmul.epilogue, dtype, &axes, &H200));
            for variant in &found {
                let way = variant.candidate().way;
                let again = Variant::of_product_candidate(&matmul.epilogue, dtype, &axes, &H200, way);
                assert_eq!(again.as_ref(), Some(variant));
            }
            found.iter().map(|variant| variant.candidate().way).collect::<Vec<_>>()
        };
        assert_eq!(of(DType::F32, 4096), [Way::Thirds(192), Way::Thirds(128)]);
        assert_eq!(of(DType::BF16, 4096), [Way::Halves(256), Way::Halves(192), Way::Halves(128)]);
        assert_eq!(of(DType::F32, 400), [Way::Thirds(192), Way::Thirds(128)]);
        assert_eq!(of(DType::F32, 100), [Way::Product(64), Way::Product(128)]);
        assert_eq!(of(DType::F64, 100), [Way::Product(64)]);
        assert_eq!(of(DType::F32, 3), [Way::Strips(4)]);
    }

    #[test]
    fn what_was_fastest_for_one_length_is_the_same_way_for_another() {
        let plan = softmax();
        let of = |len: i64, candidate| {
            let axes = rows(4096, len, 0).collapse(kernel(&plan));
            Variant::of_candidate(kernel(&plan), &axes, &H200, candidate).map(|variant| variant.walk)
        };
        let candidate = Candidate { vec: 4, way: Way::Keep(64) };
        assert_eq!(of(768, candidate), Some(Walk::Keep { team: 64, items: 3, whole: true }));
        assert_eq!(of(1000, candidate), Some(Walk::Keep { team: 64, items: 4, whole: false }));
        // Of 1001 halves a row the second starts at an odd address.
        assert_eq!(of(1001, candidate), None);
    }
}
