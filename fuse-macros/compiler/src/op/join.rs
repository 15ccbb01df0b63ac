//! Tensors put together.

use super::ParamKind::{Axis, Dim as Size, Tensor, Tensors};
use super::build::Ops;
use super::rules::{self, Fault, Rules, Types};
use super::views::{expanded, python_range};
use super::{Attr, Call, Class, Gradient, OpInfo, Pulled, Val, param};
use crate::types::{Dim, Ty};

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "cat",
        doc: "Tensors one after the other along an axis",
        call: Call::Function,
        class: Class::Join,
        params: &[param("tensors", Tensors), param("dim", Axis)],
        infer: cat_type,
        gradient: Gradient::Built(|o, c, k| {
            let axis = rules::axis_of(&c.attrs[0], o.rank(c.g));
            let before = c.args[..k].iter().map(|&part| o.ty(part).dims[axis].clone()).fold(Dim::Const(0), Dim::add);
            o.narrow(c.g, axis, before, o.ty(c.args[k]).dims[axis].clone())
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "stack",
        doc: "Tensors of the same extents one after the other along a new axis",
        call: Call::Function,
        params: &[param("tensors", Tensors), param("dim", Axis)],
        infer: stack_type,
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]) + 1);
            let parts: Vec<_> = args.iter().map(|&part| o.unsqueeze(part, axis)).collect();
            vec![o.with("cat", &parts, vec![Attr::Int(axis as i64)])]
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "slice_assign",
        doc: "Replaces the positions `start..end` of an axis by `src`, which broadcasts; positions are Python's",
        call: Call::Mutating,
        params: &[param("dim", Axis), param("start", Size), param("end", Size), param("src", Tensor)],
        infer: |rules, args, attrs| {
            let axis = rules.axis(attrs[0].int(), args[0].rank())?;
            let mut part = args[0].dims.clone();
            part[axis] = python_range(&part[axis], &attrs[1].dim(), &attrs[2].dim()).1;
            source_fits(rules, args, &part)
        },
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let axis = rules::axis_of(&attrs[0], o.rank(args[0]));
            let mut part = o.dims(args[0]);
            let (start, len) = python_range(&part[axis], &attrs[1].dim(), &attrs[2].dim());
            part[axis] = len;
            let src = o.expand(args[1], part);
            vec![o.with("write", &[args[0], src], vec![Attr::Int(axis as i64), Attr::Dim(start)])]
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "copy_",
        doc: "Replaces all elements by those of `src`, which broadcasts",
        call: Call::Mutating,
        params: &[param("src", Tensor)],
        infer: |rules, args, _| source_fits(rules, args, &args[0].dims.clone()),
        decompose: Some(|b, args, _| {
            let mut o = Ops(b);
            let dims = o.dims(args[0]);
            vec![o.expand(args[1], dims)]
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "write",
        doc: "A copy of a tensor in which the positions from `start` on along an axis are those of `src`",
        call: Call::Internal,
        class: Class::Write,
        params: &[param("src", Tensor), param("dim", Axis), param("start", Size)],
        infer: |rules, args, attrs| {
            rules.axis(attrs[0].int(), args[0].rank())?;
            rules::need_rank(rules, args, 1, args[0].rank())?;
            rules::need_dtype(rules, args, 1, args[0].dtype)?;
            rules::same(rules, args, attrs)
        },
        gradient: Gradient::Built(written),
        ..OpInfo::BASE
    },
];

/// The cotangent of what stays is zero where it is written over; that of what is written is the part there.
fn written(o: &mut Ops, c: &Pulled, k: usize) -> Val {
    let part = o.dims(c.args[1]);
    let axis = rules::axis_of(&c.attrs[0], part.len());
    if k == 1 {
        return o.narrow(c.g, axis, c.attrs[1].dim(), part[axis].clone());
    }
    let zeros = o.zeros(part, o.dtype(c.g));
    o.with("write", &[c.g, zeros], c.attrs.to_vec())
}

fn cat_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let first = first_tensor(rules, args)?;
    let axis = rules.axis(attrs[0].int(), first.rank())?;
    let mut joint = first.clone();
    for (operand, ty) in args.iter().enumerate().skip(1) {
        same_but(rules, args, operand, Some(axis))?;
        joint.dims[axis] = Dim::add(joint.dims[axis].clone(), ty.dims[axis].clone());
    }
    Ok(vec![joint])
}

fn stack_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let mut joint = first_tensor(rules, args)?.clone();
    let axis = rules.new_axis(attrs[0].int(), joint.rank())?;
    for operand in 1..args.len() {
        same_but(rules, args, operand, None)?;
    }
    joint.dims.insert(axis, Dim::Const(args.len() as i64));
    Ok(vec![joint])
}

fn first_tensor<'a>(rules: &Rules, args: &[&'a Ty]) -> Result<&'a Ty, Fault> {
    args.first().copied().ok_or_else(|| {
        Fault::new(format!("`{}` needs at least one tensor", rules.op)).help("put the tensors in the list")
    })
}

/// The operand has the type of the first one, but for an axis.
fn same_but(rules: &mut Rules, args: &[&Ty], operand: usize, free: Option<usize>) -> Result<(), Fault> {
    let (first, ty, op) = (args[0], args[operand], rules.op);
    rules::need_rank(rules, args, operand, first.rank())?;
    rules::need_dtype(rules, args, operand, first.dtype)?;
    for axis in (0..first.rank()).filter(|&axis| Some(axis) != free) {
        let (want, have) = (&first.dims[axis], &ty.dims[axis]);
        if !rules.equal(want, have, || format!("`{op}`: extents {{left}} and {{right}} of axis {axis} differ")) {
            let (want, have) = (rules.show_all(&first.dims), rules.show_all(&ty.dims));
            let message = format!("`{op}`: axis {axis} differs: {{0}} is {want}, {{{operand}}} is {have}");
            let help = match free {
                Some(free) => format!("extents are equal on every axis but {free}, along which tensors are joined"),
                None => "tensors that are stacked have equal extents".to_owned(),
            };
            return Err(Fault::new(message).help(help).at(operand));
        }
    }
    Ok(())
}

/// The second operand has the element type of the first and broadcasts to these extents.
fn source_fits(rules: &mut Rules, args: &[&Ty], part: &[Dim]) -> Types {
    rules::need_dtype(rules, args, 1, args[0].dtype)?;
    expanded(rules, args[1], part)
        .map_err(|fault| Fault { message: fault.message.replace("{0}", "{1}"), ..fault }.at(1))?;
    rules::same(rules, args, &[])
}
