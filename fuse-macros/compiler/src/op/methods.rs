//! The tensor methods that follow from their rows alone.
//!
//! The runtime gets its typed methods from here: a row of regular form (elementwise, along an axis, a reduction) is a
//! method without another line of code. Irregular ones (`matmul`, `where_cond`) are written by hand in the runtime.

use super::reduce::sum_dtype;
use super::{Accepts, Attr, Call, Class, OpInfo, ParamKind, Rules, table};
use crate::types::{DType, Dim, Ty};
use std::fmt;

/// A method that follows from its row.
#[derive(Clone, Copy)]
pub struct Method {
    /// The row.
    pub row: &'static OpInfo,
    /// The form of its signature.
    pub form: Form,
    /// The element type of its result.
    pub result: Element,
}

/// The form of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `x.op()`, of the receiver's rank.
    Unary,
    /// `x.op(other)`, of the rank both broadcast to.
    Binary,
    /// `x.op(dim)`, of the receiver's rank.
    Along,
    /// `x.op(dim)`, of one rank less.
    Reduce,
    /// `x.op()`, of rank 0.
    ReduceAll,
}

/// An element type in a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// The receiver's.
    Same,
    /// The one that sums of the receiver's have: i64 for integers and bool, f32 for fp8.
    Sum,
    /// Bool.
    Bool,
    /// i64.
    Index,
}

/// The methods of regular rows, in the order of the table.
pub fn regular() -> impl Iterator<Item = Method> {
    table().iter().filter_map(|op| Method::of(op))
}

/// The regular methods as calls of one macro for each form: `unary! { relu, Num, T, "The positive part" }`.
pub fn text() -> String {
    regular().map(|method| method.to_string()).collect()
}

impl Method {
    fn of(row: &'static OpInfo) -> Option<Method> {
        if row.call != Call::Method {
            return None;
        }
        let form = Form::of(row)?;
        Some(Method { row, form, result: Element::of(row, form)? })
    }
}

impl Form {
    fn of(row: &OpInfo) -> Option<Form> {
        let kinds: Vec<ParamKind> = row.params.iter().map(|param| param.kind).collect();
        let rank = |attrs: &[Attr]| Some(results(row, DType::F32, &[], attrs)?.rank());
        match (row.class, &kinds[..]) {
            (Class::Elementwise, []) => Some(Form::Unary),
            (Class::Elementwise, [ParamKind::Operand]) => Some(Form::Binary),
            (Class::View(_) | Class::Host, _) => None,
            (_, []) if rank(&[])? == 0 => Some(Form::ReduceAll),
            (_, [ParamKind::Axis]) => match rank(&[Attr::Int(1)])? {
                SAMPLE_RANK => Some(Form::Along),
                rank if rank + 1 == SAMPLE_RANK => Some(Form::Reduce),
                _ => None,
            },
            _ => None,
        }
    }
}

const SAMPLE_RANK: usize = 3;

impl Element {
    /// Found by asking the type rule for every element type the row accepts.
    fn of(row: &OpInfo, form: Form) -> Option<Element> {
        let attrs: &[Attr] = match form {
            Form::Along | Form::Reduce => &[Attr::Int(1)],
            Form::Unary | Form::Binary | Form::ReduceAll => &[],
        };
        let operands = usize::from(form == Form::Binary);
        let seen: Vec<(DType, DType)> = DType::ALL
            .into_iter()
            .filter(|&dtype| row.accepts.contains(dtype))
            .map(|dtype| Some((dtype, results(row, dtype, &vec![dtype; operands], attrs)?.dtype)))
            .collect::<Option<_>>()?;
        let all = |of: fn(DType) -> DType| seen.iter().all(|&(from, to)| to == of(from));
        [
            (Element::Same, (|dtype| dtype) as fn(DType) -> DType),
            (Element::Bool, |_| DType::Bool),
            (Element::Index, |_| DType::I64),
            (Element::Sum, sum_dtype),
        ]
        .into_iter()
        .find_map(|(element, of)| all(of).then_some(element))
    }
}

/// The type of the one result on a receiver of rank [`SAMPLE_RANK`] and operands like it.
fn results(row: &OpInfo, receiver: DType, operands: &[DType], attrs: &[Attr]) -> Option<Ty> {
    let types: Vec<Ty> =
        [receiver].iter().chain(operands).map(|&dtype| Ty::new(dtype, vec![Dim::Const(2); 3])).collect();
    let [result] = row.types(&mut Rules::default(), &types.iter().collect::<Vec<_>>(), attrs).ok()?.try_into().ok()?;
    Some(result)
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Unary => "unary",
            Form::Binary => "binary",
            Form::Along => "along",
            Form::Reduce => "reduce",
            Form::ReduceAll => "reduce_all",
        };
        let class = match self.row.accepts {
            Accepts::Any => "Element",
            Accepts::Float => "Float",
            Accepts::Number => "Num",
            Accepts::Factor | Accepts::Float8 => unreachable!("products are no regular methods"),
            Accepts::Int => "Int",
            Accepts::Bits | Accepts::Bool => "Bits",
        };
        let result = match self.result {
            Element::Same => "T",
            Element::Sum => "T::Sum",
            Element::Bool => "bool",
            Element::Index => "i64",
        };
        let OpInfo { name, doc, .. } = self.row;
        writeln!(f, "{form}! {{ {name}, {class}, {result}, {:?} }}", format!("{doc}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: &str) {
        let found = regular().find(|method| method.row.name == name).map(|method| method.to_string());
        let found = found.as_deref().map(|text| text.split(", \"").next().unwrap());
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn signatures_follow_from_the_rows() {
        check("relu", "unary! { relu, Num, T");
        check("isnan", "unary! { isnan, Float, bool");
        check("lt", "binary! { lt, Element, bool");
        check("bitwise_left_shift", "binary! { bitwise_left_shift, Int, T");
        check("sum", "reduce! { sum, Element, T::Sum");
        check("argmax_keepdim", "along! { argmax_keepdim, Element, i64");
        check("mean_all", "reduce_all! { mean_all, Float, T");
        check("cumsum", "along! { cumsum, Element, T::Sum");
        check("softmax", "along! { softmax, Float, T");
    }

    #[test]
    fn irregular_rows_are_left_to_the_runtime() {
        let names: Vec<&str> = regular().map(|method| method.row.name).collect();
        for name in ["matmul", "where_cond", "detach", "squeeze", "item", "take", "unbind"] {
            assert!(!names.contains(&name), "{name}");
        }
    }
}
