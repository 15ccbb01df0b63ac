//! What is done with a value and what comes after it, as data: a branch can hand it to each of its arms.

use super::Walker;
use super::names::{Name, Names, bound, free, mentions};
use super::region::Region;
use super::select::Arm;
use super::types::HostTy;
use super::unroll::Unrolled;
use super::value::Value;
use proc_macro2::{Ident, TokenStream};
use syn::{Lifetime, Local, Pat, Stmt};

/// What is done with the value of an expression, and what comes after.
pub enum Cont<'a> {
    /// It is the function's.
    Return,
    /// It is bound.
    Let(&'a Local, Rest<'a>),
    /// It is dropped.
    Then(Rest<'a>),
    /// It is assigned to a variable.
    Assign(&'a Ident, Rest<'a>),
    /// It is the value of a block without braces, whose variables go.
    Scope(usize, &'a Cont<'a>),
    /// An iteration of an unrolled loop ends.
    Turn(&'a Unrolled<'a>, usize, &'a Cont<'a>),
    /// A block of host control flow ends.
    End(&'a Region<'a>),
    /// It is one of two that the device selects from.
    Arm(&'a Arm),
    /// `break` with a value.
    Leave(&'a Region<'a>, Option<&'a Lifetime>),
}

/// The statements after one, and what comes after them.
#[derive(Clone, Copy)]
pub struct Rest<'a> {
    /// The statements.
    pub stmts: &'a [Stmt],
    /// What comes after the last.
    pub next: &'a Cont<'a>,
}

/// What an expression came to.
pub enum Outcome {
    /// A value capture sees through.
    Value(Value),
    /// Host code.
    Host(HostCode),
}

/// An expression that is left for the host.
pub struct HostCode {
    /// The expression; every variable it reads is up to date.
    pub tokens: TokenStream,
    /// Its type.
    pub ty: HostTy,
    /// Whether it may be a tensor, so that a binding needs an annotation before tensor ops use it.
    pub needs_annotation: bool,
    /// Variables that it may change.
    pub changes: Names,
}

impl<'a> Cont<'a> {
    /// The names that are read after the value.
    pub fn free(&self) -> Names {
        match self {
            Cont::Return => Names::new(),
            Cont::Let(local, rest) => {
                let mut names = rest.free();
                for ident in bound(&local.pat) {
                    names.remove(&Name::of(&ident));
                }
                names
            }
            Cont::Then(rest) => rest.free(),
            Cont::Assign(target, rest) => {
                let mut names = rest.free();
                names.remove(&Name::of(target));
                names
            }
            Cont::Scope(_, next) => next.free(),
            Cont::Turn(unrolled, turn, next) => {
                let mut names = next.free();
                if turn + 1 < unrolled.items.len() {
                    names.extend(mentions(unrolled.body));
                }
                names
            }
            Cont::End(region) | Cont::Leave(region, _) => region.live.clone(),
            Cont::Arm(arm) => arm.live.clone(),
        }
    }

    /// The loop a jump with this label means.
    pub fn target(&self, label: Option<&Lifetime>) -> Option<&Cont<'a>> {
        let own = match self {
            Cont::Turn(unrolled, ..) => label.is_none_or(|label| unrolled.label.as_ref() == Some(label)),
            Cont::End(region) => region.is_loop && label.is_none_or(|label| region.label.as_ref() == Some(label)),
            _ => false,
        };
        if own { Some(self) } else { self.next().and_then(|next| next.target(label)) }
    }

    fn next(&self) -> Option<&Cont<'a>> {
        match self {
            Cont::Return | Cont::Arm(_) => None,
            Cont::Let(_, rest) | Cont::Then(rest) | Cont::Assign(_, rest) => Some(rest.next),
            Cont::Scope(_, next) | Cont::Turn(_, _, next) => Some(next),
            Cont::End(region) | Cont::Leave(region, _) => region.outside(),
        }
    }
}

impl Rest<'_> {
    /// The names that are read in them and after them.
    pub fn free(&self) -> Names {
        free(self.stmts, self.next.free())
    }
}

impl Walker<'_> {
    /// The type that the place of a value has, if it is written.
    pub fn expected(&self, cont: &Cont) -> HostTy {
        match cont {
            Cont::Return => self.returns.clone(),
            Cont::Let(local, _) => match &local.pat {
                Pat::Type(typed) => self.generics.host_ty(&typed.ty),
                _ => HostTy::Unknown,
            },
            Cont::Assign(target, _) => {
                self.var(&Name::of(target)).map_or(HostTy::Unknown, |var| self.host_ty_of(&var.value))
            }
            Cont::Scope(_, next) => self.expected(next),
            Cont::Then(_) | Cont::Turn(..) | Cont::Arm(_) => HostTy::Unknown,
            Cont::End(region) | Cont::Leave(region, _) => region.expected.clone(),
        }
    }
}

/// How many parts a `let [a, b] = ..` takes.
pub fn expected_count(cont: &Cont) -> Option<usize> {
    let Cont::Let(local, _) = cont else { return None };
    let pat = match &local.pat {
        Pat::Type(typed) => &typed.pat,
        pat => pat,
    };
    match pat {
        Pat::Slice(slice) if !slice.elems.iter().any(|elem| matches!(elem, Pat::Rest(_))) => Some(slice.elems.len()),
        _ => None,
    }
}
