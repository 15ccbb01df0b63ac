//! Where the temporaries of a call lie.
//!
//! All of them share one block, and what is over before a result is first written may lie where the result will be, since
//! results are there from the start. Where that would take more than asking for everything when it is needed, it is asked
//! for when it is needed: a tape never holds more at a time than its call step by step.

use std::cmp::Reverse;
use std::ops::Range;

/// Every temporary starts at a multiple of this, as the pool of a GPU aligns.
const ALIGN: usize = 256;

/// Memory that a call needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// How much.
    pub bytes: usize,
    /// The launches it is needed for. Of a result that is the first one that writes it and all behind.
    pub ops: Range<usize>,
    /// Whether it is a result.
    pub result: bool,
}

/// Memory that is asked for in one piece, and the launches it is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// How much.
    pub bytes: usize,
    /// From the launch before which it is asked for to the one before which it is let go.
    pub ops: Range<usize>,
}

/// Where everything lies.
#[derive(Debug)]
pub(super) struct Memory {
    /// In the order in which they are asked for.
    pub blocks: Vec<Block>,
    /// The block of every need and where it starts in it.
    pub places: Vec<(usize, usize)>,
    /// Whether blocks come and go between the launches.
    pub stepwise: bool,
}

/// Finds places for the needs of a call of so many launches.
pub(super) fn plan(needs: &[Need], launches: usize) -> Memory {
    let shared = shared(needs, launches);
    if shared.held() <= peak(needs, launches) { shared } else { stepwise(needs) }
}

impl Memory {
    /// How much all blocks take together.
    fn held(&self) -> usize {
        self.blocks.iter().map(|block| aligned(block.bytes)).sum()
    }
}

fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN)
}

/// The most bytes in use before one launch, where everything is there only as long as it is needed.
fn peak(needs: &[Need], launches: usize) -> usize {
    let in_use = |op| needs.iter().filter(|need| need.ops.contains(&op)).map(|need| aligned(need.bytes)).sum::<usize>();
    (0..launches.max(1)).map(in_use).max().unwrap_or(0)
}

/// A block for each need, as long as it lasts.
fn stepwise(needs: &[Need]) -> Memory {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|&need| needs[need].ops.start);
    let blocks = order.iter().map(|&need| Block { bytes: needs[need].bytes, ops: needs[need].ops.clone() }).collect();
    let mut places = vec![(0, 0); needs.len()];
    order.iter().enumerate().for_each(|(block, &need)| places[need] = (block, 0));
    Memory { blocks, places, stepwise: true }
}

/// A block for each result and one for what finds no room in those: by the best of a few orders in which temporaries may be
/// given a place. In a chain of layers the last temporary decides where those before it can be.
pub(super) fn shared(needs: &[Need], launches: usize) -> Memory {
    let from_the_end = |need: &Need| (Reverse(need.ops.start), Reverse(need.bytes));
    let by_size = |need: &Need| (Reverse(need.bytes), Reverse(need.ops.start));
    let mut order: Vec<usize> = (0..needs.len()).filter(|&need| !needs[need].result).collect();
    order.sort_by_key(|&need| from_the_end(&needs[need]));
    let first = shared_in(&order, needs, launches);
    order.sort_by_key(|&need| by_size(&needs[need]));
    let second = shared_in(&order, needs, launches);
    if second.held() < first.held() { second } else { first }
}

fn shared_in(order: &[usize], needs: &[Need], launches: usize) -> Memory {
    let whole = |bytes| Block { bytes, ops: 0..launches };
    let mut places = vec![(0, 0); needs.len()];
    let mut pools: Vec<Pool> = Vec::new();
    for (need, place) in needs.iter().zip(&mut places).filter(|(need, _)| need.result) {
        *place = (pools.len(), 0);
        pools.push(Pool { room: need.bytes, taken: vec![(need.ops.clone(), 0..need.bytes)] });
    }
    let results = pools.len();
    pools.push(Pool { room: usize::MAX, taken: Vec::new() });
    for &need in order {
        let take = |(pool, of): (usize, &mut Pool)| Some((pool, of.take(&needs[need])?));
        places[need] = pools.iter_mut().enumerate().find_map(take).expect("the last pool has room");
    }
    let mut blocks: Vec<Block> = pools[..results].iter().map(|pool| whole(pool.room)).collect();
    let rest = pools[results].taken.iter().map(|(_, bytes)| bytes.end).max();
    blocks.extend(rest.map(whole));
    Memory { blocks, places, stepwise: false }
}

/// A block while it is filled: what is taken by whom.
struct Pool {
    room: usize,
    taken: Vec<(Range<usize>, Range<usize>)>,
}

impl Pool {
    /// The lowest place with room for as long as it is needed.
    fn take(&mut self, need: &Need) -> Option<usize> {
        let meanwhile = |ops: &Range<usize>| ops.start < need.ops.end && need.ops.start < ops.end;
        let mut taken: Vec<&Range<usize>> =
            self.taken.iter().filter(|(ops, _)| meanwhile(ops)).map(|(_, bytes)| bytes).collect();
        taken.sort_by_key(|bytes| bytes.start);
        let mut start = 0;
        for bytes in taken {
            if start + need.bytes <= bytes.start {
                break;
            }
            start = start.max(aligned(bytes.end));
        }
        let end = start.checked_add(need.bytes).filter(|&end| end <= self.room)?;
        self.taken.push((need.ops.clone(), start..end));
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(bytes: usize, ops: Range<usize>) -> Need {
        Need { bytes, ops, result: false }
    }

    fn result(bytes: usize, ops: Range<usize>) -> Need {
        Need { bytes, ops, result: true }
    }

    #[test]
    fn temporaries_that_are_never_there_together_share_memory() {
        let memory = plan(&[temporary(512, 0..2), temporary(512, 1..3), temporary(512, 2..4), result(512, 3..4)], 4);
        assert_eq!(memory.places, [(1, 0), (0, 0), (1, 0), (0, 0)]);
        assert_eq!(memory.blocks.iter().map(|block| block.bytes).collect::<Vec<_>>(), [512, 512]);
    }

    #[test]
    fn what_would_take_more_at_a_time_is_asked_for_when_it_is_needed() {
        let memory = plan(&[temporary(4096, 0..2), temporary(4096, 1..3), result(512, 2..3)], 3);
        assert!(memory.stepwise);
        assert_eq!(memory.blocks[2], Block { bytes: 512, ops: 2..3 });
    }

    #[test]
    fn random_needs_never_overlap_and_never_take_more_than_they_must() {
        let mut state = 7u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        for _ in 0..2000 {
            let launches = 1 + below(12);
            let needs: Vec<Need> = (0..1 + below(14))
                .map(|_| {
                    let (bytes, start, result) = (below(5000), below(launches), below(4) == 0);
                    let end = if result { launches } else { start + 1 + below(launches - start) };
                    Need { bytes, ops: start..end, result }
                })
                .collect();
            check(&needs, &plan(&needs, launches), launches);
            check(&needs, &shared(&needs, launches), launches);
            let planned = plan(&needs, launches);
            let held: usize = match planned.stepwise {
                true => peak(&needs, launches),
                false => planned.blocks.iter().map(|block| aligned(block.bytes)).sum(),
            };
            assert!(held <= peak(&needs, launches), "{needs:?}");
        }
    }

    /// Every need lies in its block while the block is there, and apart from all that are there with it.
    fn check(needs: &[Need], memory: &Memory, launches: usize) {
        for (k, need) in needs.iter().enumerate() {
            let (block, start) = memory.places[k];
            let inside = &memory.blocks[block];
            assert!(start.is_multiple_of(ALIGN) && start + need.bytes <= inside.bytes, "{needs:?}");
            assert!(inside.ops.start <= need.ops.start && need.ops.end <= inside.ops.end.min(launches), "{needs:?}");
            for (other, place) in needs.iter().zip(&memory.places).skip(k + 1) {
                let together = need.ops.start < other.ops.end && other.ops.start < need.ops.end;
                let apart = start + need.bytes <= place.1 || place.1 + other.bytes <= start;
                assert!(!together || block != place.0 || apart, "{needs:?} {memory:?}");
            }
        }
    }
}
