//! The gradients of reductions.

use super::build::{Along, Ops};
use super::{Attr, Gradient, Pulled, Val, rules};
use crate::types::Dim;

/// Every element has the cotangent of its sum.
pub(super) const SPREAD: Gradient = Gradient::Built(|o, c, _| {
    let spread = o.spread(c.g, along(o, c));
    o.expand(spread, o.dims(c.args[0]))
});

/// Every element has the product of the others.
pub(super) const OTHERS: Gradient = Gradient::Built(others);

/// The first element that is the largest takes all.
pub(super) const FIRST_LARGEST: Gradient = Gradient::Built(|o, c, _| first(o, c, "argmax"));

/// The first element that is the smallest takes all.
pub(super) const FIRST_SMALLEST: Gradient = Gradient::Built(|o, c, _| first(o, c, "argmin"));

/// The elements that are the extreme share it.
pub(super) const SHARED: Gradient = Gradient::Built(shared);

/// `2 (x - mean) / (n - correction)`.
pub(super) const VARIANCE: Gradient = Gradient::Built(|o, c, _| deviations(o, c, c.g));

/// That of the variance divided by twice the deviation, and 0 where there is none.
pub(super) const DEVIATION: Gradient = Gradient::Built(|o, c, _| {
    let twice = o.scale(c.y, 2.0);
    let slope = o.div(c.g, twice);
    let constant = o.against_zero("eq", c.y);
    let slope = o.except(constant, slope);
    deviations(o, c, slope)
});

/// `x / norm`, and 0 at the norm 0.
pub(super) const LENGTH: Gradient = Gradient::Built(|o, c, _| {
    let along = along(o, c);
    let (length, g) = (o.spread(c.y, along), o.spread(c.g, along));
    let direction = o.div(c.x[0], length);
    let slope = o.mul(g, direction);
    let nothing = o.against_zero("eq", length);
    o.except(nothing, slope)
});

/// `exp(x - logsumexp)`, the softmax.
pub(super) const WEIGHTS: Gradient = Gradient::Built(|o, c, _| {
    let along = along(o, c);
    let (log, g) = (o.spread(c.y, along), o.spread(c.g, along));
    let shifted = o.sub(c.x[0], log);
    let weights = o.apply("exp", &[shifted]);
    o.mul(g, weights)
});

/// What a call reduces along: its first attribute, or everything.
fn along(o: &Ops, c: &Pulled) -> Along {
    c.attrs.first().map_or(Along::All, |axis| Along::Axis(rules::axis_of(axis, o.rank(c.args[0]))))
}

/// The product over the element, where it is not zero. The only zero has the product of the rest, and with it the others
/// have none; of several zeros no element has any.
fn others(o: &mut Ops, c: &Pulled, _: usize) -> Val {
    let (x, along) = (c.x[0], along(o, c));
    let is_zero = o.against_zero("eq", x);
    let one = o.one(o.dtype(x));
    let filled = o.choose(is_zero, one, x);
    let rest = o.reduce("prod", filled, along);
    let rest = o.spread(rest, along);
    let zeros = o.reduce("sum", is_zero, along);
    let zeros = o.spread(zeros, along);
    let [none, single] = [0, 1].map(|count| {
        let count = o.int(count);
        o.apply("eq", &[zeros, count])
    });
    let quotient = o.div(rest, x);
    let of_others = o.only(none, quotient);
    let of_zero = o.only(single, rest);
    let slope = o.choose(is_zero, of_zero, of_others);
    let g = o.spread(c.g, along);
    o.mul(g, slope)
}

fn first(o: &mut Ops, c: &Pulled, position: &str) -> Val {
    let Along::Axis(axis) = along(o, c) else { unreachable!("positions are along an axis") };
    let found = o.reduce(position, c.args[0], Along::Axis(axis));
    let found = o.unsqueeze(found, axis);
    let dims = o.dims(c.args[0]);
    let at = o.positions(dims[axis].clone(), axis, dims.len());
    let taken = o.apply("eq", &[at, found]);
    let g = o.unsqueeze(c.g, axis);
    o.only(taken, g)
}

fn shared(o: &mut Ops, c: &Pulled, _: usize) -> Val {
    let along = along(o, c);
    let (extreme, g) = (o.spread(c.y, along), o.spread(c.g, along));
    let equal = o.apply("eq", &[c.x[0], extreme]);
    let [nan, extreme_nan] = [c.x[0], extreme].map(|x| o.apply("isnan", &[x]));
    let both_nan = o.apply("logical_and", &[nan, extreme_nan]);
    let taken = o.apply("logical_or", &[equal, both_nan]);
    let count = o.reduce("sum", taken, along);
    let count = o.spread(count, along);
    let count = o.cast(count, o.dtype(g));
    let share = o.div(g, count);
    o.only(taken, share)
}

/// `2 g (x - mean) / (n - correction)`; without an attribute the correction is 1.
fn deviations(o: &mut Ops, c: &Pulled, g: Val) -> Val {
    let along = along(o, c);
    let correction = c.attrs.get(1).map_or(Dim::Const(1), Attr::dim);
    let mean = super::reduce::mean(o, c.x[0], along);
    let mean = o.spread(mean, along);
    let deviation = o.sub(c.x[0], mean);
    let freedom = Dim::max(Dim::sub(o.count(c.x[0], along), correction), Dim::Const(0));
    let freedom = o.size(freedom, o.dtype(g));
    let twice = o.scale(g, 2.0);
    let slope = o.div(twice, freedom);
    let slope = o.spread(slope, along);
    o.mul(slope, deviation)
}
