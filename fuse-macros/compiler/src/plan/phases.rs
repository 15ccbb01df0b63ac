//! In which order the statements of a kernel run.
//!
//! A kernel with reductions walks its rows in phases: a phase computes the elementwise values that its reductions and
//! stores need, then the reductions finish and the values of the row that follow from them are known to the next phase.
//! Both back ends and the choice of a kernel's variant read the phases from here, so that they agree.

use super::{Expr, Kernel, Level, StmtId, Store};

/// One walk over the points of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase {
    /// Values of the row known before the walk, in program order.
    pub before: Vec<StmtId>,
    /// Elementwise values computed in this walk for the first time, in program order.
    pub fresh: Vec<StmtId>,
    /// Elementwise values of earlier walks that this one uses, in program order.
    pub kept: Vec<StmtId>,
    /// Reductions over the points.
    pub reduces: Vec<StmtId>,
    /// Stores of elementwise values, by number.
    pub stores: Vec<usize>,
}

/// The statements of a kernel in the order they run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    /// Values that do not depend on the position: constants, host scalars, leaves of one element and what follows from them.
    pub uniform: Vec<StmtId>,
    /// The walks, at least one where there is something to do a point.
    pub walks: Vec<Phase>,
    /// Values of the row known after the last walk.
    pub after: Vec<StmtId>,
    /// Values of the row that are reduced over all rows.
    pub staged: Vec<StmtId>,
    /// Statements over all rows, in program order.
    pub all: Vec<StmtId>,
}

impl Phases {
    /// The phases of a kernel.
    pub fn of(kernel: &Kernel) -> Phases {
        Sorter::new(kernel).sort()
    }

    /// Whether one pass over the points suffices and leaves only values of the row behind.
    pub fn single_pass(&self) -> bool {
        self.walks.len() == 1 && !self.walks[0].reduces.is_empty()
    }

    /// Whether there are statements over all rows.
    pub fn has_finish(&self) -> bool {
        !self.staged.is_empty()
    }

    /// The largest number of elementwise values alive between two walks.
    pub fn kept_values(&self) -> usize {
        let alive = |walk: usize| {
            let later: std::collections::BTreeSet<_> = self.walks[walk..].iter().flat_map(|p| &p.kept).collect();
            later.into_iter().filter(|s| self.walks[..walk].iter().any(|p| p.fresh.contains(s))).count()
        };
        (1..self.walks.len()).map(alive).max().unwrap_or(0)
    }
}

/// What a statement is, once it is known whether it depends on the position.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Uniform,
    Elem,
    Row,
    All,
}

struct Sorter<'a> {
    kernel: &'a Kernel,
    roles: Vec<Role>,
    /// The first walk before or in which a statement can be computed.
    ready: Vec<usize>,
}

impl<'a> Sorter<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        let (mut roles, mut ready): (Vec<Role>, Vec<usize>) = (vec![], vec![]);
        for stmt in &kernel.stmts {
            let operands = stmt.expr.operands();
            let of = |s: &StmtId| roles[s.0 as usize];
            let role = match (&stmt.expr, stmt.level) {
                (expr, _) if expr.is_uniform() => Role::Uniform,
                (_, Level::Elem) => Role::Elem,
                (_, Level::Row) => Role::Row,
                (Expr::Reduce(..), Level::All) => Role::All,
                (_, Level::All) if operands.iter().all(|s| of(s) == Role::Uniform) => Role::Uniform,
                (_, Level::All) => Role::All,
            };
            let walk = |s: &StmtId| {
                let after = matches!(kernel.stmt(*s).expr, Expr::Reduce(..)) && of(s) == Role::Row;
                ready[s.0 as usize] + usize::from(after)
            };
            let first = operands.iter().map(walk).max().unwrap_or(0);
            roles.push(role);
            ready.push(first);
        }
        Sorter { kernel, roles, ready }
    }

    fn sort(&self) -> Phases {
        let role_is = |role: Role| self.kernel.ids().filter(move |s| self.role(*s) == role);
        let reduces: Vec<StmtId> = role_is(Role::Row).filter(|s| self.is_reduce(*s)).collect();
        let elem_store = |store: &Store| self.kernel.store_level(store) == Level::Elem;
        let stores: Vec<usize> =
            (0..self.kernel.stores.len()).filter(|&k| elem_store(&self.kernel.stores[k])).collect();
        let walk_of_store = |k: usize| {
            let operands = self.kernel.store_operands(&self.kernel.stores[k]);
            operands.into_iter().map(|s| self.available(s)).max().unwrap_or(0)
        };
        let last = reduces.iter().map(|s| self.ready(*s)).chain(stores.iter().map(|&k| walk_of_store(k))).max();

        let mut walks: Vec<Phase> = vec![];
        for walk in 0..last.map_or(0, |w| w + 1) {
            let mut phase = Phase {
                before: role_is(Role::Row).filter(|s| !self.is_reduce(*s) && self.ready(*s) == walk).collect(),
                reduces: reduces.iter().copied().filter(|s| self.ready(*s) == walk).collect(),
                stores: stores.iter().copied().filter(|&k| walk_of_store(k) == walk).collect(),
                ..Phase::default()
            };
            self.collect_elements(&walks, &mut phase);
            walks.push(phase);
        }
        let walked = walks.len();
        Phases {
            uniform: role_is(Role::Uniform).collect(),
            after: role_is(Role::Row).filter(|s| !self.is_reduce(*s) && self.ready(*s) >= walked).collect(),
            staged: self.staged(),
            all: role_is(Role::All).collect(),
            walks,
        }
    }

    /// Finds the elementwise statements a walk needs: fresh ones, and the nearest ones that earlier walks computed.
    fn collect_elements(&self, earlier: &[Phase], phase: &mut Phase) {
        let stores = phase.stores.iter().flat_map(|&k| self.kernel.store_operands(&self.kernel.stores[k]));
        let reduced = phase.reduces.iter().flat_map(|s| self.kernel.stmt(*s).expr.operands());
        let mut open: Vec<StmtId> = stores.chain(reduced).collect();
        while let Some(stmt) = open.pop() {
            let seen = phase.fresh.contains(&stmt) || phase.kept.contains(&stmt);
            if self.role(stmt) != Role::Elem || seen {
                continue;
            }
            if earlier.iter().any(|p| p.fresh.contains(&stmt)) {
                phase.kept.push(stmt);
            } else {
                phase.fresh.push(stmt);
                open.extend(self.kernel.stmt(stmt).expr.operands());
            }
        }
        phase.fresh.sort();
        phase.kept.sort();
    }

    fn staged(&self) -> Vec<StmtId> {
        let over_rows = |s: &StmtId| self.role(*s) == Role::All && self.is_reduce(*s);
        let mut staged: Vec<StmtId> =
            self.kernel.ids().filter(over_rows).flat_map(|s| self.kernel.stmt(s).expr.operands()).collect();
        staged.sort();
        staged.dedup();
        staged
    }

    fn role(&self, s: StmtId) -> Role {
        self.roles[s.0 as usize]
    }

    fn ready(&self, s: StmtId) -> usize {
        self.ready[s.0 as usize]
    }

    /// The first walk that can use a statement.
    fn available(&self, s: StmtId) -> usize {
        self.ready(s) + usize::from(self.is_reduce(s) && self.role(s) == Role::Row)
    }

    fn is_reduce(&self, s: StmtId) -> bool {
        matches!(self.kernel.stmt(s).expr, Expr::Reduce(..))
    }
}
