//! Expensive values of a row that wait in the memory of results for what reads them, in place of being computed again.
//!
//! The memory of a result holds one value after the other, and the result in the end. A value must not be read once the
//! next one has come.

use super::scope::Scope;
use crate::plan::abi::store_dtype;
use crate::plan::{Level, StmtId};
use crate::types::DType;
use std::collections::BTreeSet;

/// A value that waits.
#[derive(Clone)]
pub(super) struct Parked {
    pub stmt: StmtId,
    /// The walk that computes it, before anything else.
    pub walk: usize,
    /// The store whose memory it waits in.
    pub store: usize,
    /// Whether it is what that store is for.
    pub is_result: bool,
}

/// What waits in a kernel, in the order in which it is computed.
pub(super) fn of(scope: &Scope<'_>) -> Vec<Parked> {
    let mut parking = Parking { scope, all: vec![] };
    parking.results();
    parking.values();
    parking.all.sort_by_key(|p| (p.walk, p.stmt));
    parking.all
}

/// What reads values of a walk.
#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Store(usize),
    Reduction(StmtId),
    /// A value that waits, where it is computed.
    Parked(StmtId),
}

struct Parking<'a> {
    scope: &'a Scope<'a>,
    all: Vec<Parked>,
}

impl<'a> Parking<'a> {
    /// Results that are read besides, by the walk that computes them or a later one.
    fn results(&mut self) {
        let walks = &self.scope.phases.walks;
        for &store in walks.iter().flat_map(|walk| &walk.stores) {
            let stmt = self.scope.kernel.stores[store].value;
            let Some(walk) = walks.iter().position(|p| p.fresh.contains(&stmt)) else { continue };
            let is_read = self.read_from(walk, Reader::Store(store)).contains(&stmt);
            if is_read && self.is_heavy(stmt) {
                self.park(Parked { stmt, walk, store, is_result: true });
            }
        }
    }

    /// Values that a later walk needs, too.
    fn values(&mut self) {
        let walks = &self.scope.phases.walks;
        for (walk, phase) in walks.iter().enumerate() {
            let needed_later = |s: &&StmtId| walks[walk + 1..].iter().any(|p| p.kept.contains(s));
            for &stmt in phase.fresh.iter().filter(needed_later) {
                let mut stores = walks.iter().flat_map(|walk| &walk.stores);
                if self.is_heavy(stmt) {
                    stores.any(|&store| self.park(Parked { stmt, walk, store, is_result: false }));
                }
            }
        }
    }

    /// Lets a value wait, if it can there.
    fn park(&mut self, new: Parked) -> bool {
        let fits = !self.waits(new.stmt) && self.holds(new.store, new.stmt);
        let with = || Parking { all: [&self.all[..], std::slice::from_ref(&new)].concat(), ..*self };
        let is_possible = fits && with().is_sound();
        if is_possible {
            self.all.push(new);
        }
        is_possible
    }

    fn waits(&self, stmt: StmtId) -> bool {
        self.all.iter().any(|p| p.stmt == stmt)
    }

    /// Whether a store's memory holds a value as it is.
    fn holds(&self, store: usize, stmt: StmtId) -> bool {
        let target = &self.scope.kernel.stores[store];
        let dtype = store_dtype(self.scope.plan, target);
        let is_plain = target.scatter.is_none() && matches!(dtype, DType::F32 | DType::F64);
        is_plain && dtype == self.scope.kernel.stmt(stmt).dtype.compute()
    }

    /// Whether nothing is read once something else lies there.
    fn is_sound(&self) -> bool {
        self.all.iter().all(|p| {
            let next = self.all.iter().filter(|q| q.store == p.store && q.stmt != p.stmt && q.walk >= p.walk);
            let is_over = match next.min_by_key(|q| q.walk) {
                Some(next) => {
                    next.walk > p.walk && !self.read_from(next.walk, Reader::Parked(next.stmt)).contains(&p.stmt)
                }
                // A walk writes its results last.
                None => {
                    p.is_result || !self.read_from(self.written(p.store) + 1, Reader::Store(p.store)).contains(&p.stmt)
                }
            };
            is_over && (!p.is_result || self.all.iter().all(|q| q.store != p.store || q.walk <= p.walk))
        })
    }

    /// The walk that writes a result.
    fn written(&self, store: usize) -> usize {
        let walks = &self.scope.phases.walks;
        walks.iter().position(|walk| walk.stores.contains(&store)).expect("a walk writes it")
    }

    /// The elementwise values that are read from a walk on, by all readers but one. What waits is read where it waits.
    fn read_from(&self, first: usize, but: Reader) -> BTreeSet<StmtId> {
        let walks = self.scope.phases.walks.iter().skip(first);
        let of_walks = walks.flat_map(|walk| {
            let stores = walk.stores.iter().copied().filter(|store| !self.is_done(*store)).map(Reader::Store);
            stores.chain(walk.reduces.iter().copied().map(Reader::Reduction))
        });
        let parked = self.all.iter().filter(|p| p.walk >= first).map(|p| Reader::Parked(p.stmt));
        let readers = of_walks.chain(parked).filter(|reader| *reader != but);
        let mut open: Vec<StmtId> = readers.flat_map(|reader| self.operands(reader)).collect();
        let mut read = BTreeSet::new();
        while let Some(stmt) = open.pop() {
            if self.scope.kernel.stmt(stmt).level == Level::Elem && read.insert(stmt) && !self.waits(stmt) {
                open.extend(self.scope.kernel.stmt(stmt).expr.operands());
            }
        }
        read
    }

    /// Whether a result lies in its place before its walk writes any.
    fn is_done(&self, store: usize) -> bool {
        self.all.iter().any(|p| p.is_result && p.store == store)
    }

    fn operands(&self, reader: Reader) -> Vec<StmtId> {
        let kernel = self.scope.kernel;
        match reader {
            Reader::Store(store) => kernel.store_operands(&kernel.stores[store]),
            Reader::Reduction(stmt) | Reader::Parked(stmt) => kernel.stmt(stmt).expr.operands(),
        }
    }

    /// Whether computing an elementwise value again costs more than a load.
    fn is_heavy(&self, stmt: StmtId) -> bool {
        let expr = &self.scope.kernel.stmt(stmt).expr;
        let is_elem = |o: &StmtId| self.scope.kernel.stmt(*o).level == Level::Elem;
        let mut computed = expr.operands().into_iter().filter(|o| is_elem(o) && !self.waits(*o));
        expr.is_heavy() || computed.any(|o| self.is_heavy(o))
    }
}
