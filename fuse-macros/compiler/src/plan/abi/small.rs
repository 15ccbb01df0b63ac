//! One launch of several small kernels that do not depend on one another, see [`SmallKernels`](crate::plan::SmallKernels).
//!
//! Its arguments are the block behind the last one of each, then those that each is launched with alone.

use super::walk::keep_by;
use super::{Arg, Geometry, Step, THREADS, Target, UNROLL, Variant, Walk, arguments, ceil_div, may_fault};
use crate::plan::{Kernel, Kind, Phases};
use crate::types::DType;

/// With more points a kernel takes longer than a launch does: eight maps in a graph on an H200 take 5.9 us for 10.3 with 16,000 to 50,000
/// points each, and 14.8 for 10.3 with four of up to 2^17 points in one launch and four beside it.
pub const FEW_POINTS: i64 = 1 << 16;

/// Threads of a warp.
const WARP: u32 = 32;

/// Up to so many elements a row is a warp's.
const SHORT: i64 = 1024;

/// The most elements of an access with which the threads of a block have a part of a longer row each.
const LONG_VEC: u32 = 4;

/// Bytes of arguments that every device takes.
const MOST_BYTES: usize = 4096;

/// Whether a kernel may be launched with others: a map, or rows whose blocks leave nothing for the last of them.
pub fn may_share(kernel: &Kernel) -> bool {
    let is_alone = match kernel.kind {
        Kind::Map => true,
        Kind::Row => !Phases::of(kernel).has_finish(),
        Kind::Column | Kind::Line => false,
    };
    is_alone && !kernel.asks && !kernel.heeds && !may_fault(kernel)
}

/// Whether the arguments of such kernels, together with the ends of their blocks, fit a launch however their operands lie.
pub fn fit<'k>(kernels: impl Iterator<Item = &'k Kernel> + Clone) -> bool {
    let ends = 4 * room(kernels.clone().count());
    ends + kernels.map(bytes).sum::<usize>() <= MOST_BYTES
}

/// How many [ends](super::ends) of blocks the kernel searches: a power of two.
pub fn room(kernels: usize) -> usize {
    kernels.next_power_of_two()
}

/// Bytes of the arguments of a kernel, each aligned to 8.
fn bytes(kernel: &Kernel) -> usize {
    // Rows have an axis of either kind at least.
    let rank = kernel.domain.len().max(2);
    let of = |arg: Arg| match arg {
        Arg::LeafStrides(_) | Arg::StoreStrides(_) => (4 * rank).next_multiple_of(8),
        Arg::LeafAxis(_) | Arg::StoreAxis(_) => 16,
        Arg::Outer | Arg::Inner => (8 + 12 * rank).next_multiple_of(8),
        _ => 8,
    };
    arguments(kernel).into_iter().map(of).sum()
}

/// The variant of a kernel that shares a launch. Each row is kept by a warp, or a long one by all threads of a block; `None` where
/// there are no registers for that.
pub fn variant(kernel: &Kernel, axes: &Geometry, target: &Target) -> Option<Variant> {
    let best = Variant::choose(kernel, axes, target);
    match (kernel.kind, best.walk) {
        (Kind::Row, _) => {
            let kept = Phases::of(kernel).kept_values();
            let (team, vec) = if axes.len() <= SHORT { (WARP, best.vec) } else { (THREADS, best.vec.min(LONG_VEC)) };
            let walk = keep_by(team, axes.len(), vec, kept)?;
            Some(Variant { walk, vec, ..best })
        }
        (_, Walk::Plain) => Some(best),
        // Few points are not worth turning.
        _ => Some(Variant { walk: Walk::Plain, vec: 1, steps: vec![Step::Apart; best.steps.len()], ..best }),
    }
}

/// A variant whose text takes the same arguments, of a kernel that is launched for itself after all.
pub fn unused(kernel: &Kernel, axes: &Geometry) -> Variant {
    let walk = match kernel.kind {
        Kind::Row => Walk::Keep { team: THREADS, items: 1, whole: false },
        _ => Walk::Plain,
    };
    Variant { outer: axes.outer.len(), inner: axes.inner.len(), walk, ..Variant::plainest(kernel) }
}

/// How many blocks of a launch are those of a kernel.
pub fn blocks(axes: &Geometry, variant: &Variant) -> u64 {
    let a_block = match variant.walk {
        Walk::Keep { team, .. } => THREADS / team,
        _ => variant.vec * THREADS * UNROLL,
    };
    ceil_div(axes.rows(), i64::from(a_block)) as u64
}

/// The text of a kernel for any layout whose positions fit an int, if there is one.
pub fn plainest(kernel: &Kernel) -> Option<Variant> {
    (kernel.kind == Kind::Map).then(|| Variant { wide: false, ..Variant::plainest(kernel) })
}

/// What a kernel that shares a launch has defines of its own for, under its number.
const OWN: [&str; 7] = ["RANK=", "INNER_RANK=", "VEC=", "STEP_", "TEAM=", "ITEMS=", "WHOLE="];

/// The defines that specialise the text: those of each kernel under its number.
pub fn defines(name: &str, kernels: &[(&Kernel, &Variant)], params: &[DType]) -> Vec<String> {
    let is_own = |define: &String| OWN.iter().any(|own| define.starts_with(own));
    let mut defines = vec![format!("KERNEL_{name}"), "RANK=1".into(), "VEC=1".into()];
    for (n, (kernel, variant)) in kernels.iter().enumerate() {
        let (own, common): (Vec<String>, Vec<String>) =
            variant.defines(kernel, params).into_iter().skip(1).partition(is_own);
        defines.extend(common.into_iter().filter(|_| n == 0));
        defines.extend(own.into_iter().map(|define| format!("PART_{n}_{define}")));
    }
    defines
}

#[cfg(test)]
mod tests {
    use super::super::samples::{H200, kernel, rows, softmax, transpose_add};
    use super::*;
    use crate::plan::abi::Geometry;

    #[test]
    fn every_kernel_has_defines_of_its_own() {
        let plan = transpose_add();
        let kernel = kernel(&plan);
        let text = plainest(kernel).unwrap();
        let defines = defines("small", &[(kernel, &text), (kernel, &text)], &[]);
        assert_eq!(defines[..4], ["KERNEL_small", "RANK=1", "VEC=1", "IDX=int"]);
        let of = |n: usize| defines.iter().filter(|define| define.starts_with(&format!("PART_{n}_"))).count();
        assert_eq!((of(0), of(1), of(2)), (5, 5, 0), "{defines:?}");
    }

    #[test]
    fn the_arguments_of_a_kernel_are_no_more_than_is_counted() {
        let plan = transpose_add();
        let kernel = kernel(&plan);
        // Two operands, a result and the extents: three addresses, three pairs of strides, two axes.
        assert_eq!(bytes(kernel), 3 * 8 + 3 * 8 + 32);
        assert!(fit([kernel; 32].into_iter()) && !fit([kernel; 64].into_iter()));
        let axes = Geometry { outer: vec![4, 4], inner: vec![], ..super::super::samples::square(4) };
        assert!(!Variant::choose(kernel, &axes, &H200).wide && !plainest(kernel).unwrap().wide);
    }

    #[test]
    fn a_short_row_is_a_warps_and_a_longer_one_a_blocks() {
        let plan = softmax();
        let kernel = kernel(&plan);
        let walked = |len: i64| {
            let axes = rows(4, len, 0);
            let variant = variant(kernel, &axes, &H200)?;
            let Walk::Keep { team, items, .. } = variant.walk else { panic!("{variant:?}") };
            Some((team, items, blocks(&axes, &variant)))
        };
        assert_eq!(walked(128), Some((32, 1, 1)));
        assert_eq!(walked(1024), Some((32, 4, 1)));
        assert_eq!(walked(1025), Some((256, 8, 4)));
        assert_eq!(walked(1536), Some((256, 2, 4)));
        assert_eq!(walked(4096), Some((256, 4, 4)));
        assert_eq!(walked(60_000), None);
    }
}
