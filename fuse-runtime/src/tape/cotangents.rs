//! Cotangents of whatever a function returns.

use super::record::settled;
use super::tuples::for_tuples;
use crate::dtype::Float;
use crate::error::{Error, ErrorKind, Result};
use crate::raw::RawTensor;
use crate::tensor::Tensor;

/// Tensors with their cotangents.
pub type Seeds = Vec<(RawTensor, RawTensor)>;

/// What has cotangents of the structure `C`: a tensor of floats that of a tensor; a tuple, array or vector one for each part;
/// anything that of `()`, which is none.
pub trait Weighted<C: ?Sized> {
    /// Puts each tensor beside its cotangent, of which `name` tells a failure.
    fn seeds(&self, cotangent: &C, name: &str, seeds: &mut Seeds) -> Result<()>;

    /// The same behind the call.
    fn settled(self) -> Self;
}

impl<A> Weighted<()> for A {
    fn seeds(&self, (): &(), _: &str, _: &mut Seeds) -> Result<()> {
        Ok(())
    }

    fn settled(self) -> Self {
        self
    }
}

impl<A: Weighted<C>, C: ?Sized> Weighted<&C> for A {
    fn seeds(&self, cotangent: &&C, name: &str, seeds: &mut Seeds) -> Result<()> {
        <A as Weighted<C>>::seeds(self, cotangent, name, seeds)
    }

    fn settled(self) -> Self {
        <A as Weighted<C>>::settled(self)
    }
}

impl<T: Float, const R: usize> Weighted<Tensor<T, R>> for Tensor<T, R> {
    fn seeds(&self, cotangent: &Tensor<T, R>, name: &str, seeds: &mut Seeds) -> Result<()> {
        let mut extents = self.dims().into_iter().zip(cotangent.dims());
        if let Some((right, left)) = extents.find(|(right, left)| right != left) {
            let text = format!("`{name}` has extent {left} where the result has {right}");
            return Err(Error::new(ErrorKind::Shape, text));
        }
        seeds.push((self.raw().clone(), cotangent.raw().clone()));
        Ok(())
    }

    fn settled(self) -> Self {
        Tensor::from_raw(settled(self.into()))
    }
}

impl<A: Weighted<C>, C, const N: usize> Weighted<[C; N]> for [A; N] {
    fn seeds(&self, cotangents: &[C; N], name: &str, seeds: &mut Seeds) -> Result<()> {
        of_each(self, cotangents, name, seeds)
    }

    fn settled(self) -> Self {
        self.map(<A as Weighted<C>>::settled)
    }
}

impl<A: Weighted<C>, C> Weighted<[C]> for Vec<A> {
    fn seeds(&self, cotangents: &[C], name: &str, seeds: &mut Seeds) -> Result<()> {
        count(name, cotangents.len(), self.len())?;
        of_each(self, cotangents, name, seeds)
    }

    fn settled(self) -> Self {
        self.into_iter().map(<A as Weighted<C>>::settled).collect()
    }
}

impl<A: Weighted<C>, C> Weighted<Vec<C>> for Vec<A> {
    fn seeds(&self, cotangents: &Vec<C>, name: &str, seeds: &mut Seeds) -> Result<()> {
        <Vec<A> as Weighted<[C]>>::seeds(self, cotangents, name, seeds)
    }

    fn settled(self) -> Self {
        <Vec<A> as Weighted<[C]>>::settled(self)
    }
}

macro_rules! tuples {
    ($($($name:ident $cotangent:ident)*;)*) => {$(
        #[allow(non_camel_case_types, non_snake_case)]
        impl<$($name: Weighted<$cotangent>, $cotangent),*> Weighted<($($cotangent,)*)> for ($($name,)*) {
            fn seeds(&self, ($($cotangent,)*): &($($cotangent,)*), name: &str, seeds: &mut Seeds) -> Result<()> {
                let ($($name,)*) = self;
                let mut parts = (0..).map(|k| format!("{name}.{k}"));
                $($name.seeds($cotangent, &parts.next().expect("there is no end of them"), seeds)?;)*
                Ok(())
            }

            fn settled(self) -> Self {
                let ($($name,)*) = self;
                ($(<$name as Weighted<$cotangent>>::settled($name),)*)
            }
        }
    )*};
}

for_tuples!(tuples);

fn of_each<A: Weighted<C>, C>(parts: &[A], cotangents: &[C], name: &str, seeds: &mut Seeds) -> Result<()> {
    let mut pairs = parts.iter().zip(cotangents).enumerate();
    pairs.try_for_each(|(k, (part, cotangent))| part.seeds(cotangent, &format!("{name}[{k}]"), seeds))
}

/// Whether there is a cotangent for each part of a list.
pub fn count(name: &str, cotangents: usize, parts: usize) -> Result<()> {
    if cotangents == parts {
        return Ok(());
    }
    let text = format!("`{name}` has {cotangents} parts where the result has {parts}");
    Err(Error::new(ErrorKind::Shape, text))
}
