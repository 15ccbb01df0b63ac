//! The faults of a launch, and which of them is told.

use crate::error::Error;
use fuse_compiler::plan::{Kernel, Plan};
use std::sync::{Mutex, PoisonError};

/// An index out of range or an integer division by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A position outside of the axis it indexes.
    Index {
        /// The number of the operand: leaves, then stores.
        operand: u32,
        /// The position.
        index: i64,
        /// The extent of the axis.
        extent: usize,
    },
    /// An integer division by zero, by the number of the statement.
    Division(u32),
}

/// The error of a fault, and where the op stands that it is one of.
pub struct Faulted {
    /// An index into the plan's places, which are in program order.
    pub place: u32,
    /// The error.
    pub error: Error,
}

impl Faulted {
    /// The one that the program comes to first.
    pub fn earliest(faults: impl IntoIterator<Item = Faulted>) -> Option<Faulted> {
        faults.into_iter().min_by_key(|fault| fault.place)
    }
}

impl Fault {
    /// The fault as an error of the op that it is one of.
    fn error(self, plan: &Plan, kernel: &Kernel) -> Faulted {
        let place = self.place(kernel);
        let op = plan.places.get(place as usize).map(|place| place.op.as_str());
        let name = op.filter(|op| !op.is_empty()).unwrap_or(&plan.name);
        let error = match self {
            Fault::Division(_) => division_by_zero(name),
            Fault::Index { index, extent, .. } => index_out_of_range(name, index, extent as i64),
        };
        Faulted { place, error }
    }

    /// The place of what divides, or reads or writes at computed positions.
    fn place(self, kernel: &Kernel) -> u32 {
        let place = match self {
            Fault::Division(stmt) => Some(kernel.stmts[stmt as usize].place),
            Fault::Index { operand, .. } => match (operand as usize).checked_sub(kernel.leaves.len()) {
                None => kernel.leaves[operand as usize].indexed.map(|lookup| lookup.place),
                Some(store) => kernel.stores[store].scatter.as_ref().map(|scatter| scatter.place),
            },
        };
        place.expect("an operand at computed positions says which op it is for")
    }

    /// Whether two are faults of one operand or statement.
    fn is_alike(self, other: Fault) -> bool {
        match (self, other) {
            (Fault::Index { operand, .. }, Fault::Index { operand: other, .. }) => operand == other,
            (Fault::Division(stmt), Fault::Division(other)) => stmt == other,
            _ => false,
        }
    }

    /// Of several positions the lowest is told, whichever thread comes first.
    fn lowest(self, other: Fault) -> Fault {
        match (self, other) {
            (Fault::Index { index, .. }, Fault::Index { index: another, .. }) if another < index => other,
            _ => self,
        }
    }
}

/// The error of an index, by its op.
pub(super) fn index_out_of_range(name: &str, index: i64, extent: i64) -> Error {
    Error::index(name, format!("index {index} is out of range for extent {extent}"))
}

/// The error of an integer division, by its op.
pub(super) fn division_by_zero(name: &str) -> Error {
    Error::index(name, "an integer is divided by zero")
}

/// Where the kernels of a call note their faults. Noting is rare, so it may be slow.
#[derive(Debug, Default)]
pub struct FaultCell(Mutex<Vec<Fault>>);

impl FaultCell {
    /// A cell without a fault.
    pub const fn new() -> Self {
        FaultCell(Mutex::new(Vec::new()))
    }

    /// The fault of the op that the program comes to first, if there was one.
    pub fn first(&self, plan: &Plan, kernel: &Kernel) -> Option<Faulted> {
        let faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Faulted::earliest(faults.iter().map(|fault| fault.error(plan, kernel)))
    }

    /// Notes an index out of range.
    #[cold]
    #[inline(never)]
    pub fn note_index(&self, operand: u32, index: i64, extent: usize) {
        self.note(Fault::Index { operand, index, extent });
    }

    /// Notes an integer division by zero.
    #[cold]
    #[inline(never)]
    pub fn note_division(&self, stmt: u32) {
        self.note(Fault::Division(stmt));
    }

    fn note(&self, fault: Fault) {
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match faults.iter_mut().find(|known| known.is_alike(fault)) {
            Some(known) => *known = known.lowest(fault),
            None => faults.push(fault),
        }
    }
}
