//! Reading and writing at computed positions. A position out of range, negative ones included, is a fault.

use super::ParamKind::{Axis, Bool, Tensor, TensorOf};
use super::build::Ops;
use super::rules::{self, Fault, Rules, Types};
use super::{Accepts, Attr, Call, Class, Gradient, OpEffect, OpInfo, Param, Pulled, Val, param};
use crate::types::{DType, Dim, Ty};

const INDEX: Param = param("index", TensorOf(DType::I64));

const FAULTY: OpInfo = OpInfo { effect: OpEffect::MayFault, ..OpInfo::BASE };

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "gather",
        doc: "The elements at the positions along an axis that `index` holds, for every place of `index`",
        params: &[param("dim", Axis), INDEX],
        lone: true,
        infer: |rules, args, attrs| {
            let axis = rules.axis(attrs[0].int(), args[0].rank())?;
            need_index(rules, args, 1, args[0].rank())?;
            need_covered(rules, args, 1, 0, Some(axis))?;
            Ok(vec![args[1].with_dtype(args[0].dtype)])
        },
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
            let covered = cut_like(&mut o, args[0], args[1], Some(axis));
            vec![take(&mut o, covered, args[1], axis)]
        }),
        ..FAULTY
    },
    OpInfo {
        name: "index_select",
        doc: "The parts of the tensor at these positions of an axis",
        params: &[param("dim", Axis), INDEX],
        lone: true,
        infer: |rules, args, attrs| {
            let axis = rules.axis(attrs[0].int(), args[0].rank())?;
            need_index(rules, args, 1, 1)?;
            let mut ty = args[0].clone();
            ty.dims[axis] = args[1].dims[0].clone();
            Ok(vec![ty])
        },
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let rank = o.rank(args[0]);
            let axis = rules::axis_of(&attrs[0], rank);
            let index = along_axis(&mut o, args[1], axis, rank);
            vec![take(&mut o, args[0], index, axis)]
        }),
        ..FAULTY
    },
    OpInfo {
        name: "embedding",
        doc: "The rows of a matrix at the positions that `index` holds",
        params: &[INDEX],
        infer: |rules, args, _| {
            rules::need_rank(rules, args, 0, 2)?;
            rules::need_dtype(rules, args, 1, DType::I64)?;
            let mut dims = args[1].dims.clone();
            dims.push(args[0].dims[1].clone());
            Ok(vec![Ty::new(args[0].dtype, dims)])
        },
        decompose: Some(|b, args, _| {
            let mut o = Ops(b);
            let index = o.unsqueeze(args[1], o.rank(args[1]));
            let rows = lookup(&mut o, args[0], index);
            // A single position comes back as a matrix of one row.
            vec![if o.rank(args[1]) == 0 { o.squeeze(rows, 0) } else { rows }]
        }),
        gradient: Gradient::Built(|o, c, _| {
            let (index, columns) = (c.args[1], o.dims(c.args[0])[1].clone());
            let count = o.ty(index).numel();
            let index = o.reshape(index, vec![count.clone(), Dim::Const(1)]);
            let rows = o.reshape(c.g, vec![count, columns]);
            let zeros = o.zeros(o.dims(c.args[0]), o.dtype(c.g));
            scatter(o, [zeros, index, rows], 0, true)
        }),
        ..FAULTY
    },
    OpInfo {
        name: "scatter_add",
        doc: "The tensor with the elements of `src` added at the positions along an axis that `index` holds",
        params: &[param("dim", Axis), INDEX, param("src", Tensor)],
        lone: true,
        accepts: Accepts::Number,
        infer: |rules, args, attrs| {
            let axis = rules.axis(attrs[0].int(), args[0].rank())?;
            need_index(rules, args, 1, args[0].rank())?;
            rules::need_rank(rules, args, 2, args[0].rank())?;
            rules::need_dtype(rules, args, 2, args[0].dtype)?;
            need_covered(rules, args, 1, 0, Some(axis))?;
            need_covered(rules, args, 1, 2, None)?;
            rules::same(rules, args, attrs)
        },
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
            let src = cut_like(&mut o, args[2], args[1], None);
            vec![scatter(&mut o, [args[0], args[1], src], axis, true)]
        }),
        ..FAULTY
    },
    OpInfo {
        name: "index_add",
        doc: "The tensor with the parts of `src` added at these positions of an axis",
        params: &[param("dim", Axis), INDEX, param("src", Tensor)],
        lone: true,
        accepts: Accepts::Number,
        infer: part_type,
        decompose: Some(|b, args, attrs| vec![scatter_parts(&mut Ops(b), args, attrs, true)]),
        ..FAULTY
    },
    OpInfo {
        name: "index_copy",
        doc: "The tensor with the parts at these positions of an axis replaced by those of `src`",
        params: &[param("dim", Axis), INDEX, param("src", Tensor)],
        lone: true,
        infer: part_type,
        decompose: Some(|b, args, attrs| vec![scatter_parts(&mut Ops(b), args, attrs, false)]),
        ..FAULTY
    },
    OpInfo {
        name: "index_copy_",
        doc: "Replaces the parts at these positions of an axis by those of `src`",
        call: super::Call::Mutating,
        params: &[param("dim", Axis), INDEX, param("src", Tensor)],
        lone: true,
        infer: part_type,
        decompose: Some(|b, args, attrs| vec![scatter_parts(&mut Ops(b), args, attrs, false)]),
        ..FAULTY
    },
    OpInfo {
        name: "tril",
        doc: "The matrices in the last two axes with zeros above diagonal `diagonal`",
        params: &[param("diagonal", super::ParamKind::Dim)],
        infer: triangle_type,
        decompose: Some(|b, args, attrs| vec![triangle(&mut Ops(b), args[0], attrs[0].dim(), "le")]),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "triu",
        doc: "The matrices in the last two axes with zeros below diagonal `diagonal`",
        params: &[param("diagonal", super::ParamKind::Dim)],
        infer: triangle_type,
        decompose: Some(|b, args, attrs| vec![triangle(&mut Ops(b), args[0], attrs[0].dim(), "ge")]),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "take",
        doc: "The elements of a tensor at positions along an axis; the other axes broadcast with those of `index`",
        call: Call::Internal,
        class: Class::Gather,
        params: &[INDEX, param("dim", Axis)],
        infer: take_type,
        gradient: Gradient::Built(taken),
        ..FAULTY
    },
    OpInfo {
        name: "scatter",
        doc: "A copy of a tensor with the elements of `src` written, or added, at positions along an axis",
        call: Call::Internal,
        class: Class::Scatter,
        params: &[INDEX, param("src", Tensor), param("dim", Axis), param("add", Bool)],
        infer: |rules, args, attrs| {
            rules.axis(attrs[0].int(), args[0].rank())?;
            rules::need_dtype(rules, args, 1, DType::I64)?;
            rules::need_rank(rules, args, 2, args[0].rank())?;
            // What they broadcast to is `src`, by the rules of the ops that are made of this one.
            rules.broadcast_two(&args[2].dims, &args[1].dims, 1)?;
            rules::need_dtype(rules, args, 2, args[0].dtype)?;
            rules::same(rules, args, attrs)
        },
        gradient: Gradient::Built(scattered),
        ..FAULTY
    },
];

fn take_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let axis = rules.axis(attrs[0].int(), args[0].rank())?;
    rules::need_dtype(rules, args, 1, DType::I64)?;
    let mut cut = args[0].dims.clone();
    cut[axis] = Dim::Const(1);
    Ok(vec![Ty::new(args[0].dtype, rules.broadcast_two(&cut, &args[1].dims, 1)?)])
}

fn take(o: &mut Ops, x: Val, index: Val, axis: usize) -> Val {
    o.with("take", &[x, index], vec![Attr::Int(axis as i64)])
}

/// The cotangents added at the positions they were taken from. Axes along which the table was broadcast are summed later.
fn taken(o: &mut Ops, c: &Pulled, _: usize) -> Val {
    let (table, index) = (o.dims(c.args[0]), c.args[1]);
    let mut dims = o.dims(c.g);
    let axis = rules::axis_of(&c.attrs[0], table.len());
    let place = axis + dims.len() - table.len();
    dims[place] = table[axis].clone();
    let zeros = o.zeros(dims, o.dtype(c.g));
    scatter(o, [zeros, index, c.g], place, true)
}

/// What was written or added has the cotangent of its position. What was written over has none, be it by a later element
/// for the same position.
fn scattered(o: &mut Ops, c: &Pulled, k: usize) -> Val {
    let (index, src, adds) = (c.args[1], o.dims(c.args[2]), c.attrs[1].flag());
    let axis = rules::axis_of(&c.attrs[0], src.len());
    match (k, adds) {
        (0, true) => c.g,
        (0, false) => {
            let zeros = o.zeros(src, o.dtype(c.g));
            scatter(o, [c.g, index, zeros], axis, false)
        }
        (_, true) => read_back(o, c.g, index, c.args[2], axis),
        (_, false) => {
            let places = o.positions(src[axis].clone(), axis, src.len());
            let places = o.expand(places, src);
            let unwritten = o.zeros(o.dims(c.g), DType::I64);
            let last = scatter(o, [unwritten, index, places], axis, false);
            let last = read_back(o, last, index, c.args[2], axis);
            let stays = o.apply("eq", &[last, places]);
            let back = read_back(o, c.g, index, c.args[2], axis);
            o.only(stays, back)
        }
    }
}

/// What a result holds where the elements of `src` were scattered to.
fn read_back(o: &mut Ops, result: Val, index: Val, src: Val, axis: usize) -> Val {
    let covered = cut_like(o, result, src, Some(axis));
    let taken = take(o, covered, index, axis);
    o.expand(taken, o.dims(src))
}

/// Rows of a matrix by an index with an axis of extent 1 in the place of the columns.
fn lookup(o: &mut Ops, matrix: Val, index: Val) -> Val {
    take(o, matrix, index, 0)
}

/// Sums are taken in the compute type, so that many small terms still count in the halves, and rounded once.
fn scatter(o: &mut Ops, [x, index, src]: [Val; 3], axis: usize, add: bool) -> Val {
    let attrs = vec![Attr::Int(axis as i64), Attr::Bool(add)];
    if !add {
        return o.with("scatter", &[x, index, src], attrs);
    }
    let (wide, wide_src) = (o.widen(x), o.widen(src));
    let sum = o.with("scatter", &[wide, index, wide_src], attrs);
    o.cast(sum, o.dtype(x))
}

fn scatter_parts(o: &mut Ops, args: &[Val], attrs: &[Attr], add: bool) -> Val {
    let rank = o.rank(args[0]);
    let axis = rules::axis_of(&attrs[0], rank);
    let index = along_axis(o, args[1], axis, rank);
    scatter(o, [args[0], index, args[2]], axis, add)
}

/// A vector of positions turned so that it runs along this axis of this rank.
fn along_axis(o: &mut Ops, index: Val, axis: usize, rank: usize) -> Val {
    let inner = (axis + 1..rank).fold(index, |index, at| o.unsqueeze(index, at - axis));
    (0..axis).fold(inner, |index, _| o.unsqueeze(index, 0))
}

/// The first positions of each axis, as many as `like` has, but for one axis.
fn cut_like(o: &mut Ops, x: Val, like: Val, free: Option<usize>) -> Val {
    let dims = o.dims(like);
    let cut = dims.into_iter().enumerate().filter(|&(axis, _)| Some(axis) != free);
    cut.fold(x, |x, (axis, len)| o.narrow(x, axis, Dim::Const(0), len))
}

fn need_index(rules: &Rules, args: &[&Ty], operand: usize, rank: usize) -> Result<(), Fault> {
    rules::need_dtype(rules, args, operand, DType::I64)?;
    rules::need_rank(rules, args, operand, rank)
}

/// No extent of operand `small` is above that of operand `large`, but for one axis.
fn need_covered(rules: &mut Rules, args: &[&Ty], small: usize, large: usize, free: Option<usize>) -> Result<(), Fault> {
    let op = rules.op;
    for axis in (0..args[small].rank()).filter(|&axis| Some(axis) != free) {
        let (have, limit) = (&args[small].dims[axis], &args[large].dims[axis]);
        if !rules.at_most(have, limit, || format!("`{op}`: an index of extent {{left}} for an extent of {{right}}")) {
            let (have, limit) = (rules.show(have), rules.show(limit));
            let message =
                format!("`{op}`: axis {axis} of {{{small}}} has extent {have}, that of {{{large}}} only {limit}");
            return Err(Fault::new(message)
                .help(format!("`{{{small}}}.narrow({axis}, 0, {limit})` would fit"))
                .at(small));
        }
    }
    Ok(())
}

/// `src` has the extents of the receiver, but along the axis as many as there are positions.
fn part_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let axis = rules.axis(attrs[0].int(), args[0].rank())?;
    need_index(rules, args, 1, 1)?;
    rules::need_rank(rules, args, 2, args[0].rank())?;
    rules::need_dtype(rules, args, 2, args[0].dtype)?;
    let mut want = args[0].dims.clone();
    want[axis] = args[1].dims[0].clone();
    let op = rules.op;
    for (want_extent, have) in want.iter().zip(&args[2].dims) {
        if !rules.equal(want_extent, have, || format!("`{op}`: `src` has extent {{right}}, it should have {{left}}")) {
            let (want, have) = (rules.show_all(&want), rules.show_all(&args[2].dims));
            return Err(Fault::new(format!("`{op}`: {{2}} is {have}, it should be {want}"))
                .help(format!("it has the extents of {{0}}, and on axis {axis} as many as {{1}} has elements"))
                .at(2));
        }
    }
    rules::same(rules, args, attrs)
}

fn triangle_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    if args[0].rank() < 2 {
        return Err(Fault::new(format!("`{}` is for matrices, {{0}} has rank {}", rules.op, args[0].rank())).at(0));
    }
    rules::same(rules, args, attrs)
}

/// Keeps the elements whose column compares so with their row plus `diagonal`.
fn triangle(o: &mut Ops, x: Val, diagonal: Dim, compare: &str) -> Val {
    let (dims, rank) = (o.dims(x), o.rank(x));
    let row = o.positions(dims[rank - 2].clone(), 0, 2);
    let column = o.positions(dims[rank - 1].clone(), 1, 2);
    let diagonal = o.size(diagonal, DType::I64);
    let limit = o.add(row, diagonal);
    let kept = o.apply(compare, &[column, limit]);
    let zero = o.zero(o.dtype(x));
    o.choose(kept, x, zero)
}
