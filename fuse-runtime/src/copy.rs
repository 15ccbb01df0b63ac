//! Copying between layouts.

use crate::layout::{Layout, MAX_DIMS};
use std::ops::Deref;

/// One dim of a copy: how often, and how far both sides step, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loop {
    pub extent: usize,
    pub to: isize,
    pub from: isize,
}

/// The dims of a copy, innermost first, neighbours merged where both sides allow it. Never empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loops {
    loops: [Loop; MAX_DIMS],
    len: usize,
}

impl Loops {
    /// The loops that go through two layouts of equal extents, for elements of `size` bytes.
    pub fn merged(to: &Layout, from: &Layout, size: usize) -> Self {
        assert_eq!(to.shape(), from.shape(), "a copy keeps the extents");
        let mut out = Loops { loops: [Loop::default(); MAX_DIMS], len: 0 };
        for d in (0..to.rank()).rev().filter(|&d| to.shape()[d] != 1) {
            let bytes = |layout: &Layout| layout.strides()[d] * size as isize;
            out.push(Loop { extent: to.shape()[d], to: bytes(to), from: bytes(from) });
        }
        if out.len == 0 {
            out.push(Loop { extent: 1, to: size as isize, from: size as isize });
        }
        out
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.iter().map(|l| l.extent).product()
    }

    fn push(&mut self, outer: Loop) {
        if let Some(inner) = self.loops[..self.len].last_mut() {
            let extent = inner.extent as isize;
            if outer.to == inner.to * extent && outer.from == inner.from * extent {
                inner.extent *= outer.extent;
                return;
            }
        }
        self.loops[self.len] = outer;
        self.len += 1;
    }
}

impl Deref for Loops {
    type Target = [Loop];

    fn deref(&self) -> &[Loop] {
        &self.loops[..self.len]
    }
}

/// Copies every element of one layout on the host to its place in another of equal extents.
///
/// # Safety
/// `to` and `from` point at the first element (offset included) of blocks that hold every element of their layouts, and
/// nothing else reads or writes the elements of `to` meanwhile. The two must not overlap.
pub(crate) unsafe fn copy_strided(to: *mut u8, to_layout: &Layout, from: *const u8, from_layout: &Layout, size: usize) {
    if to_layout.numel() > 0 {
        // SAFETY: the loops visit exactly the elements of the two layouts.
        unsafe { copy_loops(to, from, &Loops::merged(to_layout, from_layout, size), size) }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dims_merge_where_both_sides_go_on() {
        let dense = Layout::contiguous(&[2, 3, 4]);
        assert_eq!(Loops::merged(&dense, &dense, 2)[..], [Loop { extent: 24, to: 2, from: 2 }]);
        let part = Layout::contiguous(&[2, 3, 8]).narrow(2, 0, 4).unwrap();
        let loops = Loops::merged(&dense, &part, 1);
        assert_eq!(loops[..], [Loop { extent: 4, to: 1, from: 1 }, Loop { extent: 6, to: 4, from: 8 }]);
        assert_eq!(loops.count(), 24);
    }

    #[test]
    fn rank_0_is_one_element() {
        let one = Layout::contiguous(&[]);
        assert_eq!(Loops::merged(&one, &one, 8)[..], [Loop { extent: 1, to: 8, from: 8 }]);
    }
}
