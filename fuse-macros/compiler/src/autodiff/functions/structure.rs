//! What a function returns, as far as gradients are concerned, and the cotangents it has.

use crate::parse::{Entry, GenericNames, HostTy, Returned, TensorTy};
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::{Expr, GenericArgument, PathArguments, Type, TypePath};

/// Numbers and texts that are no element types.
const HOST_TYPES: [&str; 10] = ["isize", "i8", "i16", "i128", "u16", "u32", "u64", "u128", "char", "String"];

/// The structure of a result.
pub enum Structure {
    /// A tensor of floats.
    Tensor {
        /// Its element type and rank.
        ty: TensorTy,
        /// Its type as written.
        written: Type,
    },
    /// A tuple.
    Tuple(Vec<Structure>),
    /// An array.
    Array {
        /// What it is of.
        part: Box<Structure>,
        /// How many there are.
        count: Expr,
    },
    /// A vector.
    Vec(Box<Structure>),
    /// What holds no tensor of floats, and has no cotangent.
    Constant,
}

/// A tensor of a result, and its cotangent.
pub struct Leaf {
    /// Where the tensor comes from: a result of a launch, or a parameter.
    pub source: Returned,
    /// An expression for its cotangent, which is what it is called too.
    pub cotangent: TokenStream,
}

impl Structure {
    /// Reads a type; the part that cannot be seen through, if there is one.
    pub fn read<'a>(written: &'a Type, generics: &GenericNames) -> Result<Structure, &'a Type> {
        let found = match written {
            Type::Paren(paren) => Structure::read(&paren.elem, generics)?,
            Type::Group(group) => Structure::read(&group.elem, generics)?,
            Type::Tuple(tuple) => Structure::Tuple(
                tuple.elems.iter().map(|part| Structure::read(part, generics)).collect::<Result<_, _>>()?,
            ),
            Type::Array(array) => {
                let part = Box::new(Structure::read(&array.elem, generics)?);
                Structure::Array { part, count: array.len.clone() }
            }
            Type::Path(path) => Structure::of_path(path, written, generics)?,
            _ => return Err(written),
        };
        Ok(if found.has_tensor() { found } else { Structure::Constant })
    }

    fn of_path<'a>(path: &'a TypePath, whole: &'a Type, generics: &GenericNames) -> Result<Structure, &'a Type> {
        let is_list = path.path.segments.last().is_some_and(|last| last.ident == "Vec");
        match (generics.host_ty(whole), first_argument(path)) {
            (HostTy::Tensor(ty), _) if ty.dtype.is_float() => Ok(Structure::Tensor { ty, written: whole.clone() }),
            (HostTy::Tensor(_) | HostTy::Scalar(_) | HostTy::Size, _) => Ok(Structure::Constant),
            (_, Some(part)) if is_list => Ok(Structure::Vec(Box::new(Structure::read(part, generics)?))),
            _ if HOST_TYPES.iter().any(|name| path.path.is_ident(name)) => Ok(Structure::Constant),
            _ => Err(whole),
        }
    }

    /// Whether there is a tensor of floats in it.
    pub fn has_tensor(&self) -> bool {
        match self {
            Structure::Tensor { .. } => true,
            Structure::Tuple(parts) => parts.iter().any(Structure::has_tensor),
            Structure::Array { part, .. } | Structure::Vec(part) => part.has_tensor(),
            Structure::Constant => false,
        }
    }

    /// Whether it is one number, or a tuple that begins with one.
    pub fn has_loss(&self) -> bool {
        let is_number = |part: &Structure| matches!(part, Structure::Tensor { ty, .. } if ty.rank == 0);
        match self {
            Structure::Tuple(parts) => parts.len() > 1 && is_number(&parts[0]),
            whole => is_number(whole),
        }
    }

    /// That number.
    pub fn loss(&self, returned: &Returned) -> Option<Leaf> {
        let number = match (self, returned) {
            (Structure::Tuple(_), Returned::Parts(parts)) => parts.first()?,
            (_, whole) => whole,
        };
        is_seen(number).then(|| Leaf { source: number.clone(), cotangent: quote!() })
    }

    /// The type of its cotangents: references to tensors in tuples and arrays, slices, and `()` for what has none.
    pub fn cotangent(&self) -> TokenStream {
        match self {
            Structure::Tensor { written, .. } => quote!(&#written),
            Structure::Vec(part) => {
                let part = part.owned();
                quote!(&[#part])
            }
            other => other.group(Structure::cotangent),
        }
    }

    /// The same in a slice.
    fn owned(&self) -> TokenStream {
        match self {
            Structure::Tensor { written, .. } => written.to_token_stream(),
            Structure::Vec(part) => {
                let part = part.owned();
                quote!(::std::vec::Vec<#part>)
            }
            other => other.group(Structure::owned),
        }
    }

    fn group(&self, of: fn(&Structure) -> TokenStream) -> TokenStream {
        match self {
            Structure::Tuple(parts) => {
                let parts = parts.iter().map(of);
                quote!((#(#parts,)*))
            }
            Structure::Array { part, count } => {
                let part = of(part);
                quote!([#part; #count])
            }
            _ => quote!(()),
        }
    }

    /// The tensors in it, and the checks that lists of cotangents are as long as it says. `None` where host code has made one.
    pub fn leaves(&self, returned: &Returned, cotangent: TokenStream) -> Option<(Vec<Leaf>, Vec<Entry>)> {
        let (mut leaves, mut counts) = (vec![], vec![]);
        self.collect(returned, cotangent, &mut leaves, &mut counts)?;
        Some((leaves, counts))
    }

    fn collect(
        &self,
        returned: &Returned,
        cotangent: TokenStream,
        leaves: &mut Vec<Leaf>,
        counts: &mut Vec<Entry>,
    ) -> Option<()> {
        let Returned::Parts(parts) = returned else {
            return match self {
                Structure::Constant => Some(()),
                Structure::Tensor { .. } if is_seen(returned) => {
                    leaves.push(Leaf { source: returned.clone(), cotangent });
                    Some(())
                }
                _ => None,
            };
        };
        if let Structure::Vec(_) = self {
            let name = path_text(&cotangent);
            counts.push(Entry::Count { list: cotangent.clone(), name, parts: parts.len() });
        }
        parts.iter().enumerate().try_for_each(|(k, part)| {
            let k_of = Literal::usize_unsuffixed(k);
            match self {
                Structure::Tuple(list) => list.get(k)?.collect(part, quote!(#cotangent.#k_of), leaves, counts),
                Structure::Array { part: each, .. } | Structure::Vec(each) => {
                    each.collect(part, quote!(#cotangent[#k_of]), leaves, counts)
                }
                Structure::Constant => Some(()),
                Structure::Tensor { .. } => None,
            }
        })
    }
}

impl Leaf {
    /// What its cotangent is called.
    pub fn name(&self) -> String {
        path_text(&self.cotangent)
    }
}

/// Whether a graph has the tensor.
fn is_seen(returned: &Returned) -> bool {
    matches!(returned, Returned::Result { .. } | Returned::Parameter(_))
}

/// `cotangent.1[0]` as people write it.
fn path_text(path: &TokenStream) -> String {
    path.to_string().replace(' ', "")
}

/// What a path as `Vec<T>` or `Result<T, E>` begins with in its brackets.
pub fn first_argument(path: &TypePath) -> Option<&Type> {
    let PathArguments::AngleBracketed(list) = &path.path.segments.last()?.arguments else { return None };
    list.args.iter().find_map(|arg| match arg {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[track_caller]
    fn check(written: Type, cotangent: &str) {
        let generics: syn::Generics = parse_quote!(<T: Float, const N: usize>);
        let found = match Structure::read(&written, &GenericNames::read([&generics])) {
            Ok(structure) => structure.cotangent().to_string(),
            Err(part) => format!("not seen: {}", part.to_token_stream()),
        };
        assert_eq!(found.replace(' ', ""), cotangent.replace(' ', ""));
    }

    #[test]
    fn cotangents_are_references_where_tensors_are() {
        check(parse_quote!(Tensor<f32, 2>), "&Tensor<f32, 2>");
        check(parse_quote!((Tensor<f32, 2>, (fuse::Tensor<T, 0>,))), "(&Tensor<f32, 2>, (&fuse::Tensor<T, 0>,),)");
        check(parse_quote!([Tensor<f64, 1>; N]), "[&Tensor<f64, 1>; N]");
        check(parse_quote!(Vec<Tensor<bf16, 1>>), "&[Tensor<bf16, 1>]");
    }

    #[test]
    fn what_holds_no_tensor_of_floats_has_none() {
        check(parse_quote!((Tensor<f32, 1>, Tensor<i64, 1>, Tensor<bool, 0>)), "(&Tensor<f32, 1>, (), (),)");
        check(parse_quote!((usize, T, Tensor<T, 1>, u32, String)), "((), (), &Tensor<T, 1>, (), (),)");
        check(parse_quote!((Tensor<f32, 1>, Vec<f32>, [usize; 3], (i64, bool))), "(&Tensor<f32, 1>, (), (), (),)");
        check(parse_quote!((Tensor<i64, 1>, f32)), "()");
    }

    #[test]
    fn parts_of_vectors_are_as_they_would_be_kept() {
        check(parse_quote!(Vec<(Tensor<f32, 1>, f32)>), "&[(Tensor<f32, 1>, (),)]");
        check(parse_quote!([Vec<Vec<Tensor<f32, 1>>>; 2]), "[&[::std::vec::Vec<Tensor<f32, 1>>]; 2]");
    }

    #[test]
    fn other_types_may_hold_anything() {
        check(parse_quote!((Tensor<f32, 1>, Stats)), "not seen: Stats");
        check(parse_quote!(Vec<Option<Tensor<f32, 1>>>), "not seen: Option<Tensor<f32, 1>>");
        check(parse_quote!(Tensor<f32, R>), "not seen: Tensor<f32, R>");
    }
}
