//! Views: other extents, orders and parts of the same elements.

use super::ParamKind::{Axes, Axis, Count, Dim as Size, Dims};
use super::build::Ops;
use super::rules::{self, Fault, Rules, Types};
use super::{Accepts, Attr, Call, Class, Gradient, OpInfo, Pulled, Val, ViewKind, param};
use crate::types::{Dim, Ty};

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "reshape",
        doc: "Other extents for the same elements in row-major order",
        class: Class::View(ViewKind::Reshape),
        params: &[param("shape", Dims)],
        infer: reshape_type,
        gradient: Gradient::Built(|o, c, _| o.reshape(c.g, o.dims(c.args[0]))),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "permute",
        doc: "The axes in another order: axis `k` of the result is axis `dims[k]`",
        class: Class::View(ViewKind::Permute),
        params: &[param("dims", Axes)],
        infer: permute_type,
        gradient: Gradient::Built(|o, c, _| {
            let axes = rules::axes_of(&c.attrs[0], o.rank(c.g));
            let mut back = vec![0; axes.len()];
            axes.into_iter().enumerate().for_each(|(to, from)| back[from] = to);
            o.permute(c.g, &back)
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "transpose",
        doc: "Two axes swapped",
        params: &[param("dim0", Axis), param("dim1", Axis)],
        lone: true,
        infer: |rules, args, attrs| {
            let rank = args[0].rank();
            let (a, b) = (rules.axis(attrs[0].int(), rank)?, rules.axis(attrs[1].int(), rank)?);
            let mut ty = args[0].clone();
            ty.dims.swap(a, b);
            Ok(vec![ty])
        },
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let rank = o.rank(args[0]);
            let mut order: Vec<usize> = (0..rank).collect();
            order.swap(rules::axis_of(&attrs[0], rank), rules::axis_of(&attrs[1], rank));
            vec![o.permute(args[0], &order)]
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "t",
        doc: "The transpose of a matrix",
        infer: |rules, args, _| {
            rules::need_rank(rules, args, 0, 2)?;
            let [rows, columns] = args[0].dims.as_slice() else { unreachable!() };
            Ok(vec![Ty::new(args[0].dtype, [columns.clone(), rows.clone()])])
        },
        decompose: Some(|b, args, _| vec![Ops(b).permute(args[0], &[1, 0])]),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "unsqueeze",
        doc: "A new axis of extent 1 at this place of the result",
        class: Class::View(ViewKind::Unsqueeze),
        params: &[param("dim", Axis)],
        infer: |rules, args, attrs| {
            let mut ty = args[0].clone();
            ty.dims.insert(rules.new_axis(attrs[0].int(), args[0].rank())?, Dim::Const(1));
            Ok(vec![ty])
        },
        gradient: Gradient::Built(|o, c, _| o.squeeze(c.g, rules::axis_of(&c.attrs[0], o.rank(c.g)))),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "squeeze",
        doc: "The tensor without an axis of extent 1",
        class: Class::View(ViewKind::Squeeze),
        params: &[param("dim", Axis)],
        lone: true,
        infer: squeeze_type,
        gradient: Gradient::Built(|o, c, _| o.unsqueeze(c.g, rules::axis_of(&c.attrs[0], o.rank(c.args[0])))),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "expand",
        doc: "The tensor broadcast to these extents",
        class: Class::View(ViewKind::Expand),
        params: &[param("shape", Dims)],
        infer: |rules, args, attrs| expanded(rules, args[0], attrs[0].dims()),
        gradient: Gradient::Built(|_, c, _| c.g),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "narrow",
        doc: "`length` positions of an axis from `start` on",
        class: Class::View(ViewKind::Narrow),
        params: &[param("dim", Axis), param("start", Size), param("length", Size)],
        infer: narrow_type,
        gradient: Gradient::Built(|o, c, _| {
            let zeros = o.zeros(o.dims(c.args[0]), o.dtype(c.g));
            o.with("write", &[zeros, c.g], c.attrs[..2].to_vec())
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "slice",
        doc: "The positions `start..end` of an axis, negative ones counted from the end and clipped, as in Python",
        params: &[param("dim", Axis), param("start", Size), param("end", Size)],
        infer: |rules, args, attrs| {
            let axis = rules.axis(attrs[0].int(), args[0].rank())?;
            let mut ty = args[0].clone();
            ty.dims[axis] = python_range(&args[0].dims[axis], &attrs[1].dim(), &attrs[2].dim()).1;
            Ok(vec![ty])
        },
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
            let (start, len) = python_range(&o.dims(args[0])[axis], &attrs[1].dim(), &attrs[2].dim());
            vec![o.narrow(args[0], axis, start, len)]
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "flip",
        doc: "The tensor with the order along these axes reversed",
        class: Class::View(ViewKind::Flip),
        params: &[param("dims", Axes)],
        lone: true,
        infer: |rules, args, attrs| {
            distinct_axes(rules, attrs[0].ints(), args[0].rank())?;
            rules::same(rules, args, attrs)
        },
        gradient: Gradient::Built(|o, c, _| o.with("flip", &[c.g], c.attrs.to_vec())),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "repeat",
        doc: "The tensor laid out this many times along each axis",
        params: &[param("repeats", Dims)],
        infer: |rules, args, attrs| {
            let repeats = attrs[0].dims();
            need_count(rules, repeats.len(), args[0].rank(), "repeats")?;
            let dims: Vec<Dim> =
                args[0].dims.iter().zip(repeats).map(|(d, k)| Dim::mul(d.clone(), k.clone())).collect();
            Ok(vec![Ty::new(args[0].dtype, dims)])
        },
        decompose: Some(|b, args, attrs| vec![repeat(&mut Ops(b), args[0], attrs[0].dims())]),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "chunk",
        doc: "The tensor cut along an axis into as many parts as the result names, the last ones smaller",
        params: &[param("dim", Axis), param("chunks", Count)],
        infer: |rules, args, attrs| {
            let axis = rules.axis(attrs[0].int(), args[0].rank())?;
            need_parts(rules, &args[0].dims[axis], attrs)?;
            let part = |(_, len): (Dim, Dim)| {
                let mut ty = args[0].clone();
                ty.dims[axis] = len;
                ty
            };
            Ok(chunks(&args[0].dims[axis], attrs[1].int()).into_iter().map(part).collect())
        },
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
            let parts = chunks(&o.dims(args[0])[axis], attrs[1].int());
            parts.into_iter().map(|(start, len)| o.narrow(args[0], axis, start, len)).collect()
        }),
        gradient: Gradient::Built(|o, c, _| joined(o, c, "cat")),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "unbind",
        doc: "The parts of the tensor at each position of an axis, without that axis",
        params: &[param("dim", Axis)],
        infer: |rules, args, attrs| {
            let axis = rules.axis(attrs[0].int(), args[0].rank())?;
            let mut ty = args[0].clone();
            match ty.dims.remove(axis) {
                Dim::Const(parts) => Ok(vec![ty; parts as usize]),
                _ => Err(Fault::new(format!("`unbind` needs an extent of {{0}} that is known, axis {axis} is not"))
                    .help("write the extent as a number in `#[dims]`")
                    .at_axis(attrs[0].int())
                    .while_open()),
            }
        },
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
            let parts = o.dims(args[0])[axis].as_const().expect("the type rule wants a known extent");
            let part = |at| {
                let part = o.narrow(args[0], axis, Dim::Const(at), Dim::Const(1));
                o.squeeze(part, axis)
            };
            (0..parts).map(part).collect()
        }),
        gradient: Gradient::Built(|o, c, _| joined(o, c, "stack")),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "detach",
        doc: "The same values, through which no gradient flows",
        decompose: Some(|_, args, _| vec![args[0]]),
        gradient: Gradient::Zero,
        ..OpInfo::BASE
    },
    OpInfo {
        name: "sum_to",
        doc: "The sum over what was broadcast from these extents",
        call: Call::Internal,
        params: &[param("shape", Dims)],
        accepts: Accepts::Float,
        infer: |_, args, attrs| Ok(vec![Ty::new(args[0].dtype, attrs[0].dims())]),
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let wide = o.widen(args[0]);
            let sum = super::unbroadcast::sum_to(&mut o, wide, attrs[0].dims());
            vec![o.cast(sum, o.dtype(args[0]))]
        }),
        gradient: Gradient::Built(|o, c, _| o.expand(c.g, o.dims(c.args[0]))),
        ..OpInfo::BASE
    },
];

/// The cotangents of the parts, one after the other; zeros for those that have none.
fn joined(o: &mut Ops, c: &Pulled, join: &str) -> Val {
    let compute = o.dtype(c.g);
    let parts: Vec<Val> = c
        .ups
        .iter()
        .zip(c.outs)
        .map(|(up, &out)| match up {
            Some(up) => o.cast(*up, compute),
            None => o.zeros(o.dims(out), compute),
        })
        .collect();
    o.with(join, &parts, c.attrs[..1].to_vec())
}

fn reshape_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let ty = Ty::new(args[0].dtype, attrs[0].dims());
    let (have, want) = (args[0].numel(), ty.numel());
    if rules.equal(&have, &want, || "`reshape`: {left} elements do not fill a shape of {right}".to_owned()) {
        return Ok(vec![ty]);
    }
    let (from, to) = (rules.show_all(&args[0].dims), rules.show_all(&ty.dims));
    let (have, want) = (rules.show(&have), rules.show(&want));
    let message = format!("`reshape` keeps the number of elements: {{0}} is {from}, {have} elements; {to} has {want}");
    Err(Fault::new(message).help(format!("the new extents must multiply to {have}")))
}

fn permute_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let order = attrs[0].ints();
    need_count(rules, order.len(), args[0].rank(), "axes")?;
    let axes = distinct_axes(rules, order, args[0].rank())?;
    let dims: Vec<Dim> = axes.into_iter().map(|axis| args[0].dims[axis].clone()).collect();
    Ok(vec![Ty::new(args[0].dtype, dims)])
}

fn squeeze_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let axis = rules.axis(attrs[0].int(), args[0].rank())?;
    let mut ty = args[0].clone();
    let extent = ty.dims.remove(axis);
    if !rules.equal(&extent, &Dim::Const(1), || "`squeeze` removes an extent of {right}, it is {left}".to_owned()) {
        let message = format!("`squeeze`: axis {axis} of {{0}} has extent {}, not 1", rules.show(&extent));
        return Err(Fault::new(message)
            .help(format!("`{{0}}.narrow({axis}, 0, 1)` would leave an extent of 1"))
            .at_axis(attrs[0].int()));
    }
    Ok(vec![ty])
}

/// The type of a tensor broadcast to these extents.
pub(super) fn expanded(rules: &mut Rules, ty: &Ty, dims: &[Dim]) -> Types {
    if !rules.all_stretch(&ty.dims, dims) {
        let (from, to) = (rules.show_all(&ty.dims), rules.show_all(dims));
        let message = format!("`{}`: {{0}} is {from} and does not broadcast to {to}", rules.op);
        return Err(Fault::new(message).help("each extent must be the wanted one or 1, counted from the last axis"));
    }
    Ok(vec![Ty::new(ty.dtype, dims)])
}

fn narrow_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let axis = rules.axis(attrs[0].int(), args[0].rank())?;
    let (start, len) = (attrs[1].dim(), attrs[2].dim());
    let mut ty = args[0].clone();
    let extent = std::mem::replace(&mut ty.dims[axis], len.clone());
    let end = Dim::add(start.clone(), len.clone());
    let op = rules.op;
    let not_negative = |rules: &mut Rules, dim: &Dim| match dim.as_const() {
        Some(known) => known >= 0,
        None => rules.at_most(&Dim::Const(0), dim, || format!("`{op}`: {{right}} is negative, below {{left}}")),
    };
    let fits = not_negative(rules, &start)
        && not_negative(rules, &len)
        && rules.at_most(&end, &extent, || format!("`{op}` ends at {{left}}, past an extent of {{right}}"));
    if !fits {
        let (start, end, extent) = (rules.show(&start), rules.show(&end), rules.show(&extent));
        let message = format!("`{op}`: positions {start}..{end} are not in axis {axis} of {{0}}, which has {extent}");
        return Err(Fault::new(message).help(format!("start and length add up to {extent} at most")));
    }
    Ok(vec![ty])
}

/// Start and length of `start..end` as Python has it, for any signs: negative positions count from the end, then both are
/// clipped to the extent.
pub(super) fn python_range(extent: &Dim, start: &Dim, end: &Dim) -> (Dim, Dim) {
    let clipped = |position: &Dim| {
        // 1 for a negative position and 0 otherwise, as a formula: it folds where the position is known.
        let negative = Dim::min(Dim::max(Dim::mul(Dim::Const(-1), position.clone()), Dim::Const(0)), Dim::Const(1));
        let from_start = Dim::add(position.clone(), Dim::mul(negative, extent.clone()));
        match (from_start.as_const(), Dim::sub(extent.clone(), from_start.clone())) {
            (Some(0), _) => Dim::Const(0),
            (_, Dim::Const(0)) => extent.clone(),
            _ => Dim::min(Dim::max(from_start, Dim::Const(0)), extent.clone()),
        }
    };
    let (start, end) = (clipped(start), clipped(end));
    let len = match Dim::sub(end, start.clone()) {
        Dim::Const(len) => Dim::Const(len.max(0)),
        len if start == Dim::Const(0) => len,
        len => Dim::max(len, Dim::Const(0)),
    };
    (start, len)
}

/// Starts and lengths of PyTorch's chunks: all of the rounded-up length but the last ones.
fn chunks(extent: &Dim, parts: i64) -> Vec<(Dim, Dim)> {
    let parts = parts.max(1);
    let len = Dim::ceil_div(extent.clone(), Dim::Const(parts));
    let even = Dim::mul(len.clone(), Dim::Const(parts)) == *extent;
    let chunk = |k: i64| {
        let start = Dim::mul(Dim::Const(k), len.clone());
        if even {
            return (start, len.clone());
        }
        let start = Dim::min(start, extent.clone());
        (start.clone(), Dim::min(len.clone(), Dim::sub(extent.clone(), start)))
    };
    (0..parts).map(chunk).collect()
}

/// Every part has elements, unless there are none at all.
fn need_parts(rules: &mut Rules, extent: &Dim, attrs: &[Attr]) -> Result<(), Fault> {
    let parts = attrs[1].int();
    let len = Dim::ceil_div(extent.clone(), Dim::Const(parts.max(1)));
    if parts > 0 && Dim::mul(len.clone(), Dim::Const(parts)) == *extent {
        return Ok(());
    }
    let last = Dim::mul(Dim::Const(parts - 1), len);
    let reached = Dim::add(last, Dim::min(extent.clone(), Dim::Const(1)));
    let text = || format!("`chunk`: an extent of {{right}} does not give {parts} parts");
    if parts > 0 && rules.at_most(&reached, extent, text) {
        return Ok(());
    }
    let message = format!("`chunk`: an extent of {} does not give {parts} parts", rules.show(extent));
    Err(Fault::new(message).help("all parts but the last are of the rounded-up length").at_axis(attrs[0].int()))
}

/// The most axes a layout has inside a kernel.
pub(super) const LAYOUT_RANK: usize = 8;

/// Lays the tensor out by an axis of repeats before each axis. Where that makes more axes than layouts have, one axis
/// after the other.
fn repeat(o: &mut Ops, x: Val, repeats: &[Dim]) -> Val {
    let once = Dim::Const(1);
    let repeated: Vec<usize> = (0..repeats.len()).filter(|&axis| repeats[axis] != once).collect();
    if o.rank(x) + repeated.len() <= LAYOUT_RANK {
        return repeat_axes(o, x, repeats, &repeated);
    }
    repeated.into_iter().fold(x, |x, axis| repeat_axes(o, x, repeats, &[axis]))
}

fn repeat_axes(o: &mut Ops, x: Val, repeats: &[Dim], axes: &[usize]) -> Val {
    let dims = o.dims(x);
    let (mut wide, mut result, mut split) = (vec![], vec![], x);
    for (axis, extent) in dims.into_iter().enumerate() {
        if axes.contains(&axis) {
            split = o.unsqueeze(split, wide.len());
            wide.push(repeats[axis].clone());
            result.push(Dim::mul(repeats[axis].clone(), extent.clone()));
        } else {
            result.push(extent.clone());
        }
        wide.push(extent);
    }
    let expanded = o.expand(split, wide);
    o.reshape(expanded, result)
}

fn need_count(rules: &Rules, given: usize, rank: usize, what: &str) -> Result<(), Fault> {
    match given == rank {
        true => Ok(()),
        false => Err(Fault::new(format!("`{}`: {given} {what} given for {{0}} of rank {rank}", rules.op)).by_types()),
    }
}

fn distinct_axes(rules: &Rules, list: &[i64], rank: usize) -> Result<Vec<usize>, Fault> {
    let axes = list.iter().map(|&axis| rules.axis(axis, rank)).collect::<Result<Vec<_>, _>>()?;
    match axes.iter().enumerate().find(|&(k, axis)| axes[..k].contains(axis)) {
        Some((k, axis)) => Err(Fault::new(format!("`{}`: axis {axis} is given twice", rules.op))
            .help("name each axis once")
            .at_axis(list[k])),
        None => Ok(axes),
    }
}
