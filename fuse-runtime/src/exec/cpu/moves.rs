//! Copies between the operands of a launch and a worker's scratch.

use super::access::Access;
use super::strided::Segment;
use crate::reduce::prefetch;

/// Columns that are copied together: a cache line of the most common elements.
pub(super) const COLUMNS: usize = 16;
/// Rows of a tile of columns that are sent for while as many before them are turned.
const AHEAD: usize = 64;
/// Lines of a tile of a map that are turned while as many behind them are sent for.
const LINES: usize = 16;
/// The edge of the blocks that are turned together.
const BLOCK: usize = 8;

/// Copies the elements of a run together.
pub(super) fn gather(leaf: &Access, outer: isize, start: usize, len: usize, to: *mut u8) {
    let size = leaf.dtype.bytes();
    leaf.inner.segments(start, len, |piece| {
        let from = leaf.at(outer + piece.offset);
        // SAFETY: the segment is inside of the leaf's tensor, and the slot holds `len` elements.
        unsafe { copy(from, piece.stride, to.add(piece.at * size), 1, piece.len, size) };
    });
}

/// Turns a tile around, whose inner and outer side are given, extent and stride each: its rows come to lie [pitch] apart. False, and
/// nothing, where the outer side is not dense.
pub(super) fn gather_turned(
    leaf: &Access,
    outer: isize,
    start: usize,
    [(across, stride), (along, dense)]: [(usize, isize); 2],
    to: *mut u8,
) -> bool {
    if dense != 1 {
        return false;
    }
    let size = leaf.dtype.bytes();
    let line = |k: usize| leaf.at(outer + leaf.inner.offset(start) + k as isize * stride);
    for first in (0..across).step_by(LINES) {
        // No processor would send by itself for what lies so far apart.
        for ahead in first + LINES..across.min(first + 2 * LINES) {
            (0..along * size).step_by(64).for_each(|byte| prefetch(line(ahead).wrapping_add(byte)));
        }
        let extents = [LINES.min(across - first), along];
        // SAFETY: the tile is inside of the leaf's tensor, and the slot holds its rows.
        unsafe { turn(line(first), stride, to.wrapping_add(first * size), pitch(across), extents, size) };
    }
    true
}

/// Copies the elements of a run where they belong.
pub(super) fn scatter(store: &Access, outer: isize, start: usize, len: usize, from: *const u8) {
    let size = store.dtype.bytes();
    store.inner.segments(start, len, |piece: Segment| {
        let to = store.at(outer + piece.offset);
        // SAFETY: the segment is inside of the store's tensor, which this run writes alone, and the slot holds `len` elements.
        unsafe { copy(from.add(piece.at * size), 1, to, piece.stride, piece.len, size) };
    });
}

/// The distance of columns in a tile. Columns of a power of two would all fall on the same places of the cache.
pub(super) fn pitch(len: usize) -> usize {
    len + 64
}

/// Copies whole columns `first..first + count` of `len` points, each dense after the other.
pub(super) fn gather_columns(leaf: &Access, first: usize, count: usize, len: usize, to: *mut u8) {
    let size = leaf.dtype.bytes();
    let mut offsets = [0isize; COLUMNS];
    for (c, offset) in offsets[..count].iter_mut().enumerate() {
        *offset = leaf.outer.offset(first + c);
    }
    let offsets = &offsets[..count];
    let beside = offsets.windows(2).all(|pair| pair[1] == pair[0] + 1);
    leaf.inner.segments(0, len, |piece| {
        let to = to.wrapping_add(piece.at * size);
        if beside {
            let from = leaf.at(piece.offset + offsets[0]);
            let row = |row: usize| from.wrapping_offset(row as isize * piece.stride * size as isize);
            for first in (0..piece.len).step_by(AHEAD) {
                // Rows of a power of two are on one place of the first cache. No processor would send by itself for what lies so far apart.
                (first + AHEAD..piece.len.min(first + 2 * AHEAD)).for_each(|next| prefetch(row(next)));
                let to = to.wrapping_add(first * size);
                let extents = [AHEAD.min(piece.len - first), count];
                // SAFETY: each column is inside of the leaf's tensor, and the slot holds `count` columns of `len` elements.
                unsafe { turn(row(first), piece.stride, to, pitch(len), extents, size) };
            }
            return;
        }
        for (c, offset) in offsets.iter().enumerate() {
            let (from, to) = (leaf.at(piece.offset + offset), to.wrapping_add(c * pitch(len) * size));
            // SAFETY: as above.
            unsafe { copy(from, piece.stride, to, 1, piece.len, size) };
        }
    });
}

/// Turns a matrix around: element `along` of row `across` goes to element `across` of row `along`. Rows have the given
/// distances, and their elements are dense.
pub(super) unsafe fn turn(
    from: *const u8,
    from_pitch: isize,
    to: *mut u8,
    to_pitch: usize,
    extents: [usize; 2],
    size: usize,
) {
    // SAFETY: passed on from the caller.
    unsafe {
        match size {
            1 => turn_words::<u8>(from, from_pitch, to, to_pitch, extents),
            2 => turn_words::<u16>(from, from_pitch, to, to_pitch, extents),
            4 => turn_words::<u32>(from, from_pitch, to, to_pitch, extents),
            _ => turn_words::<u64>(from, from_pitch, to, to_pitch, extents),
        }
    }
}

unsafe fn turn_words<W: Copy>(
    from: *const u8,
    from_pitch: isize,
    to: *mut u8,
    to_pitch: usize,
    [across, along]: [usize; 2],
) {
    let (from, to) = (from.cast::<W>(), to.cast::<W>());
    let [whole_across, whole_along] = [across, along].map(|extent| extent / BLOCK * BLOCK);
    // SAFETY: passed on from the caller.
    let single = |k: usize, j: usize| unsafe {
        to.add(j * to_pitch + k).write(from.offset(k as isize * from_pitch).add(j).read());
    };
    for k in (0..whole_across).step_by(BLOCK) {
        for j in (0..whole_along).step_by(BLOCK) {
            // SAFETY: the block is inside of the matrix.
            unsafe {
                turn_block(from.offset(k as isize * from_pitch).add(j), from_pitch, to.add(j * to_pitch + k), to_pitch)
            };
        }
    }
    for k in 0..across {
        let rest = if k < whole_across { whole_along } else { 0 };
        (rest..along).for_each(|j| single(k, j));
    }
}

/// A block, so that both sides are touched in pieces of whole rows.
#[inline(always)]
unsafe fn turn_block<W: Copy>(from: *const W, from_pitch: isize, to: *mut W, to_pitch: usize) {
    const HALF: usize = BLOCK / 2;
    for (k, j) in [(0, 0), (0, HALF), (HALF, 0), (HALF, HALF)] {
        // SAFETY: passed on from the caller.
        unsafe {
            let (from, to) = (from.offset(k as isize * from_pitch).add(j), to.add(j * to_pitch + k));
            #[cfg(target_arch = "x86_64")]
            if size_of::<W>() == 4 {
                turn_in_registers(from.cast(), from_pitch, to.cast(), to_pitch);
                continue;
            }
            for (k, j) in (0..HALF).flat_map(|j| (0..HALF).map(move |k| (k, j))) {
                to.add(j * to_pitch + k).write(from.offset(k as isize * from_pitch).add(j).read());
            }
        }
    }
}

/// Four rows of four words; the compiler does not find this by itself.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn turn_in_registers(from: *const f32, from_pitch: isize, to: *mut f32, to_pitch: usize) {
    use std::arch::x86_64::{_MM_TRANSPOSE4_PS, _mm_loadu_ps, _mm_storeu_ps};
    // SAFETY: passed on from the caller; SSE is part of x86-64.
    unsafe {
        let [mut a, mut b, mut c, mut d] = [0, 1, 2, 3].map(|k| _mm_loadu_ps(from.offset(k * from_pitch)));
        _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
        for (j, row) in [a, b, c, d].into_iter().enumerate() {
            _mm_storeu_ps(to.add(j * to_pitch), row);
        }
    }
}

/// Copies `len` elements of `size` bytes between two strides.
pub(super) unsafe fn copy(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, len: usize, size: usize) {
    // SAFETY: passed on from the caller; elements are aligned to their size.
    unsafe {
        if from_stride == 1 && to_stride == 1 {
            return std::ptr::copy_nonoverlapping(from, to, len * size);
        }
        match size {
            1 => copy_words::<u8>(from, from_stride, to, to_stride, len),
            2 => copy_words::<u16>(from, from_stride, to, to_stride, len),
            4 => copy_words::<u32>(from, from_stride, to, to_stride, len),
            _ => copy_words::<u64>(from, from_stride, to, to_stride, len),
        }
    }
}

unsafe fn copy_words<W: Copy>(from: *const u8, from_stride: isize, to: *mut u8, to_stride: isize, len: usize) {
    let (from, to) = (from.cast::<W>(), to.cast::<W>());
    // SAFETY: passed on from the caller.
    unsafe {
        match (from_stride, to_stride) {
            (0, 1) => std::slice::from_raw_parts_mut(to, len).fill(*from),
            (stride, 1) => (0..len).for_each(|i| *to.add(i) = *from.offset(i as isize * stride)),
            (_, stride) => {
                (0..len).for_each(|i| *to.offset(i as isize * stride) = *from.offset(i as isize * from_stride));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_turned_whatever_its_extents() {
        turns::<u16>(|x| x as u16);
        turns::<u32>(|x| x as u32);
    }

    fn turns<W: Copy + Default + PartialEq + std::fmt::Debug>(word: fn(usize) -> W) {
        for (across, along) in [(1, 1), (8, 8), (7, 20), (16, 9), (33, 40)] {
            let from: Vec<W> = (0..across * (along + 3)).map(word).collect();
            let mut to = vec![W::default(); along * (across + 1)];
            let (pitch, place) = (along + 3, to.as_mut_ptr().cast());
            // SAFETY: both hold rows of their pitch.
            unsafe { turn(from.as_ptr().cast(), pitch as isize, place, across + 1, [across, along], size_of::<W>()) };
            for j in 0..along {
                let want: Vec<W> = (0..across).map(|k| from[k * pitch + j]).collect();
                assert_eq!(to[j * (across + 1)..][..across], want, "{across} x {along}, row {j}");
            }
        }
    }
}
