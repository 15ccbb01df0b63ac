//! Extents and strides as they lie in kernel arguments.

use super::{Geometry, Variant};
use crate::plan::{Kernel, Kind};

/// The outer extents ([`super::Arg::Outer`]), aligned to 8 bytes.
///
/// The kernel's `fuse_extents<N>` holds the number of points as i64, then for each axis the extent with what a division by
/// it needs. Where threads take `vec` neighbouring points of the last axis, its extent counts accesses.
pub fn outer(kernel: &Kernel, variant: &Variant, axes: &Geometry) -> Vec<u8> {
    let per_access = match kernel.kind {
        Kind::Map | Kind::Column => variant.vec,
        Kind::Row | Kind::Line => 1,
    };
    extents(variant, &axes.outer, i64::from(per_access))
}

/// The inner extents ([`super::Arg::Inner`]), aligned to 8 bytes.
pub fn inner(variant: &Variant, axes: &Geometry) -> Vec<u8> {
    extents(variant, &axes.inner, 1)
}

fn extents(variant: &Variant, extents: &[i64], last_per_access: i64) -> Vec<u8> {
    let points: i64 = extents.iter().product();
    let mut bytes = points.to_ne_bytes().to_vec();
    for (axis, &extent) in extents.iter().enumerate() {
        let last = axis + 1 == extents.len();
        let counted = if last { extent / last_per_access } else { extent };
        push_divisor(&mut bytes, counted, variant.wide);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// Strides as the kernel's `fuse_strides<N>` lies in memory: elements of 4 bytes, or of 8 where the variant is wide.
pub fn strides(variant: &Variant, strides: &[i64]) -> Vec<u8> {
    match variant.wide {
        true => strides.iter().flat_map(|s| s.to_ne_bytes()).collect(),
        false => strides.iter().flat_map(|s| (*s as i32).to_ne_bytes()).collect(),
    }
}

fn push_divisor(bytes: &mut Vec<u8>, extent: i64, wide: bool) {
    let (magic, shift) = if wide { (0, 0) } else { reciprocal(extent.max(1) as u32) };
    match wide {
        true => bytes.extend(extent.to_ne_bytes()),
        false => bytes.extend((extent as i32).to_ne_bytes()),
    }
    bytes.extend(magic.to_ne_bytes());
    bytes.extend(shift.to_ne_bytes());
}

/// `n / d == ((n * magic >> 32) + n) >> shift` for every n below 2^31 (Granlund and Montgomery, 1994).
fn reciprocal(divisor: u32) -> (u32, u32) {
    let shift = 32 - (divisor - 1).leading_zeros();
    let magic = ((1u64 << 32) * ((1u64 << shift) - u64::from(divisor))) / u64::from(divisor) + 1;
    (magic as u32, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reciprocal_divides_exactly() {
        for divisor in [1u32, 2, 3, 5, 7, 96, 384, 1023, 1025, 65535, 1 << 20, (1 << 31) - 1] {
            let (magic, shift) = reciprocal(divisor);
            for n in [0u32, 1, divisor - 1, divisor, divisor + 1, 123_456_789, (1 << 31) - 1] {
                let high = (u64::from(n) * u64::from(magic)) >> 32;
                assert_eq!(((high + u64::from(n)) >> shift) as u32, n / divisor, "{n} / {divisor}");
            }
        }
    }
}
