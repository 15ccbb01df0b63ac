//! Samples of the ops whose operands have extents of their own.

use crate::samples::{Maker, Operand, Sample, size, sizes};
use fuse_compiler::op::{Attr, Num};
use fuse_compiler::types::{DType, Dim};

type Make = fn(&mut Maker) -> Vec<Sample>;

const MAKERS: &[(&str, Make)] = &[
    ("addmm", |m| plus_product(m, 2)),
    ("arange", arange),
    ("baddbmm", |m| plus_product(m, 3)),
    ("cat", cat),
    ("chunk", chunk),
    ("copy_", copy),
    ("cross_entropy", |m| losses(m, &[vec![]])),
    ("cross_entropy_with", |m| losses(m, &[0, 1, 2].map(|kind| vec![Attr::Int(kind), Attr::Dim(1.into())]))),
    ("dropout", dropout),
    ("embedding", embedding),
    ("expand", expand),
    ("eye", eye),
    ("flip", flip),
    ("full", |m| {
        let value = m.scalar(m.dtype);
        vec![Sample { args: vec![value], attrs: vec![sizes(m.dims), Attr::DType(m.dtype)] }]
    }),
    ("gather", gather),
    ("index_add", |m| parts(m, true)),
    ("index_copy", |m| parts(m, true)),
    ("index_copy_", |m| parts(m, true)),
    ("index_select", |m| parts(m, false)),
    ("layer_norm", |m| norms(m, true)),
    ("linear", linear),
    ("matmul", matmul),
    ("narrow", |m| {
        along(m, &|extent| vec![vec![size(extent / 3), size(extent - extent / 3)], vec![size(extent), size(0)]])
    }),
    ("ones", constant),
    ("permute", permute),
    ("repeat", repeat),
    ("reshape", reshape),
    ("rms_norm", |m| norms(m, false)),
    ("scaled_dot_product_attention", attention),
    ("scaled_matmul", scaled_matmul),
    ("scatter_add", scatter_add),
    ("slice", |m| along(m, &|_| [(1, 3), (-2, 1000), (0, -1), (2, 1)].map(|(a, b)| vec![at(a), at(b)]).into())),
    ("slice_assign", slice_assign),
    ("squeeze", squeeze),
    ("stack", stack),
    ("transpose", transpose),
    ("unsqueeze", |m| {
        let rank = m.dims.len() as i64;
        if rank == 6 { vec![] } else { [0, rank, -1].map(|axis| one(m, vec![Attr::Int(axis)])).into() }
    }),
    ("zeros", constant),
];

/// Who makes the samples of an op.
pub fn find(name: &str) -> Option<Make> {
    MAKERS.iter().find(|(op, _)| *op == name).map(|&(_, make)| make)
}

/// A call of a receiver alone.
fn one(m: &mut Maker, attrs: Vec<Attr>) -> Sample {
    Sample { args: vec![m.receiver()], attrs }
}

fn at(position: i64) -> Attr {
    Attr::Dim(Dim::Const(position))
}

/// One call for each axis and each list of further attributes that suit its extent.
fn along(m: &mut Maker, further: &dyn Fn(usize) -> Vec<Vec<Attr>>) -> Vec<Sample> {
    let mut samples = vec![];
    for (axis, &extent) in m.dims.iter().enumerate() {
        for rest in further(extent) {
            samples.push(one(m, [vec![Attr::Int(axis as i64)], rest].concat()));
        }
    }
    samples
}

fn constant(m: &mut Maker) -> Vec<Sample> {
    vec![Sample { args: vec![], attrs: vec![sizes(m.dims), Attr::DType(m.dtype)] }]
}

fn arange(m: &mut Maker) -> Vec<Sample> {
    let &[n] = m.dims else { return vec![] };
    let bounds = match m.dtype.is_float() {
        // Numbers that the halves hold too.
        true if n > 128 => return vec![],
        true => [Attr::Float(0.5), Attr::Float(n as f64 + 0.25)],
        false if m.dtype == DType::Bool => return vec![],
        false => [at(3), at(n as i64 + 3)],
    };
    vec![Sample { args: vec![], attrs: [&bounds[..], &[Attr::DType(m.dtype)]].concat() }]
}

fn eye(m: &mut Maker) -> Vec<Sample> {
    match *m.dims {
        [n] if n < 300 => vec![Sample { args: vec![], attrs: vec![size(n), Attr::DType(m.dtype)] }],
        _ => vec![],
    }
}

fn reshape(m: &mut Maker) -> Vec<Sample> {
    let count = m.dims.iter().product::<usize>();
    let mut shapes = vec![vec![count], vec![1, count, 1]];
    if m.dims.len() > 1 {
        shapes.push(m.dims.iter().rev().copied().collect());
    }
    shapes.into_iter().map(|shape| one(m, vec![sizes(&shape)])).collect()
}

fn permute(m: &mut Maker) -> Vec<Sample> {
    let rank = m.dims.len() as i64;
    let backwards = (0..rank).rev().collect();
    let rotated = (0..rank).map(|axis| (axis + 1) % rank.max(1) - rank).collect();
    [backwards, rotated].map(|order: Vec<i64>| one(m, vec![Attr::Ints(order)])).into()
}

fn transpose(m: &mut Maker) -> Vec<Sample> {
    if m.dims.is_empty() { vec![] } else { vec![one(m, vec![Attr::Int(0), Attr::Int(-1)])] }
}

fn squeeze(m: &mut Maker) -> Vec<Sample> {
    let rank = m.dims.len();
    if rank == 6 {
        return vec![];
    }
    let wide = |axis: usize| [&m.dims[..axis], &[1], &m.dims[axis..]].concat();
    let shapes = [(0, wide(0)), (rank, wide(rank))];
    shapes.map(|(axis, dims)| Sample { args: vec![m.like(&dims)], attrs: vec![Attr::Int(axis as i64)] }).into()
}

fn expand(m: &mut Maker) -> Vec<Sample> {
    if m.dims.len() == 6 {
        return vec![];
    }
    let mut samples = vec![one(m, vec![sizes(&[&[2], m.dims].concat())])];
    if let [_, rest @ ..] = m.dims {
        let narrow = [&[1], rest].concat();
        samples.push(Sample { args: vec![m.like(&narrow)], attrs: vec![sizes(m.dims)] });
    }
    samples
}

fn flip(m: &mut Maker) -> Vec<Sample> {
    let all: Vec<i64> = (0..m.dims.len() as i64).collect();
    let last = all.iter().rev().take(1).copied().collect();
    [all, last].map(|axes| one(m, vec![Attr::Ints(axes)])).into()
}

fn repeat(m: &mut Maker) -> Vec<Sample> {
    let rank = m.dims.len();
    let once = vec![1; rank];
    let mut counts = vec![once.clone()];
    for axis in 0..rank {
        let mut more = once.clone();
        more[axis] = 3;
        more[0] += 1;
        counts.push(more);
    }
    counts.into_iter().map(|counts| one(m, vec![sizes(&counts)])).collect()
}

fn chunk(m: &mut Maker) -> Vec<Sample> {
    along(m, &|_| vec![vec![Attr::Int(3)]])
}

fn cat(m: &mut Maker) -> Vec<Sample> {
    let mut samples = vec![];
    for axis in 0..m.dims.len() {
        let args = [1, 0, 5].map(|more| {
            let mut dims = m.dims.to_vec();
            dims[axis] += more;
            m.like(&dims)
        });
        samples.push(Sample { args: args.into(), attrs: vec![Attr::Int(axis as i64)] });
    }
    samples
}

fn stack(m: &mut Maker) -> Vec<Sample> {
    if m.dims.len() == 6 {
        return vec![];
    }
    let axes = [0, -1];
    axes.map(|axis| Sample { args: vec![m.receiver(), m.receiver()], attrs: vec![Attr::Int(axis)] }).into()
}

fn slice_assign(m: &mut Maker) -> Vec<Sample> {
    let Some(&extent) = m.dims.first() else { return vec![] };
    let mut part = m.dims.to_vec();
    part[0] = extent - extent.min(1);
    let whole = m.like(&part);
    let scalar = m.like(&[]);
    [whole, scalar]
        .map(|src| Sample { args: vec![m.receiver(), src], attrs: vec![Attr::Int(0), at(1), at(100_000)] })
        .into()
}

fn copy(m: &mut Maker) -> Vec<Sample> {
    let row: Vec<usize> = m.dims.iter().rev().take(1).copied().collect();
    [m.dims.to_vec(), row].map(|dims| Sample { args: vec![m.receiver(), m.like(&dims)], attrs: vec![] }).into()
}

fn gather(m: &mut Maker) -> Vec<Sample> {
    let axes = 0..m.dims.len();
    axes.map(|axis| {
        let mut dims: Vec<usize> = m.dims.iter().map(|&n| n - n / 3).collect();
        dims[axis] = if m.dims[axis] == 0 { 0 } else { 4 };
        let index = m.index(&dims, m.dims[axis]);
        Sample { args: vec![m.receiver(), index], attrs: vec![Attr::Int(axis as i64)] }
    })
    .collect()
}

fn scatter_add(m: &mut Maker) -> Vec<Sample> {
    let axes = 0..m.dims.len();
    axes.map(|axis| {
        let mut dims = m.dims.to_vec();
        dims[axis] = if m.dims[axis] == 0 { 0 } else { 4 };
        let index = m.index(&dims, m.dims[axis]);
        dims[axis] += 1;
        Sample { args: vec![m.receiver(), index, m.like(&dims)], attrs: vec![Attr::Int(axis as i64)] }
    })
    .collect()
}

/// `index_select`, and with a source `index_add`, `index_copy` and `index_copy_`.
fn parts(m: &mut Maker, with_source: bool) -> Vec<Sample> {
    let axes = 0..m.dims.len();
    axes.map(|axis| {
        let mut dims = m.dims.to_vec();
        dims[axis] = if m.dims[axis] == 0 { 0 } else { 5 };
        let mut args = vec![m.receiver(), m.index(&[dims[axis]], m.dims[axis])];
        if with_source {
            args.push(m.like(&dims));
        }
        Sample { args, attrs: vec![Attr::Int(axis as i64)] }
    })
    .collect()
}

fn embedding(m: &mut Maker) -> Vec<Sample> {
    let &[rows, _] = m.dims else { return vec![] };
    let shapes: [&[usize]; 3] = if rows == 0 { [&[0], &[2, 0], &[0]] } else { [&[], &[5], &[2, 3]] };
    shapes.map(|dims| Sample { args: vec![m.receiver(), m.index(dims, rows)], attrs: vec![] }).into()
}

fn matmul(m: &mut Maker) -> Vec<Sample> {
    let Some(&inner) = m.dims.last() else { return vec![] };
    let mut shapes = vec![vec![inner, 3], vec![inner]];
    if let [batch @ .., _, _] = m.dims {
        shapes.push([batch, &[inner, 2]].concat());
        shapes.push([vec![1; batch.len()], vec![inner, 5]].concat());
    }
    shapes.into_iter().map(|dims| Sample { args: vec![m.receiver(), m.like(&dims)], attrs: vec![] }).collect()
}

fn scaled_matmul(m: &mut Maker) -> Vec<Sample> {
    let [batch @ .., _, inner] = m.dims else { return vec![] };
    let (same, one) = ([batch, &[*inner, 3]].concat(), [vec![1; batch.len()], vec![*inner, 16]].concat());
    let call = |(dims, dtype): (Vec<usize>, DType)| Sample {
        args: vec![m.receiver(), m.like(&dims), m.of(DType::F32, &[]), m.of(DType::F32, &[])],
        attrs: vec![Attr::DType(dtype)],
    };
    [(same, DType::F32), (one, DType::BF16)].map(call).into()
}

fn linear(m: &mut Maker) -> Vec<Sample> {
    let Some(&inner) = m.dims.last() else { return vec![] };
    vec![Sample { args: vec![m.receiver(), m.like(&[5, inner]), m.like(&[5])], attrs: vec![] }]
}

/// `addmm` of rank 2, `baddbmm` of rank 3: the extents are those of the left factor.
fn plus_product(m: &mut Maker, rank: usize) -> Vec<Sample> {
    let (Some(&inner), true) = (m.dims.last(), m.dims.len() == rank) else { return vec![] };
    let mut result = m.dims.to_vec();
    result[rank - 1] = 4;
    let mut right = m.dims.to_vec();
    (right[rank - 2], right[rank - 1]) = (inner, 4);
    vec![Sample { args: vec![m.like(&result), m.receiver(), m.like(&right)], attrs: vec![] }]
}

fn norms(m: &mut Maker, with_bias: bool) -> Vec<Sample> {
    let tails = 1..=m.dims.len().min(2);
    tails
        .map(|axes| {
            let tail = m.dims[m.dims.len() - axes..].to_vec();
            let mut args = vec![m.receiver(), m.like(&tail)];
            if with_bias {
                args.push(m.like(&tail));
            }
            // Large, so that a row of equal numbers does not blow the rounding of its mean up.
            args.push(Operand::Scalar(Num::F(0.25), DType::F64));
            Sample { args, attrs: vec![] }
        })
        .collect()
}

/// Draws are compared elsewhere: here everything is kept, or nothing.
fn dropout(m: &mut Maker) -> Vec<Sample> {
    [(0.5, false), (0.0, true), (1.0, true)]
        .map(|(p, training)| Sample {
            args: vec![m.receiver(), Operand::Scalar(Num::F(p), DType::F64)],
            attrs: vec![Attr::Bool(training)],
        })
        .into()
}

fn losses(m: &mut Maker, kinds: &[Vec<Attr>]) -> Vec<Sample> {
    let rank = m.dims.len();
    if rank == 0 || m.dims.contains(&0) {
        return vec![];
    }
    let mut dims = m.dims.to_vec();
    let classes = dims.remove(1.min(rank - 1));
    let mut calls = vec![];
    for attrs in kinds {
        let Operand::Tensor(mut targets) = m.index(&dims, classes) else { unreachable!() };
        if attrs.is_empty() && targets.data.len() > 2 {
            targets.data[1] = Num::I(-100);
        }
        calls.push(Sample { args: vec![m.receiver(), Operand::Tensor(targets)], attrs: attrs.clone() });
    }
    calls
}

fn attention(m: &mut Maker) -> Vec<Sample> {
    let [batch @ .., queries, head] = m.dims else { return vec![] };
    let (batch, queries, head) = (batch.to_vec(), *queries, *head);
    let with = |tail: [usize; 2]| [&batch[..], &tail].concat();
    let masks = [None, Some(DType::Bool), Some(m.dtype), None];
    let calls = masks.into_iter().enumerate();
    calls
        .map(|(k, mask)| {
            let mut args = vec![m.receiver(), m.like(&with([7, head])), m.like(&with([7, 2]))];
            args.extend(mask.map(|dtype| m.of(dtype, &[queries, 7])));
            Sample { args, attrs: vec![Attr::Bool(k == 3)] }
        })
        .collect()
}
