//! The value of one primitive, by class.

use super::Failure;
use super::value::{Value, unravel};
use crate::op::rules::{axes_of, axis_of};
use crate::op::{Attr, Class, Num, Op, Reduction, ViewKind};
use crate::types::{DType, Dim, Ty};
use std::convert::Infallible;

/// The result of a primitive of this type.
pub(super) fn eval(op: Op, args: &[&Value], attrs: &[Attr], ty: &Ty) -> Result<Value, Failure> {
    match op.class {
        Class::Elementwise => elementwise(op, args, ty),
        Class::View(kind) => Ok(view(kind, args[0], attrs, ty)),
        Class::Reduce(kind) => Ok(reduce(kind, args[0], attrs.first(), ty)),
        Class::Scan(kind) => Ok(scan(kind, args[0], &attrs[0], ty)),
        Class::Matmul => Ok(matmul(args[0], args[1], ty)),
        Class::Gather => gather(args[0], args[1], &attrs[0], ty),
        Class::Scatter => scatter(args, &attrs[0], attrs[1].flag()),
        Class::Write => Ok(write(args[0], args[1], attrs)),
        Class::Join => Ok(join(args, &attrs[0], ty)),
        Class::Source(_) | Class::Composite | Class::Host => unreachable!("`{}` is no primitive on tensors", op.name),
    }
}

/// A result whose elements cannot fail.
fn build(ty: &Ty, mut element: impl FnMut(&[usize]) -> Num) -> Value {
    let Ok(value) = Value::build(ty, |index| Ok::<_, Infallible>(element(index)));
    value
}

fn elementwise(op: Op, args: &[&Value], ty: &Ty) -> Result<Value, Failure> {
    let Some(scalar) = &op.scalar else {
        return Ok(build(ty, |index| args[0].at(index).cast(ty.dtype)));
    };
    Value::build(ty, |index| {
        let operands: Vec<Num> = args.iter().map(|arg| arg.broadcast_at(index)).collect();
        match scalar.zero_fault && operands[1] == Num::I(0) {
            true => Err(Failure::DivisionByZero),
            false => Ok((scalar.eval)(&operands)),
        }
    })
}

fn view(kind: ViewKind, x: &Value, attrs: &[Attr], ty: &Ty) -> Value {
    let rank = x.dims.len();
    match kind {
        ViewKind::Reshape | ViewKind::Unsqueeze | ViewKind::Squeeze => Value::positions(ty, |at| x.data[at]),
        ViewKind::Expand => build(ty, |index| x.broadcast_at(index)),
        ViewKind::Permute => {
            let order = axes_of(&attrs[0], rank);
            build(ty, |index| {
                let mut source = vec![0; rank];
                order.iter().zip(index).for_each(|(&axis, &i)| source[axis] = i);
                x.at(&source)
            })
        }
        ViewKind::Narrow => {
            let (axis, start) = (axis_of(&attrs[0], rank), known(&attrs[1].dim()));
            build(ty, |index| x.at(&moved(index, axis, |i| i + start)))
        }
        ViewKind::Flip => {
            let axes = axes_of(&attrs[0], rank);
            build(ty, |index| {
                let flipped = axes.iter().fold(index.to_vec(), |index, &k| moved(&index, k, |i| x.dims[k] - 1 - i));
                x.at(&flipped)
            })
        }
    }
}

fn reduce(kind: Reduction, x: &Value, axis: Option<&Attr>, ty: &Ty) -> Value {
    match axis {
        None => build(ty, |_| fold(kind, x.data.iter().copied(), ty.dtype)),
        Some(axis) => {
            let axis = axis_of(axis, x.dims.len());
            build(ty, |index| fold(kind, line(x, axis, index), ty.dtype))
        }
    }
}

/// The elements along an axis, at an index of the other axes.
fn line<'a>(x: &'a Value, axis: usize, index: &[usize]) -> impl Iterator<Item = Num> + 'a {
    let mut index = index.to_vec();
    index.insert(axis, 0);
    (0..x.dims[axis]).map(move |at| {
        index[axis] = at;
        x.at(&index)
    })
}

fn fold(kind: Reduction, elements: impl Iterator<Item = Num>, dtype: DType) -> Num {
    match kind {
        Reduction::Sum => elements.fold(whole(0, dtype), |a, b| combine(a, b, |a, b| a + b, i64::wrapping_add)),
        Reduction::Prod => elements.fold(whole(1, dtype), |a, b| combine(a, b, |a, b| a * b, i64::wrapping_mul)),
        Reduction::Max => extreme(elements, above).map_or(Num::F(f64::NEG_INFINITY), |(_, x)| x),
        Reduction::Min => extreme(elements, |a, b| above(b, a)).map_or(Num::F(f64::INFINITY), |(_, x)| x),
        Reduction::ArgMax => position(extreme(elements, beats)),
        Reduction::ArgMin => position(extreme(elements, |a, b| beats(b, a))),
    }
}

fn whole(value: i64, dtype: DType) -> Num {
    if dtype.is_float() { Num::F(value as f64) } else { Num::I(value) }
}

fn combine(a: Num, b: Num, float: fn(f64, f64) -> f64, int: fn(i64, i64) -> i64) -> Num {
    match (a, b) {
        (Num::F(a), Num::F(b)) => Num::F(float(a, b)),
        (Num::I(a), Num::B(b)) => Num::I(int(a, b as i64)),
        (a, b) => Num::I(int(a.i(), b.i())),
    }
}

/// The first element that no later one is above, or the first NaN.
fn extreme(elements: impl Iterator<Item = Num>, above: fn(Num, Num) -> bool) -> Option<(usize, Num)> {
    let is_nan = |x: Num| matches!(x, Num::F(x) if x.is_nan());
    elements.enumerate().reduce(|best, new| {
        let wins = !is_nan(best.1) && (is_nan(new.1) || above(new.1, best.1));
        if wins { new } else { best }
    })
}

fn position(found: Option<(usize, Num)>) -> Num {
    Num::I(found.map_or(0, |(at, _)| at as i64))
}

/// Whether a value is above another; -0.0 is below +0.0.
fn above(a: Num, b: Num) -> bool {
    match (a, b) {
        (Num::F(a), Num::F(b)) if a == b => a.is_sign_positive() && b.is_sign_negative(),
        _ => beats(a, b),
    }
}

/// Whether a value is greater than another; zeros are equal.
fn beats(a: Num, b: Num) -> bool {
    match (a, b) {
        (Num::F(a), Num::F(b)) => a > b,
        (Num::B(a), Num::B(b)) => a & !b,
        (a, b) => a.i() > b.i(),
    }
}

fn scan(kind: Reduction, x: &Value, axis: &Attr, ty: &Ty) -> Value {
    let axis = axis_of(axis, x.dims.len());
    build(ty, |index| {
        let mut outer = index.to_vec();
        let last = outer.remove(axis);
        fold(kind, line(x, axis, &outer).take(last + 1), ty.dtype)
    })
}

fn matmul(a: &Value, b: &Value, ty: &Ty) -> Value {
    let inner = a.dims[a.dims.len() - 1];
    build(ty, |index| {
        let (batch, &[row, column]) = index.split_last_chunk::<2>().expect("a product has two axes");
        let products = (0..inner).map(|k| {
            let left = a.broadcast_at(&[batch, &[row, k]].concat());
            let right = b.broadcast_at(&[batch, &[k, column]].concat());
            combine(left, right, |a, b| a * b, i64::wrapping_mul)
        });
        fold(Reduction::Sum, products, ty.dtype)
    })
}

fn gather(x: &Value, index: &Value, axis: &Attr, ty: &Ty) -> Result<Value, Failure> {
    let axis = axis_of(axis, x.dims.len());
    let mut cut = x.dims.clone();
    cut[axis] = 1;
    Value::build(ty, |at| {
        let position = inside(index.broadcast_at(at), x.dims[axis])?;
        let own = &at[at.len() - cut.len()..];
        let mut source: Vec<usize> =
            own.iter().zip(&cut).map(|(&i, &extent)| if extent == 1 { 0 } else { i }).collect();
        source[axis] = position;
        Ok(x.at(&source))
    })
}

fn inside(index: Num, extent: usize) -> Result<usize, Failure> {
    let index = index.i();
    match usize::try_from(index) {
        Ok(position) if position < extent => Ok(position),
        _ => Err(Failure::Index { index, extent }),
    }
}

fn scatter(args: &[&Value], axis: &Attr, add: bool) -> Result<Value, Failure> {
    let &[x, index, src] = args else { unreachable!("a scatter has three operands") };
    let axis = axis_of(axis, x.dims.len());
    let mut result = x.clone();
    for (at, &element) in src.data.iter().enumerate() {
        let mut target = unravel(at, &src.dims);
        target[axis] = inside(index.broadcast_at(&target), x.dims[axis])?;
        let place = &mut result.data[x.position(&target)];
        *place = if add { combine(*place, element, |a, b| a + b, i64::wrapping_add) } else { element };
    }
    Ok(result)
}

fn write(x: &Value, src: &Value, attrs: &[Attr]) -> Value {
    let (axis, start) = (axis_of(&attrs[0], x.dims.len()), known(&attrs[1].dim()));
    let mut result = x.clone();
    for (at, &element) in src.data.iter().enumerate() {
        let target = moved(&unravel(at, &src.dims), axis, |i| i + start);
        result.data[x.position(&target)] = element;
    }
    result
}

fn join(args: &[&Value], axis: &Attr, ty: &Ty) -> Value {
    let axis = axis_of(axis, ty.rank());
    build(ty, |index| {
        let mut at = index[axis];
        let part = args.iter().find(|part| {
            let here = at < part.dims[axis];
            at -= if here { 0 } else { part.dims[axis] };
            here
        });
        part.expect("extents along the axis add up").at(&moved(index, axis, |_| at))
    })
}

/// An index with its position along one axis replaced.
fn moved(index: &[usize], axis: usize, to: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut index = index.to_vec();
    index[axis] = to(index[axis]);
    index
}

fn known(dim: &Dim) -> usize {
    dim.as_const().expect("evaluated attributes are known") as usize
}
