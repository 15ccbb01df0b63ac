//! A tape as one CUDA graph, for `mode = "reduce-overhead"`.
//!
//! There are at most [`GRAPHS_OF_A_PLAN`] graphs of a program and [`GRAPHS_IN_ALL`] in the process. A graph that was not called for a while
//! makes room for another; where none can, calls are launched one by one.

use super::run::Values;
use super::{Multiplication, Op, Tape};
use crate::cuda::{Graph, Node, Work};
use crate::error::Result;
use crate::log::{self, Topic};
use fuse_compiler::options::{GRAPHS_IN_ALL, GRAPHS_OF_A_PLAN};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Fewer launches are as fast one by one.
const WORTH_IT: usize = 2;

/// What a launch touches of a place of memory.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub place: u32,
    pub bytes: Range<usize>,
    pub write: bool,
}

/// The graph of a tape, once it has one.
pub(super) struct Replay {
    /// For each launch those it has to wait for.
    after: Vec<Vec<usize>>,
    /// Those that the device repeats or chooses from.
    nested: Option<Nested>,
    graph: Mutex<State>,
    /// When it was last called, in calls of all graphs.
    last_used: AtomicU64,
}

/// Launches that the device repeats, or one of two parts of which it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nested {
    /// The launch that says whether, or which; all behind it belong to it.
    pub at: usize,
    /// The first launch of the second part.
    pub second: usize,
}

impl Nested {
    /// The launch whose part another one is, and which part.
    fn of(self, launch: usize) -> Option<(usize, usize)> {
        (launch > self.at).then_some((self.at, usize::from(launch >= self.second)))
    }
}

enum State {
    /// None yet, or none any more; before this time there is no use in asking for one.
    None(u64),
    Built(Graph),
}

/// Tapes that have graphs, with the addresses of their programs.
static KEPT: Mutex<Vec<(usize, Weak<Tape>)>> = Mutex::new(Vec::new());
static CLOCK: AtomicU64 = AtomicU64::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replay {
    /// For launches that touch this much, some of them nested in one; `None` where a graph would gain nothing.
    pub fn of(touches: &[Vec<Touch>], nested: Option<Nested>) -> Option<Replay> {
        (touches.len() >= WORTH_IT).then(|| Replay {
            after: waits(touches, nested),
            nested,
            graph: Mutex::new(State::None(0)),
            last_used: AtomicU64::new(0),
        })
    }

    /// Launches the tape as a graph. `false` where it has to be launched one by one, and nothing was.
    pub fn launch(&self, tape: &Arc<Tape>, program: usize, values: &Values<'_>) -> Result<bool> {
        let now = CLOCK.fetch_add(1, Ordering::Relaxed);
        self.last_used.store(now, Ordering::Relaxed);
        let mut state = lock(&self.graph);
        match &mut *state {
            State::Built(graph) if !graph.is_of_this_stream() => Ok(false),
            State::Built(graph) => {
                (0..).zip(&tape.ops).for_each(|(node, op)| op.update(node, values, graph));
                graph.launch()?;
                Ok(true)
            }
            State::None(until) if now < *until => Ok(false),
            State::None(_) => {
                let graph = if make_room(tape, program, now) { self.build(tape, values)? } else { None };
                let Some(mut graph) = graph else {
                    *state = State::None(now + 4 * GRAPHS_OF_A_PLAN as u64);
                    return Ok(false);
                };
                graph.launch()?;
                *state = State::Built(graph);
                Ok(true)
            }
        }
    }

    fn build(&self, tape: &Arc<Tape>, values: &Values<'_>) -> Result<Option<Graph>> {
        let node = |(k, (op, after)): (usize, (&Op, &Vec<usize>))| {
            let inside = self.nested.and_then(|nested| nested.of(k));
            Node::new(op.work(values), after.clone()).within(inside)
        };
        let graph = Graph::new(&tape.context, tape.ops.iter().zip(&self.after).enumerate().map(node).collect())?;
        let outcome = if graph.is_some() { "is ready" } else { "takes a newer driver" };
        log::line(Topic::Launch, format_args!("a graph of {} launches {outcome}", tape.ops.len()));
        Ok(graph)
    }
}

/// Enters a tape among those with graphs, if need be in the place of one that was not called for long.
fn make_room(tape: &Arc<Tape>, program: usize, now: u64) -> bool {
    let kept = &mut *lock(&KEPT);
    kept.retain(|(_, other)| other.upgrade().is_some_and(|other| Arc::ptr_eq(&other, tape) || other.has_graph()));
    if kept.iter().any(|(_, other)| Weak::ptr_eq(other, &Arc::downgrade(tape))) {
        return true;
    }
    let of_program = kept.iter().filter(|(of, _)| *of == program).count();
    if of_program >= GRAPHS_OF_A_PLAN && !evict(kept, now, |of| of == program) {
        return false;
    }
    if kept.len() >= GRAPHS_IN_ALL && !evict(kept, now, |_| true) {
        return false;
    }
    kept.push((program, Arc::downgrade(tape)));
    true
}

/// Takes away the graph that was not called for longest, if that is a while.
fn evict(kept: &mut Vec<(usize, Weak<Tape>)>, now: u64, among: impl Fn(usize) -> bool) -> bool {
    let of = |(_, tape): &(usize, Weak<Tape>)| tape.upgrade();
    let candidates = kept.iter().enumerate().filter(|(_, entry)| among(entry.0));
    let oldest = candidates.filter_map(|(k, entry)| Some((k, of(entry)?))).min_by_key(|(_, tape)| tape.last_replay());
    let Some((k, tape)) = oldest else { return true };
    if tape.last_replay() + 2 * GRAPHS_OF_A_PLAN as u64 > now || !tape.drop_graph() {
        return false;
    }
    kept.swap_remove(k);
    true
}

impl Tape {
    fn last_replay(&self) -> u64 {
        self.replay.as_ref().map_or(0, |replay| replay.last_used.load(Ordering::Relaxed))
    }

    /// Whether there is a graph, or is going to be.
    fn has_graph(&self) -> bool {
        let Some(replay) = &self.replay else { return false };
        // Who holds the lock is about to use or to make it.
        replay.graph.try_lock().map_or(true, |state| matches!(*state, State::Built(_)))
    }

    /// Takes the graph away, unless it is being used.
    fn drop_graph(&self) -> bool {
        let Some(replay) = &self.replay else { return true };
        let Ok(mut state) = replay.graph.try_lock() else { return false };
        *state = State::None(0);
        true
    }
}

impl Op {
    fn work(&self, values: &Values<'_>) -> Work {
        match self {
            Op::Launch(launch) => {
                let mut args = launch.args.clone();
                for patch in &launch.patches {
                    let (bytes, len) = values.bytes(&patch.value);
                    args[patch.at as usize..][..len].copy_from_slice(&bytes[..len]);
                }
                let (function, grid, block) = (launch.function.clone(), launch.grid, launch.block);
                Work::Launch { function, grid, block, shared: launch.shared, args }
            }
            Op::Product(multiplication) => {
                let Multiplication { product, .. } = &**multiplication;
                Work::Product(Box::new(product.clone()), multiplication.matmul(values))
            }
            Op::Loop(repeated) => {
                Work::Loop { first: values.address(repeated.first), next: values.address(repeated.next) }
            }
            Op::Branch(decided) => Work::Branch { test: values.address(decided.test) },
            Op::Copy { to, from, bytes } => {
                Work::Copy { to: values.address(*to), from: values.address(*from), bytes: *bytes }
            }
        }
    }

    fn update(&self, node: usize, values: &Values<'_>, graph: &mut Graph) {
        match self {
            Op::Launch(launch) => {
                for patch in &launch.patches {
                    let (bytes, len) = values.bytes(&patch.value);
                    graph.write(node, patch.at as usize, &bytes[..len]);
                }
            }
            Op::Product(multiplication) => graph.multiply(node, multiplication.matmul(values)),
            Op::Loop(repeated) => graph.repeat(node, values.address(repeated.first), values.address(repeated.next)),
            Op::Branch(decided) => graph.decide(node, values.address(decided.test)),
            Op::Copy { to, from, .. } => graph.copy(node, values.address(*to), values.address(*from)),
        }
    }
}

/// The hazards of a tape. What is nested counts, from outside, as one launch that touches all that its parts do, and what is
/// in a part waits only for others in it.
fn waits(touches: &[Vec<Touch>], nested: Option<Nested>) -> Vec<Vec<usize>> {
    let Some(Nested { at, second }) = nested else { return hazards(touches) };
    let whole = touches[at..].concat();
    let mut after = hazards(&[&touches[..at], &[whole]].concat());
    for (start, part) in [(at + 1, &touches[at + 1..second]), (second, &touches[second..])] {
        let own = |waits: Vec<usize>| waits.into_iter().map(|wait| wait + start).collect();
        after.extend(hazards(part).into_iter().map(own));
    }
    after
}

/// For each launch those before it that it has to wait for, without those that one of them waits for.
fn hazards(touches: &[Vec<Touch>]) -> Vec<Vec<usize>> {
    let mut behind: Vec<Vec<bool>> = Vec::with_capacity(touches.len());
    let mut after = Vec::with_capacity(touches.len());
    for (k, own) in touches.iter().enumerate() {
        let (mut waits, mut covered) = (Vec::new(), vec![false; k]);
        for before in (0..k).rev() {
            if !covered[before] && clash(own, &touches[before]) {
                waits.push(before);
                covered[before] = true;
                covered.iter_mut().zip(&behind[before]).for_each(|(covered, &behind)| *covered |= behind);
            }
        }
        waits.reverse();
        after.push(waits);
        behind.push(covered);
    }
    after
}

/// Whether two launches touch the same bytes and one of them writes.
fn clash(a: &[Touch], b: &[Touch]) -> bool {
    let meet = |a: &Touch, b: &Touch| a.place == b.place && a.bytes.start < b.bytes.end && b.bytes.start < a.bytes.end;
    a.iter().any(|a| b.iter().any(|b| (a.write || b.write) && meet(a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(place: u32) -> Touch {
        Touch { place, bytes: 0..100, write: false }
    }

    fn write(place: u32) -> Touch {
        Touch { place, bytes: 0..100, write: true }
    }

    #[test]
    fn launches_wait_for_what_they_read_and_overwrite() {
        let diamond = [
            vec![read(0), write(1)],
            vec![read(1), write(2)],
            vec![read(1), write(3)],
            vec![read(2), read(3), write(4)],
            vec![read(0), write(1)],
        ];
        assert_eq!(hazards(&diamond), [vec![], vec![0], vec![0], vec![1, 2], vec![1, 2]]);
    }

    #[test]
    fn what_is_repeated_waits_as_a_whole() {
        let turns = [vec![write(1)], vec![write(2)], vec![read(2)], vec![read(1), write(3)], vec![read(3), write(1)]];
        let nested = |second| Some(Nested { at: 2, second });
        assert_eq!(waits(&turns, nested(5)), [vec![], vec![], vec![0, 1], vec![], vec![3]]);
        // Of two parts only one is done.
        assert_eq!(waits(&turns, nested(4)), [vec![], vec![], vec![0, 1], vec![], vec![]]);
    }

    #[test]
    fn what_lies_side_by_side_does_not_wait() {
        let part = |bytes| Touch { place: 0, bytes, write: true };
        assert_eq!(
            hazards(&[vec![part(0..256)], vec![part(256..512)], vec![part(0..512)]]),
            [vec![], vec![], vec![0, 1]]
        );
    }
}
