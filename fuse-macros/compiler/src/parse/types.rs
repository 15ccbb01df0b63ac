//! What the signature and `let` annotations say about a value.

use crate::types::{DType, OPEN_RANK};
use proc_macro2::Ident;
use syn::{Expr, ExprLit, FnArg, GenericArgument, GenericParam, Generics, Lit, PathArguments, Type, TypeParamBound};

/// The type of a host value, as far as capture needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostTy {
    /// Not known, or nothing capture knows about.
    Unknown,
    /// A number or bool that is an element type.
    Scalar(DType),
    /// `usize`.
    Size,
    /// A tensor.
    Tensor(TensorTy),
    /// A tensor whose rank is not a number in the type.
    AnyRank,
    /// What is used as only tensors are, or comes from where tensors are, though no type says that it is one.
    TensorLike,
    /// A reference, and whether it is exclusive.
    Ref(Box<HostTy>, bool),
    /// `Option`.
    Option(Box<HostTy>),
    /// A slice, `Vec` or array.
    List(Box<HostTy>),
    /// A tuple.
    Tuple(Vec<HostTy>),
}

/// Element type and rank of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorTy {
    /// Element type.
    pub dtype: DType,
    /// Number of dimensions.
    pub rank: usize,
}

/// The generic parameters of a function that matter for its tensors.
#[derive(Clone, Debug, Default)]
pub struct GenericNames {
    /// Type parameters bounded by `Float`; the n-th is `DType::Param(n)`.
    pub floats: Vec<Ident>,
    /// Other type parameters.
    pub others: Vec<Ident>,
    /// Const parameters.
    pub consts: Vec<Ident>,
    /// The const parameter that is the rank of tensors, if these are read as ones of [`OPEN_RANK`].
    pub rank: Option<Ident>,
}

impl GenericNames {
    /// Reads them from a function's (and its impl's) generics.
    pub fn read<'a>(generics: impl IntoIterator<Item = &'a Generics>) -> GenericNames {
        let mut names = GenericNames::default();
        for generics in generics {
            for param in &generics.params {
                match param {
                    GenericParam::Type(ty) if is_float(&ty.ident, &ty.bounds, generics) => {
                        names.floats.push(ty.ident.clone())
                    }
                    GenericParam::Type(ty) => names.others.push(ty.ident.clone()),
                    GenericParam::Const(param) => names.consts.push(param.ident.clone()),
                    GenericParam::Lifetime(_) => {}
                }
            }
        }
        names
    }

    /// Whether a tensor that is read as one of this rank has an open one.
    pub fn leaves_open(&self, rank: usize) -> bool {
        self.rank.is_some() && rank == OPEN_RANK
    }

    /// The element type that a type names.
    pub fn dtype(&self, ty: &Type) -> Option<DType> {
        let Type::Path(path) = strip(ty) else { return None };
        let ident = &path.path.segments.last()?.ident;
        let generic = self.floats.iter().position(|float| float == ident).filter(|_| path.path.segments.len() == 1);
        generic.map(|n| DType::Param(n as u8)).or_else(|| DType::ALL.into_iter().find(|dtype| *ident == dtype.name()))
    }

    /// The element type that a number has as it is written: `0.5f32`, `n as f32`, `f32::MAX`.
    pub fn literal_dtype(&self, expr: &Expr) -> Option<DType> {
        let named = |name: &str| DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        match super::syntax::strip(expr) {
            Expr::Lit(ExprLit { lit: Lit::Float(float), .. }) => named(float.suffix()),
            Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => named(int.suffix()),
            Expr::Lit(ExprLit { lit: Lit::Bool(_), .. }) => Some(DType::Bool),
            Expr::Cast(cast) => self.dtype(&cast.ty),
            Expr::Unary(unary) => self.literal_dtype(&unary.expr),
            Expr::Binary(binary) => self.literal_dtype(&binary.left).or_else(|| self.literal_dtype(&binary.right)),
            Expr::Reference(reference) => self.literal_dtype(&reference.expr),
            Expr::Array(array) => array.elems.iter().find_map(|elem| self.literal_dtype(elem)),
            Expr::Repeat(repeat) => self.literal_dtype(&repeat.expr),
            Expr::Call(call) => self.literal_dtype(&call.func),
            // Of `f32::MAX` and `f16::from_f32` the first part is a type.
            Expr::Path(path) if path.path.segments.len() == 2 => {
                let ty = path.path.segments[0].ident.clone();
                self.dtype(&syn::parse_quote!(#ty))
            }
            _ => None,
        }
    }

    /// Reads a type.
    pub fn host_ty(&self, ty: &Type) -> HostTy {
        match strip(ty) {
            Type::Reference(reference) => {
                HostTy::Ref(Box::new(self.host_ty(&reference.elem)), reference.mutability.is_some())
            }
            Type::Tuple(tuple) => HostTy::Tuple(tuple.elems.iter().map(|elem| self.host_ty(elem)).collect()),
            Type::Slice(slice) => HostTy::List(Box::new(self.host_ty(&slice.elem))),
            Type::Array(array) => HostTy::List(Box::new(self.host_ty(&array.elem))),
            Type::Path(path) => self.path_ty(ty, &path.path),
            _ => HostTy::Unknown,
        }
    }

    fn path_ty(&self, whole: &Type, path: &syn::Path) -> HostTy {
        let Some(last) = path.segments.last() else { return HostTy::Unknown };
        let args: Vec<&GenericArgument> = match &last.arguments {
            PathArguments::AngleBracketed(list) => list.args.iter().collect(),
            _ => vec![],
        };
        let inner = |k: usize| match args.get(k) {
            Some(GenericArgument::Type(ty)) => self.host_ty(ty),
            _ => HostTy::Unknown,
        };
        match last.ident.to_string().as_str() {
            "Tensor" => self.tensor(&args),
            "Option" => HostTy::Option(Box::new(inner(0))),
            "Vec" => HostTy::List(Box::new(inner(0))),
            "usize" => HostTy::Size,
            _ if (0..args.len()).any(|k| inner(k).may_hold_tensor()) => HostTy::TensorLike,
            _ => self.dtype(whole).map_or(HostTy::Unknown, HostTy::Scalar),
        }
    }

    fn tensor(&self, args: &[&GenericArgument]) -> HostTy {
        let dtype = match args.first() {
            Some(GenericArgument::Type(ty)) => self.dtype(ty),
            _ => None,
        };
        let rank = match args.get(1) {
            Some(GenericArgument::Const(Expr::Lit(ExprLit { lit: Lit::Int(rank), .. }))) => rank.base10_parse().ok(),
            // A name alone reads as a type.
            Some(GenericArgument::Type(Type::Path(path)))
                if self.rank.as_ref().is_some_and(|rank| path.path.is_ident(rank)) =>
            {
                Some(OPEN_RANK)
            }
            _ => None,
        };
        match (dtype, rank) {
            (Some(dtype), Some(rank)) => HostTy::Tensor(TensorTy { dtype, rank }),
            _ => HostTy::AnyRank,
        }
    }
}

impl HostTy {
    /// Whether values of this type hold tensors.
    pub fn has_tensor(&self) -> bool {
        match self {
            HostTy::Tensor(_) | HostTy::AnyRank => true,
            HostTy::Ref(inner, _) | HostTy::Option(inner) | HostTy::List(inner) => inner.has_tensor(),
            HostTy::Tuple(parts) => parts.iter().any(HostTy::has_tensor),
            HostTy::Unknown | HostTy::TensorLike | HostTy::Scalar(_) | HostTy::Size => false,
        }
    }

    /// Whether values of this type hold tensors, or may do so.
    fn may_hold_tensor(&self) -> bool {
        self.has_tensor() || *self.behind_refs() == HostTy::TensorLike
    }

    /// Whether a value of a type that is not known is no number: it is used as a tensor, or it is a reference.
    pub fn may_be_tensor(&self) -> bool {
        match self {
            HostTy::Ref(..) => matches!(self.behind_refs(), HostTy::Unknown | HostTy::TensorLike),
            ty => *ty == HostTy::TensorLike,
        }
    }

    /// Whether a tensor in it has a rank or element type that is not written out.
    pub fn is_open(&self) -> bool {
        match self {
            HostTy::AnyRank => true,
            HostTy::Ref(inner, _) | HostTy::Option(inner) | HostTy::List(inner) => inner.is_open(),
            HostTy::Tuple(parts) => parts.iter().any(HostTy::is_open),
            _ => false,
        }
    }

    /// Whether a value of this type cannot be where `other` is written: an element type or rank differs.
    pub fn contradicts(&self, other: &HostTy) -> bool {
        match (self.behind_refs(), other.behind_refs()) {
            (HostTy::Tensor(ours), HostTy::Tensor(theirs)) => ours != theirs,
            (HostTy::Tuple(ours), HostTy::Tuple(theirs)) => ours.iter().zip(theirs).any(|(a, b)| a.contradicts(b)),
            (HostTy::List(ours), HostTy::List(theirs)) => ours.contradicts(theirs),
            _ => false,
        }
    }

    /// The type behind references.
    pub fn behind_refs(&self) -> &HostTy {
        match self {
            HostTy::Ref(inner, _) => inner.behind_refs(),
            other => other,
        }
    }
}

/// A type without parentheses and invisible groups.
fn strip(ty: &Type) -> &Type {
    match ty {
        Type::Paren(paren) => strip(&paren.elem),
        Type::Group(group) => strip(&group.elem),
        other => other,
    }
}

fn is_float<'a>(ident: &Ident, bounds: impl IntoIterator<Item = &'a TypeParamBound>, generics: &'a Generics) -> bool {
    let names_float = |bound: &TypeParamBound| matches!(bound, TypeParamBound::Trait(t) if t.path.segments.last().is_some_and(|s| s.ident == "Float"));
    let in_where =
        generics.where_clause.iter().flat_map(|clause| &clause.predicates).any(|predicate| match predicate {
            syn::WherePredicate::Type(ty) => {
                matches!(&ty.bounded_ty, Type::Path(path) if path.path.is_ident(ident))
                    && ty.bounds.iter().any(names_float)
            }
            _ => false,
        });
    in_where || bounds.into_iter().any(names_float)
}

/// Whether a parameter may bring tensors in.
pub fn may_hold_tensor(arg: &FnArg) -> bool {
    match arg {
        FnArg::Receiver(_) => true,
        FnArg::Typed(typed) => speaks_of_tensors(&typed.ty),
    }
}

/// Whether a type or signature names `Tensor`.
pub fn speaks_of_tensors(written: &impl quote::ToTokens) -> bool {
    super::names::mentions(written).iter().any(|name| name.text() == "Tensor")
}
