//! One launch of several small kernels that do not depend on one another, see [`SmallKernels`](crate::plan::SmallKernels).
//!
//! Its arguments are the block behind the last one of each, then those that each is launched with alone.

use super::{Arg, Variant, arguments, may_fault};
use crate::plan::{Kernel, Kind};
use crate::types::DType;

/// With more points a kernel takes longer than a launch does: eight maps in a graph on an H200 take 5.9 us for 10.3 with 16,000 to 50,000
/// points each, and 14.8 for 10.3 with four of up to 2^17 points in one launch and four beside it.
pub const FEW_POINTS: i64 = 1 << 16;

/// Bytes of arguments that every device takes.
const MOST_BYTES: usize = 4096;

/// Whether a kernel may be launched with others.
pub fn may_share(kernel: &Kernel) -> bool {
    kernel.kind == Kind::Map && !kernel.asks && !kernel.heeds && !may_fault(kernel)
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
    let rank = kernel.domain.len().max(1);
    let of = |arg: Arg| match arg {
        Arg::LeafStrides(_) | Arg::StoreStrides(_) => (4 * rank).next_multiple_of(8),
        Arg::LeafAxis(_) | Arg::StoreAxis(_) => 16,
        Arg::Outer => (8 + 12 * rank).next_multiple_of(8),
        _ => 8,
    };
    arguments(kernel).into_iter().map(of).sum()
}

/// The text of a kernel for any layout whose positions fit an int.
pub fn plainest(kernel: &Kernel) -> Variant {
    Variant { wide: false, ..Variant::plainest(kernel) }
}

/// The defines that specialise the text: those of each kernel under its number.
pub fn defines(name: &str, kernels: &[(&Kernel, &Variant)], params: &[DType]) -> Vec<String> {
    let own = |define: &String| ["RANK=", "VEC=", "STEP_"].iter().any(|own| define.starts_with(own));
    let common = |define: &String| define.starts_with(['T', 'C', 'I']);
    let mut defines = vec![format!("KERNEL_{name}"), "RANK=1".into(), "VEC=1".into()];
    for (n, (kernel, variant)) in kernels.iter().enumerate() {
        let all = variant.defines(kernel, params);
        if n == 0 {
            defines.extend(all.iter().filter(|define| common(define)).cloned());
        }
        defines.extend(all.iter().filter(|define| own(define)).map(|define| format!("PART_{n}_{define}")));
    }
    defines
}

#[cfg(test)]
mod tests {
    use super::super::samples::{H200, kernel, transpose_add};
    use super::*;
    use crate::plan::abi::Geometry;

    #[test]
    fn every_kernel_has_defines_of_its_own() {
        let plan = transpose_add();
        let kernel = kernel(&plan);
        let text = plainest(kernel);
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
        assert!(!Variant::choose(kernel, &axes, &H200).wide && !plainest(kernel).wide);
    }
}
