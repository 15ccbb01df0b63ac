//! Losses.

use super::ParamKind::{Choice, Dim as Size, TensorOf};
use super::build::{Along, Ops};
use super::norm::shifted_exps;
use super::rules::{self, Fault, Rules, Types};
use super::{Accepts, Attr, Gradient, OpEffect, OpInfo, Pulled, Val, param};
use crate::types::{DType, Dim, Ty};

/// What users name to choose how losses are taken together.
const REDUCTION: super::ParamKind = Choice("Reduction", &["None", "Mean", "Sum"]);

/// Targets of this value are left out of the loss where nothing else is said.
const IGNORE_INDEX: i64 = -100;

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "cross_entropy",
        doc: "The mean cross entropy of logits against class indices; targets of -100 are left out",
        params: &[param("targets", TensorOf(DType::I64))],
        accepts: Accepts::Float,
        infer: |rules, args, _| loss_type(rules, args, Kind::Mean),
        decompose: Some(|b, args, _| vec![loss(&mut Ops(b), args[0], args[1], Kind::Mean, Dim::Const(IGNORE_INDEX))]),
        effect: OpEffect::MayFault,
        gradient: Gradient::Built(|o, c, _| loss_slope(o, c, Kind::Mean, Dim::Const(IGNORE_INDEX))),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "cross_entropy_with",
        doc: "The cross entropy of logits against class indices; targets of `ignore_index` are left out",
        params: &[param("targets", TensorOf(DType::I64)), param("reduction", REDUCTION), param("ignore_index", Size)],
        accepts: Accepts::Float,
        infer: |rules, args, attrs| loss_type(rules, args, Kind::of(&attrs[0])),
        decompose: Some(|b, args, attrs| {
            vec![loss(&mut Ops(b), args[0], args[1], Kind::of(&attrs[0]), attrs[1].dim())]
        }),
        effect: OpEffect::MayFault,
        gradient: Gradient::Built(|o, c, _| loss_slope(o, c, Kind::of(&c.attrs[0]), c.attrs[1].dim())),
        ..OpInfo::BASE
    },
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    None,
    Mean,
    Sum,
}

impl Kind {
    /// By the position in [`REDUCTION`].
    fn of(attr: &Attr) -> Kind {
        [Kind::None, Kind::Mean, Kind::Sum][attr.int() as usize]
    }
}

/// Classes are along axis 1, or along the only axis.
fn class_axis(rank: usize) -> usize {
    1.min(rank - 1)
}

fn loss_type(rules: &mut Rules, args: &[&Ty], kind: Kind) -> Types {
    let (logits, targets) = (args[0], args[1]);
    rules::need_dtype(rules, args, 1, DType::I64)?;
    if logits.rank() == 0 {
        return Err(Fault::new(format!("`{}` needs an axis of classes, {{0}} has rank 0", rules.op)).at(0));
    }
    let mut dims = logits.dims.clone();
    dims.remove(class_axis(logits.rank()));
    rules::need_rank(rules, args, 1, dims.len())?;
    let op = rules.op;
    for (want, have) in dims.iter().zip(&targets.dims) {
        if !rules.equal(want, have, || format!("`{op}`: logits have extent {{left}} where targets have {{right}}")) {
            let (have, want) = (rules.show_all(&targets.dims), rules.show_all(&logits.dims));
            return Err(Fault::new(format!("`{op}`: {{1}} has extents {have}, {{0}} has {want}"))
                .help("targets have the extents of {0} without the axis of classes, axis 1")
                .at(1));
        }
    }
    let dims = if kind == Kind::None { dims } else { vec![] };
    Ok(vec![Ty::new(logits.dtype, dims)])
}

/// Log-softmax and pick in one. The logit of the target is read from the operand itself, so that the log-probabilities
/// need not be stored. A target that is left out is not read at all, whatever its value.
fn loss(o: &mut Ops, logits: Val, targets: Val, kind: Kind, ignore_index: Dim) -> Val {
    let dtype = o.dtype(logits);
    let axis = class_axis(o.rank(logits));
    let Targets { ignored, safe } = Targets::read(o, targets, axis, ignore_index);
    let picked = o.with("take", &[logits, safe], vec![Attr::Int(axis as i64)]);
    let picked = o.squeeze(picked, axis);
    let picked = o.widen(picked);

    let wide = o.widen(logits);
    let along = Along::Axis(axis);
    let largest = o.reduce("amax", wide, along);
    let spread = o.spread(largest, along);
    let shifted = o.sub(wide, spread);
    let exps = o.apply("exp", &[shifted]);
    let sum = o.reduce("sum", exps, along);
    let log = o.apply("ln", &[sum]);

    let picked = o.sub(picked, largest);
    let losses = o.sub(log, picked);
    let zero = o.zero(dtype.compute());
    let losses = o.choose(ignored, zero, losses);
    let result = match kind {
        Kind::None => losses,
        Kind::Sum => o.reduce("sum", losses, Along::All),
        Kind::Mean => {
            let sum = o.reduce("sum", losses, Along::All);
            let count = counted(o, ignored, dtype.compute());
            o.div(sum, count)
        }
    };
    o.cast(result, dtype)
}

/// Which targets are left out, and the classes with another in their place, with an axis for the classes.
struct Targets {
    ignored: Val,
    safe: Val,
}

impl Targets {
    fn read(o: &mut Ops, targets: Val, axis: usize, ignore_index: Dim) -> Targets {
        let ignore_index = o.size(ignore_index, DType::I64);
        let ignored = o.apply("eq", &[targets, ignore_index]);
        let class_0 = o.int(0);
        let safe = o.choose(ignored, class_0, targets);
        Targets { ignored, safe: o.unsqueeze(safe, axis) }
    }
}

/// How many targets are not left out.
fn counted(o: &mut Ops, ignored: Val, dtype: DType) -> Val {
    let counted = o.apply("logical_not", &[ignored]);
    let count = o.reduce("sum", counted, Along::All);
    o.cast(count, dtype)
}

/// `g (softmax - 1)` at the target and `g softmax` at other classes, with the part of the cotangent that each loss has.
fn loss_slope(o: &mut Ops, c: &Pulled, kind: Kind, ignore_index: Dim) -> Val {
    let (logits, targets) = (c.args[0], c.args[1]);
    let axis = class_axis(o.rank(logits));
    let Targets { ignored, safe } = Targets::read(o, targets, axis, ignore_index);
    let share = match kind {
        Kind::None | Kind::Sum => c.g,
        Kind::Mean => {
            let count = counted(o, ignored, o.dtype(c.g));
            o.div(c.g, count)
        }
    };
    let share = o.except(ignored, share);
    let share = o.unsqueeze(share, axis);

    let parts = shifted_exps(o, logits, axis);
    let weights = o.div(parts.exps, parts.sum);
    let less = o.shift(weights, -1.0);
    let dims = o.dims(logits);
    let classes = o.positions(dims[axis].clone(), axis, dims.len());
    let hit = o.apply("eq", &[classes, safe]);
    let slope = o.choose(hit, less, weights);
    o.mul(share, slope)
}
