//! The handle of a row and the table of all rows.

use super::{Call, OpInfo, families};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::LazyLock;

/// A handle of a row, compared, printed and stored by name.
#[derive(Clone, Copy)]
pub struct Op(&'static OpInfo);

static TABLE: LazyLock<Vec<Op>> = LazyLock::new(|| families().iter().flat_map(|rows| rows.iter().map(Op)).collect());

static BY_NAME: LazyLock<HashMap<&'static str, Op>> = LazyLock::new(|| TABLE.iter().map(|op| (op.name, *op)).collect());

/// Every row, in the order of the documentation.
pub fn table() -> &'static [Op] {
    &TABLE
}

impl Op {
    /// The row of this name.
    ///
    /// # Panics
    /// If there is none: names come from this crate or have been looked up with [`Op::find`].
    pub fn named(name: &str) -> Op {
        Op::find(name).unwrap_or_else(|| panic!("no op is called `{name}`"))
    }

    /// Looks a row up by name.
    pub fn find(name: &str) -> Option<Op> {
        BY_NAME.get(name).copied()
    }

    /// The row a method call `x.name(..)` means.
    pub fn method(name: &str) -> Option<Op> {
        Op::find(name).filter(|op| matches!(op.call, Call::Method | Call::Mutating))
    }

    /// The row an associated function `Tensor::name(..)` means.
    pub fn function(name: &str) -> Option<Op> {
        Op::find(name).filter(|op| op.call == Call::Function)
    }

    /// The row an operator such as `+` means, with one operand or two.
    pub fn operator(symbol: &str, operands: usize) -> Option<Op> {
        table().iter().find(|op| op.operator == Some(symbol) && op.params.len() + 1 == operands).copied()
    }
}

impl Deref for Op {
    type Target = OpInfo;
    fn deref(&self) -> &OpInfo {
        self.0
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Op {}

impl std::hash::Hash for Op {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let name = String::deserialize(d)?;
        Op::find(&name).ok_or_else(|| serde::de::Error::custom(format!("no op is called `{name}`")))
    }
}
