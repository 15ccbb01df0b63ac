//! Copying between layouts on the host.

use crate::layout::{Layout, MAX_DIMS};

/// One dim of a copy: how often, and how far both sides step, in bytes.
#[derive(Clone, Copy, Default)]
struct Loop {
    extent: usize,
    to: isize,
    from: isize,
}

/// Copies every element of one layout to its place in another of equal extents.
///
/// # Safety
/// `to` and `from` point at the first element (offset included) of blocks that hold every element of their layouts, and
/// nothing else reads or writes the elements of `to` meanwhile. The two must not overlap.
pub unsafe fn copy_strided(to: *mut u8, to_layout: &Layout, from: *const u8, from_layout: &Layout, size: usize) {
    debug_assert_eq!(to_layout.shape(), from_layout.shape());
    if to_layout.numel() == 0 {
        return;
    }
    let (loops, count) = merged(to_layout, from_layout, size);
    // SAFETY: the loops visit exactly the elements of the two layouts.
    unsafe { copy_loops(to, from, &loops[..count], size) }
}

/// The dims of both layouts, neighbours merged where both allow it, innermost first. Never empty.
fn merged(to: &Layout, from: &Layout, size: usize) -> ([Loop; MAX_DIMS], usize) {
    let mut loops = [Loop::default(); MAX_DIMS];
    let mut count = 0;
    for d in (0..to.rank()).rev().filter(|&d| to.shape()[d] != 1) {
        let bytes = |strides: &[isize]| strides[d] * size as isize;
        let outer = Loop { extent: to.shape()[d], to: bytes(to.strides()), from: bytes(from.strides()) };
        match loops[..count].last_mut() {
            Some(inner) if continues(inner, &outer) => inner.extent *= outer.extent,
            _ => {
                loops[count] = outer;
                count += 1;
            }
        }
    }
    if count == 0 {
        loops[0] = Loop { extent: 1, to: size as isize, from: size as isize };
        count = 1;
    }
    (loops, count)
}

fn continues(inner: &Loop, outer: &Loop) -> bool {
    let extent = inner.extent as isize;
    outer.to == inner.to * extent && outer.from == inner.from * extent
}

unsafe fn copy_loops(to: *mut u8, from: *const u8, loops: &[Loop], size: usize) {
    let Some((outer, inner)) = loops.split_last() else {
        return;
    };
    if inner.is_empty() {
        // SAFETY: passed on from the caller.
        return unsafe { copy_line(to, from, outer, size) };
    }
    for i in 0..outer.extent as isize {
        // SAFETY: every step stays on elements of the two layouts.
        unsafe { copy_loops(to.offset(i * outer.to), from.offset(i * outer.from), inner, size) }
    }
}

unsafe fn copy_line(to: *mut u8, from: *const u8, line: &Loop, size: usize) {
    // SAFETY: the line is inside of both blocks, and elements are aligned to their size.
    unsafe {
        if line.to == size as isize && line.from == size as isize {
            return std::ptr::copy_nonoverlapping(from, to, line.extent * size);
        }
        match size {
            1 => copy_elements::<u8>(to, from, line),
            2 => copy_elements::<u16>(to, from, line),
            4 => copy_elements::<u32>(to, from, line),
            _ => copy_elements::<u64>(to, from, line),
        }
    }
}

unsafe fn copy_elements<W: Copy>(to: *mut u8, from: *const u8, line: &Loop) {
    for i in 0..line.extent as isize {
        // SAFETY: passed on from the caller.
        unsafe { *to.offset(i * line.to).cast::<W>() = *from.offset(i * line.from).cast::<W>() }
    }
}
