//! A stand-in for a GPU that notes what it is asked to do, for tests of the dispatch path.
//!
//! It gives out addresses nothing lies at, as many bytes as an H200 has; what is read from them is 0.

use super::cache::Key;
use super::driver::{Backend, Context};
use super::graph::{Node, Work};
use super::lanes::Lane;
use super::matmul::Matmul;
use super::module::Function;
use super::once::lock;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The number of the recording device; no machine has so many.
pub(crate) const RECORDER: usize = u32::MAX as usize;

/// Something a recording context was asked to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Recorded {
    /// A kernel.
    Launch {
        /// The name of the function.
        entry: Box<str>,
        /// Blocks in the grid.
        grid: [u32; 3],
        /// Threads in a block.
        block: [u32; 3],
        /// Dynamic shared memory in bytes.
        shared: u32,
        /// The packed arguments.
        args: Box<[u8]>,
    },
    /// A product of matrices by the library.
    Matmul(Matmul),
    /// What follows in its graph is repeated.
    Loop,
    /// Of what follows in its graph one part is done.
    Branch,
    /// A graph.
    Graph {
        /// What it launches.
        launches: Vec<Recorded>,
        /// For each launch those that it waits for.
        after: Vec<Vec<usize>>,
    },
    /// What follows is on another stream.
    On(Lane),
    /// A stream waits for another.
    Wait {
        /// Who waits.
        lane: Lane,
        /// For whom.
        other: Lane,
    },
}

/// The notes, the programs it was asked to load, and its memory.
pub(super) struct Recorder {
    notes: Mutex<Notes>,
    programs: Mutex<HashSet<Key>>,
    compiles: AtomicBool,
    /// Whether a launch is said to take as many microseconds as it has threads a block.
    times_by_threads: AtomicBool,
    next_address: AtomicU64,
    in_use: AtomicUsize,
    memory: usize,
}

/// Notes as they are taken, which is to cost little: what a call costs the host is measured on the recorder.
#[derive(Default)]
struct Notes {
    list: Vec<Note>,
    /// The packed arguments of all launches.
    bytes: Vec<u8>,
    /// The stream of the last note.
    lane: Lane,
}

enum Note {
    Launch { function: Function, grid: [u32; 3], block: [u32; 3], shared: u32, args: Range<usize> },
    Matmul(Matmul),
    Graph(Vec<Node>),
    On(Lane),
    Wait(Lane, Lane),
}

impl Notes {
    /// Notes something on a stream.
    fn push(&mut self, lane: Lane, note: Note) {
        if lane != self.lane {
            self.lane = lane;
            self.list.push(Note::On(lane));
        }
        self.list.push(note);
    }

    /// The notes as tests read them.
    fn read(self) -> Vec<Recorded> {
        let read = |note| match note {
            Note::Launch { function, grid, block, shared, args } => {
                Recorded::Launch { entry: function.entry().into(), grid, block, shared, args: self.bytes[args].into() }
            }
            Note::Matmul(matmul) => Recorded::Matmul(matmul),
            Note::On(lane) => Recorded::On(lane),
            Note::Wait(lane, other) => Recorded::Wait { lane, other },
            Note::Graph(nodes) => {
                let after = nodes.iter().map(|node| node.after.clone()).collect();
                Recorded::Graph { launches: nodes.into_iter().filter_map(|node| read_work(node.work)).collect(), after }
            }
        };
        self.list.into_iter().map(read).collect()
    }
}

/// A node as tests read it; like a copy outside of a graph, one inside is not noted.
fn read_work(work: Work) -> Option<Recorded> {
    match work {
        Work::Launch { function, grid, block, shared, args } => {
            Some(Recorded::Launch { entry: function.entry().into(), grid, block, shared, args })
        }
        Work::Product(_, matmul) => Some(Recorded::Matmul(matmul)),
        Work::Loop { .. } => Some(Recorded::Loop),
        Work::Branch { .. } => Some(Recorded::Branch),
        Work::Copy { .. } => None,
    }
}

impl Recorder {
    /// No notes yet, and so many bytes of memory.
    pub(super) fn new(memory: usize) -> Recorder {
        Recorder {
            notes: Mutex::default(),
            programs: Mutex::default(),
            compiles: AtomicBool::new(false),
            times_by_threads: AtomicBool::new(false),
            next_address: AtomicU64::new(0x7000_0000_0000),
            in_use: AtomicUsize::new(0),
            memory,
        }
    }

    /// An address nothing lies at, aligned as the pool of a GPU aligns, or `None` where the memory is used up; addresses are
    /// never reused.
    pub(super) fn allocate(&self, len: usize) -> Option<u64> {
        let room = |used: usize| used.checked_add(len).filter(|&used| used <= self.memory);
        self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(self.next_address.fetch_add((len as u64).next_multiple_of(256), Ordering::Relaxed))
    }

    /// Takes `len` bytes back.
    pub(super) fn free(&self, len: usize) {
        self.in_use.fetch_sub(len, Ordering::Relaxed);
    }

    /// The bytes given out and not taken back.
    pub(super) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Whether programs are compiled, and kept on disk, as for a GPU.
    pub(super) fn compiles(&self) -> bool {
        self.compiles.load(Ordering::Relaxed)
    }

    /// Notes that a program would be compiled.
    pub(super) fn note_program(&self, key: Key) {
        lock(&self.programs).insert(key);
    }

    /// Notes a launch.
    pub(super) fn launch(
        &self,
        lane: Lane,
        f: &Function,
        (grid, block, shared): ([u32; 3], [u32; 3], u32),
        args: &[u8],
    ) {
        let notes = &mut *lock(&self.notes);
        let start = notes.bytes.len();
        notes.bytes.extend_from_slice(args);
        let args = start..notes.bytes.len();
        notes.push(lane, Note::Launch { function: f.clone(), grid, block, shared, args });
    }

    /// Notes a product by the library.
    pub(super) fn multiply(&self, lane: Lane, matmul: &Matmul) {
        lock(&self.notes).push(lane, Note::Matmul(*matmul));
    }

    /// Notes a graph.
    pub(super) fn graph(&self, lane: Lane, nodes: &[Node]) {
        lock(&self.notes).push(lane, Note::Graph(nodes.to_vec()));
    }

    /// Notes that a stream waits for another.
    pub(super) fn wait(&self, lane: Lane, other: Lane) {
        lock(&self.notes).list.push(Note::Wait(lane, other));
    }
}

impl Context {
    /// Makes a recording context compile the programs it is asked to load.
    pub(crate) fn compile_recorded(&self) {
        if let Backend::Recording(recorder) = &self.backend {
            recorder.compiles.store(true, Ordering::Relaxed);
        }
    }

    /// Makes a recording context say that a launch takes as many microseconds as it has threads a block; without this, all take
    /// one.
    pub(crate) fn time_by_threads(&self) {
        if let Backend::Recording(recorder) = &self.backend {
            recorder.times_by_threads.store(true, Ordering::Relaxed);
        }
    }

    /// How long the latest launch would have taken, in microseconds.
    pub(super) fn recorded_time(&self) -> f64 {
        let Backend::Recording(recorder) = &self.backend else { return 1.0 };
        match lock(&recorder.notes).list.last() {
            Some(Note::Launch { block, .. }) if recorder.times_by_threads.load(Ordering::Relaxed) => {
                f64::from(block[0])
            }
            _ => 1.0,
        }
    }

    /// How many programs a recording context was asked to load; 0 on a GPU.
    pub(crate) fn recorded_programs(&self) -> usize {
        match &self.backend {
            Backend::Recording(recorder) => lock(&recorder.programs).len(),
            _ => 0,
        }
    }

    /// Takes what a recording context has noted since the last time; nothing on a GPU.
    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        match &self.backend {
            Backend::Recording(recorder) => std::mem::take(&mut *lock(&recorder.notes)).read(),
            _ => Vec::new(),
        }
    }
}
