//! Extents as formulas.
//!
//! One expression type serves tensor sizes, grids and byte counts. Every constructor returns a normal form (sums of
//! products, sorted, constants folded, exact divisions cancelled), so that two formulas which are equal as polynomials
//! are equal as values: `(3 * D) / 3 == D` and `a * b == b * a` hold by `==`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A symbol that stands for an extent or a host integer; what it means is in the table beside the graph or plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sym(pub u32);

/// An extent as a formula in symbols, in normal form. Use the constructors, not the variants, to build one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dim {
    /// A known value.
    Const(i64),
    /// A symbol.
    Sym(Sym),
    /// A sum of at least two terms.
    Add(Vec<Dim>),
    /// A product of at least two factors.
    Mul(Vec<Dim>),
    /// The floor of a quotient.
    FloorDiv(Box<Dim>, Box<Dim>),
    /// The ceiling of a quotient.
    CeilDiv(Box<Dim>, Box<Dim>),
    /// The smaller of two.
    Min(Box<Dim>, Box<Dim>),
    /// The larger of two.
    Max(Box<Dim>, Box<Dim>),
    /// The extent that two extents broadcast to under NumPy's rule: equal, or one of them is 1.
    Broadcast(Box<Dim>, Box<Dim>),
}

/// A product of atoms with its integer coefficient is one term of the polynomial.
type Terms = BTreeMap<Vec<Dim>, i64>;

impl Dim {
    /// `a + b`.
    #[allow(clippy::should_implement_trait)]
    pub fn add(a: Dim, b: Dim) -> Dim {
        let mut terms = a.terms();
        for (atoms, k) in b.terms() {
            *terms.entry(atoms).or_insert(0) += k;
        }
        Dim::from_terms(terms)
    }

    /// `a - b`.
    #[allow(clippy::should_implement_trait)]
    pub fn sub(a: Dim, b: Dim) -> Dim {
        Dim::add(a, Dim::mul(Dim::Const(-1), b))
    }

    /// `a * b`.
    #[allow(clippy::should_implement_trait)]
    pub fn mul(a: Dim, b: Dim) -> Dim {
        let mut product = Terms::new();
        let right = b.terms();
        for (left_atoms, left_k) in a.terms() {
            for (right_atoms, right_k) in &right {
                let mut atoms = [left_atoms.as_slice(), right_atoms].concat();
                atoms.sort();
                *product.entry(atoms).or_insert(0) += left_k * right_k;
            }
        }
        Dim::from_terms(product)
    }

    /// The floor of `a / b`, exact where the division is.
    pub fn floor_div(a: Dim, b: Dim) -> Dim {
        match (&a, &b) {
            (Dim::Const(x), Dim::Const(y)) if *y != 0 => return Dim::Const(x.div_euclid(*y)),
            (_, Dim::Const(1)) => return a,
            _ => {}
        }
        match a.divide_exactly(&b) {
            Some(quotient) => quotient,
            None => Dim::FloorDiv(Box::new(a), Box::new(b)),
        }
    }

    /// The ceiling of `a / b`, exact where the division is.
    pub fn ceil_div(a: Dim, b: Dim) -> Dim {
        if let (Dim::Const(x), Dim::Const(y)) = (&a, &b)
            && *y > 0
        {
            return Dim::Const((x + y - 1).div_euclid(*y));
        }
        match a.divide_exactly(&b) {
            Some(quotient) => quotient,
            None => Dim::CeilDiv(Box::new(a), Box::new(b)),
        }
    }

    /// The smaller of two extents.
    pub fn min(a: Dim, b: Dim) -> Dim {
        Dim::ordered(a, b, i64::min, Dim::Min)
    }

    /// The larger of two extents.
    pub fn max(a: Dim, b: Dim) -> Dim {
        Dim::ordered(a, b, i64::max, Dim::Max)
    }

    /// The extent two extents broadcast to. `None` where both are known, differ, and neither is 1.
    pub fn broadcast(a: Dim, b: Dim) -> Option<Dim> {
        match (&a, &b) {
            _ if a == b => Some(a),
            (Dim::Const(1), _) => Some(b),
            (_, Dim::Const(1)) => Some(a),
            (Dim::Const(_), Dim::Const(_)) => None,
            // A known extent other than 1 is the result, whatever the other one is.
            (Dim::Const(_), _) => Some(a),
            (_, Dim::Const(_)) => Some(b),
            _ => {
                let mut parts = [a.broadcast_parts(), b.broadcast_parts()].concat();
                parts.sort();
                parts.dedup();
                parts.into_iter().rev().reduce(|joint, part| Dim::Broadcast(Box::new(part), Box::new(joint)))
            }
        }
    }

    /// The extents of which a broadcast extent is one: broadcasting has no order, and once is as good as twice.
    fn broadcast_parts(&self) -> Vec<Dim> {
        match self {
            Dim::Broadcast(a, b) => [a.broadcast_parts(), b.broadcast_parts()].concat(),
            part => vec![part.clone()],
        }
    }

    /// Whether the formula is a multiple of another, whatever the symbols are.
    pub fn is_multiple_of(&self, divisor: &Dim) -> bool {
        self.divide_exactly(divisor).is_some()
    }

    /// The value where no symbol is left in the formula.
    pub fn as_const(&self) -> Option<i64> {
        match self {
            Dim::Const(k) => Some(*k),
            _ => None,
        }
    }

    /// The value of the formula for given symbol values. A broadcast of unequal extents gives the one that is not 1.
    pub fn eval(&self, symbols: &impl Fn(Sym) -> i64) -> i64 {
        let both = |a: &Dim, b: &Dim| (a.eval(symbols), b.eval(symbols));
        match self {
            Dim::Const(k) => *k,
            Dim::Sym(s) => symbols(*s),
            Dim::Add(terms) => terms.iter().map(|t| t.eval(symbols)).sum(),
            Dim::Mul(factors) => factors.iter().map(|t| t.eval(symbols)).product(),
            Dim::FloorDiv(a, b) => match both(a, b) {
                (_, 0) => 0,
                (a, b) => a.div_euclid(b),
            },
            Dim::CeilDiv(a, b) => match both(a, b) {
                (_, 0) => 0,
                (a, b) => (a + b - 1).div_euclid(b),
            },
            Dim::Min(a, b) => a.eval(symbols).min(b.eval(symbols)),
            Dim::Max(a, b) => a.eval(symbols).max(b.eval(symbols)),
            Dim::Broadcast(a, b) => match both(a, b) {
                (1, b) => b,
                (a, _) => a,
            },
        }
    }

    /// Puts formulas in the place of symbols and normalises the result.
    pub fn substitute(&self, replace: &impl Fn(Sym) -> Dim) -> Dim {
        let go = |d: &Dim| d.substitute(replace);
        match self {
            Dim::Const(k) => Dim::Const(*k),
            Dim::Sym(s) => replace(*s),
            Dim::Add(terms) => terms.iter().map(go).fold(Dim::Const(0), Dim::add),
            Dim::Mul(factors) => factors.iter().map(go).fold(Dim::Const(1), Dim::mul),
            Dim::FloorDiv(a, b) => Dim::floor_div(go(a), go(b)),
            Dim::CeilDiv(a, b) => Dim::ceil_div(go(a), go(b)),
            Dim::Min(a, b) => Dim::min(go(a), go(b)),
            Dim::Max(a, b) => Dim::max(go(a), go(b)),
            Dim::Broadcast(a, b) => {
                let (a, b) = (go(a), go(b));
                Dim::broadcast(a.clone(), b).unwrap_or(a)
            }
        }
    }

    /// Calls `visit` for every symbol in the formula.
    pub fn for_each_sym(&self, visit: &mut impl FnMut(Sym)) {
        match self {
            Dim::Const(_) => {}
            Dim::Sym(s) => visit(*s),
            Dim::Add(parts) | Dim::Mul(parts) => parts.iter().for_each(|p| p.for_each_sym(visit)),
            Dim::FloorDiv(a, b) | Dim::CeilDiv(a, b) | Dim::Min(a, b) | Dim::Max(a, b) | Dim::Broadcast(a, b) => {
                a.for_each_sym(visit);
                b.for_each_sym(visit);
            }
        }
    }

    /// Prints the formula with names for its symbols.
    pub fn display<'a, N: Fn(Sym) -> String>(&'a self, names: &'a N) -> impl fmt::Display + 'a {
        Named { dim: self, names }
    }

    fn ordered(a: Dim, b: Dim, known: fn(i64, i64) -> i64, build: fn(Box<Dim>, Box<Dim>) -> Dim) -> Dim {
        match (&a, &b) {
            _ if a == b => a,
            (Dim::Const(x), Dim::Const(y)) => Dim::Const(known(*x, *y)),
            _ => {
                let (a, b) = if a <= b { (a, b) } else { (b, a) };
                build(Box::new(a), Box::new(b))
            }
        }
    }

    fn terms(&self) -> Terms {
        let parts = match self {
            Dim::Add(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        let mut terms = Terms::new();
        for part in parts {
            let (atoms, k) = part.coefficient();
            *terms.entry(atoms).or_insert(0) += k;
        }
        terms
    }

    fn coefficient(&self) -> (Vec<Dim>, i64) {
        match self {
            Dim::Const(k) => (vec![], *k),
            Dim::Mul(factors) => match factors.split_first() {
                Some((Dim::Const(k), rest)) => (rest.to_vec(), *k),
                _ => (factors.clone(), 1),
            },
            atom => (vec![atom.clone()], 1),
        }
    }

    fn from_terms(terms: Terms) -> Dim {
        let mut parts: Vec<Dim> =
            terms.into_iter().filter(|(_, k)| *k != 0).map(|(atoms, k)| Dim::term(atoms, k)).collect();
        match parts.len() {
            0 => Dim::Const(0),
            1 => parts.remove(0),
            _ => Dim::Add(parts),
        }
    }

    fn term(mut atoms: Vec<Dim>, k: i64) -> Dim {
        if atoms.is_empty() {
            return Dim::Const(k);
        }
        if k != 1 {
            atoms.insert(0, Dim::Const(k));
        }
        if atoms.len() == 1 { atoms.remove(0) } else { Dim::Mul(atoms) }
    }

    /// `self / divisor` where every term is a multiple of a divisor that is a single product.
    fn divide_exactly(&self, divisor: &Dim) -> Option<Dim> {
        if matches!(divisor, Dim::Add(_) | Dim::Const(0)) {
            return (self == divisor && *divisor != Dim::Const(0)).then_some(Dim::Const(1));
        }
        let (divisor_atoms, divisor_k) = divisor.coefficient();
        let mut quotient = Terms::new();
        for (mut atoms, k) in self.terms() {
            if k % divisor_k != 0 {
                return None;
            }
            for atom in &divisor_atoms {
                let at = atoms.iter().position(|a| a == atom)?;
                atoms.remove(at);
            }
            *quotient.entry(atoms).or_insert(0) += k / divisor_k;
        }
        Some(Dim::from_terms(quotient))
    }
}

impl From<i64> for Dim {
    fn from(k: i64) -> Dim {
        Dim::Const(k)
    }
}

impl From<Sym> for Dim {
    fn from(s: Sym) -> Dim {
        Dim::Sym(s)
    }
}

struct Named<'a, N> {
    dim: &'a Dim,
    names: &'a N,
}

impl<N: Fn(Sym) -> String> fmt::Display for Named<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sub = |dim| Named { dim, names: self.names };
        let call = |f: &mut fmt::Formatter<'_>, name: &str, a, b| write!(f, "{name}({}, {})", sub(a), sub(b));
        match self.dim {
            Dim::Const(k) => write!(f, "{k}"),
            Dim::Sym(s) => f.write_str(&(self.names)(*s)),
            Dim::Add(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    write!(f, "{}{}", if i > 0 { " + " } else { "" }, sub(part))?;
                }
                Ok(())
            }
            Dim::Mul(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    let star = if i > 0 { "*" } else { "" };
                    match part {
                        Dim::Add(_) => write!(f, "{star}({})", sub(part))?,
                        _ => write!(f, "{star}{}", sub(part))?,
                    }
                }
                Ok(())
            }
            Dim::FloorDiv(a, b) => write!(f, "({})/({})", sub(a), sub(b)),
            Dim::CeilDiv(a, b) => call(f, "ceil_div", a, b),
            Dim::Min(a, b) => call(f, "min", a, b),
            Dim::Max(a, b) => call(f, "max", a, b),
            Dim::Broadcast(a, b) => call(f, "broadcast", a, b),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.display(&|s: Sym| format!("s{}", s.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u32) -> Dim {
        Dim::Sym(Sym(n))
    }

    #[test]
    fn equal_polynomials_are_equal_values() {
        let left = Dim::mul(Dim::add(s(0), Dim::Const(2)), s(1));
        let right = Dim::add(Dim::mul(s(1), s(0)), Dim::mul(s(1), Dim::Const(2)));
        assert_eq!(left, right);
    }

    #[test]
    fn exact_division_cancels() {
        assert_eq!(Dim::floor_div(Dim::mul(Dim::Const(3), s(0)), Dim::Const(3)), s(0));
        assert_eq!(Dim::floor_div(Dim::mul(s(0), s(1)), s(1)), s(0));
    }

    #[test]
    fn inexact_division_stays_a_division() {
        let d = Dim::floor_div(s(0), s(1));
        assert_eq!(d.eval(&|Sym(n)| if n == 0 { 7 } else { 2 }), 3);
        assert_ne!(Dim::mul(d, s(1)), s(0));
    }

    #[test]
    fn subtraction_of_itself_is_zero() {
        assert_eq!(Dim::sub(s(0), s(0)), Dim::Const(0));
    }

    #[test]
    fn broadcast_knows_one_and_refuses_two_known_extents() {
        assert_eq!(Dim::broadcast(Dim::Const(1), s(0)), Some(s(0)));
        assert_eq!(Dim::broadcast(Dim::Const(2), Dim::Const(3)), None);
        assert_eq!(Dim::broadcast(s(1), s(0)), Dim::broadcast(s(0), s(1)));
        let joint = Dim::broadcast(s(0), s(1)).unwrap();
        assert_eq!(Dim::broadcast(s(1), joint.clone()), Some(joint));
    }
}
