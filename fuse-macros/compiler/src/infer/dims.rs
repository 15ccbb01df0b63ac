//! Solves the named extents of a signature.

use crate::parse::DimAt;
use crate::types::{Dim, Sym};
use proc_macro2::TokenStream;
use std::collections::BTreeSet;

/// An extent of a parameter with the formula `#[dims]` gives it.
pub struct Extent {
    /// The formula.
    pub dim: Dim,
    /// Which extent.
    pub at: DimAt,
    /// The formula as written.
    pub tokens: TokenStream,
}

/// All named extents of a signature.
#[derive(Default)]
pub struct NamedDims {
    /// In the order of the signature.
    pub extents: Vec<Extent>,
}

/// How a name gets its value: `factor * sym + offset` is the extent.
pub struct Definition {
    /// The name.
    pub sym: Sym,
    /// See above.
    pub factor: i64,
    /// See above.
    pub offset: i64,
    /// The extent.
    pub extent: DimAt,
}

/// What the entry of the function does.
#[derive(Default)]
pub struct Solution {
    /// Where names get their values.
    pub definitions: Vec<Definition>,
    /// Extents that must equal their formula.
    pub checks: Vec<Extent>,
    /// Extents whose names nothing defines.
    pub unsolved: Vec<Extent>,
}

impl NamedDims {
    /// Defines each name by the first extent that is the name alone, else by one that is linear in it; a tensor that may not be there
    /// defines none. `is_given` tells
    /// symbols that have a value anyhow, such as const parameters.
    pub fn solve(self, is_given: &dyn Fn(Sym) -> bool) -> Solution {
        let mut solution = Solution::default();
        let mut defined = BTreeSet::new();
        let mut rest = Vec::new();
        let (optional, extents): (Vec<_>, Vec<_>) = self.extents.into_iter().partition(|extent| extent.at.is_optional);
        for extent in extents {
            match extent.dim {
                Dim::Sym(sym) if !is_given(sym) && defined.insert(sym) => solution.define(sym, 1, 0, extent),
                _ => rest.push(extent),
            }
        }
        loop {
            let before = defined.len();
            let mut open = Vec::new();
            for extent in rest {
                let unknown = unknown_syms(&extent.dim, &|sym| is_given(sym) || defined.contains(&sym));
                match (unknown.as_slice(), linear(&extent.dim)) {
                    ([], _) => solution.checks.push(extent),
                    ([sym], Some((factor, offset))) => {
                        defined.insert(*sym);
                        solution.define(*sym, factor, offset, extent);
                    }
                    _ => open.push(extent),
                }
            }
            rest = open;
            if defined.len() == before {
                break;
            }
        }
        let is_known =
            |extent: &Extent| unknown_syms(&extent.dim, &|sym| is_given(sym) || defined.contains(&sym)).is_empty();
        let (checked, open): (Vec<_>, Vec<_>) = optional.into_iter().partition(is_known);
        solution.checks.extend(checked);
        solution.unsolved = rest;
        solution.unsolved.extend(open);
        solution
    }
}

impl Solution {
    fn define(&mut self, sym: Sym, factor: i64, offset: i64, extent: Extent) {
        self.definitions.push(Definition { sym, factor, offset, extent: extent.at });
    }
}

fn unknown_syms(dim: &Dim, known: &dyn Fn(Sym) -> bool) -> Vec<Sym> {
    let mut syms = Vec::new();
    dim.for_each_sym(&mut |sym| {
        if !known(sym) && !syms.contains(&sym) {
            syms.push(sym);
        }
    });
    syms
}

/// `factor` and `offset` of a formula `factor * sym + offset` with one symbol.
fn linear(dim: &Dim) -> Option<(i64, i64)> {
    let mut syms = Vec::new();
    dim.for_each_sym(&mut |sym| syms.push(sym));
    let [sym] = syms.as_slice() else { return None };
    let at = |value| dim.eval(&|s| if s == *sym { value } else { 0 });
    let (offset, factor) = (at(0), at(1) - at(0));
    let linear = Dim::add(Dim::mul(Dim::Const(factor), Dim::Sym(*sym)), Dim::Const(offset));
    (factor > 0 && linear == *dim).then_some((factor, offset))
}
