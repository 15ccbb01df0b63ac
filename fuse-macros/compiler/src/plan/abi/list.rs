//! One launch of a map for many sets of arguments: a list of tensors of different extents in one kernel.
//!
//! The one argument of the kernel is a table of the arguments that each member would be launched with alone, and of the
//! block behind its last one. Members must need the same variant of the text.

use super::{Variant, draws, ends, may_fault};
use crate::plan::{Kernel, Kind, Plan, Step};

/// How many members a table may have room for; every number is a text of its own.
pub const ROOMS: [usize; 3] = [8, 32, 128];

/// The kernel of a plan that can be launched for a list: a map that cannot fault, draws nothing and is no turn, alone in its plan.
pub fn kernel(plan: &Plan) -> Option<&Kernel> {
    let [Step::Kernel(kernel)] = plan.steps.as_slice() else { return None };
    (kernel.kind == Kind::Map && !kernel.asks && !kernel.heeds && !may_fault(kernel) && draws(kernel).is_empty())
        .then_some(kernel)
}

/// The room of the tables that so many members with arguments of `bytes` are launched with, if a kernel takes up to `most` bytes.
///
/// There may be more members than room: then it takes several launches.
pub fn room(members: usize, bytes: usize, most: usize) -> usize {
    let possible = ROOMS.into_iter().filter(|room| table_bytes(*room, bytes) <= most);
    let enough = possible.clone().find(|room| *room >= members);
    enough.or(possible.max()).unwrap_or(ROOMS[0])
}

/// The defines that specialise the text for a variant and a room.
pub fn defines(kernel: &Kernel, variant: &Variant, room: usize) -> Vec<String> {
    let mut defines = variant.defines(kernel, &[]);
    defines.push(format!("LIST={room}"));
    defines
}

/// The table: the packed arguments of every member and how many blocks it takes. The rest is room that no block looks at.
pub fn table<'a>(room: usize, members: impl IntoIterator<Item = (&'a [u8], u32)>) -> Vec<u8> {
    let (args, blocks): (Vec<&[u8]>, Vec<u32>) = members.into_iter().unzip();
    let mut table = ends(room, blocks);
    let each = args.first().map_or(0, |args| args.len().next_multiple_of(ALIGN));
    for args in args {
        table.extend(args);
        table.resize(table.len().next_multiple_of(ALIGN), 0);
    }
    table.resize(room * (4 + each), 0);
    table
}

/// Arguments have addresses among them.
const ALIGN: usize = 8;

fn table_bytes(room: usize, bytes: usize) -> usize {
    room * (4 + bytes.next_multiple_of(ALIGN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_ends_of_all_members_then_their_arguments() {
        let table = table(8, [([1u8; 12].as_slice(), 3), (&[2u8; 12], 1)]);
        let ends: Vec<u32> = table[..32].chunks(4).map(|end| u32::from_ne_bytes(end.try_into().unwrap())).collect();
        assert_eq!(ends, [3, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(table.len(), table_bytes(8, 12));
        assert_eq!((table[32 + 11], table[32 + 12], table[32 + 16]), (1, 0, 2));
    }

    #[test]
    fn the_room_is_the_smallest_that_is_enough_and_fits() {
        assert_eq!(room(3, 100, 32764), 8);
        assert_eq!(room(33, 100, 32764), 128);
        assert_eq!(room(500, 100, 32764), 128);
        assert_eq!(room(500, 300, 32764), 32);
        assert_eq!(room(500, 100, 4096), 32);
    }
}
