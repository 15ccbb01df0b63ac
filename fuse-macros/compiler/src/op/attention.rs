//! Attention.

use super::ParamKind::{Bool, Mask, Tensor};
use super::build::{Along, Ops};
use super::matmul::{product_dims, wide_product};
use super::norm::softmax_slope;
use super::rules::{Fault, Rules, Types};
use super::{Accepts, Attr, Gradient, OpInfo, Pulled, Val, param};
use crate::types::{DType, Dim, Ty};

pub(super) const ROWS: &[OpInfo] = &[OpInfo {
    name: "scaled_dot_product_attention",
    doc: "softmax(q k^T / sqrt(d)) v under an optional mask, true where a query may attend or added to the scores; \
          a causal mask aligns top-left and a row that may attend to nothing is 0",
    params: &[param("key", Tensor), param("value", Tensor), param("mask", Mask), param("is_causal", Bool)],
    accepts: Accepts::Float,
    infer: attention_type,
    decompose: Some(|b, args, attrs| {
        let mut o = Ops(b);
        let weights = weights_of(&mut o, args, attrs[0].flag());
        // The second product has operands of one element type; its error bound covers this rounding.
        let weights = o.cast(weights, o.dtype(args[2]));
        let result = wide_product(&mut o, weights, args[2]);
        vec![o.cast(result, o.dtype(args[0]))]
    }),
    gradient: Gradient::Built(attention_slope),
    ..OpInfo::BASE
}];

fn attention_type(rules: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    let (query, key) = (args[0], args[1]);
    if query.rank() < 2 || key.rank() < 2 {
        let operand = usize::from(query.rank() >= 2);
        return Err(Fault::new(format!("`{}` needs rank 2 or more, {{{operand}}} has less", rules.op)).at(operand));
    }
    let mut turned = key.clone();
    turned.dims.swap(key.rank() - 1, key.rank() - 2);
    let scores = product_dims(rules, &[query, &turned], 0, 1)?;
    if let Some(mask) = args.get(3) {
        fit_mask(rules, &scores, mask, query.dtype)?;
    }
    let weights = Ty::new(query.dtype, scores);
    let dims = product_dims(rules, &[&weights, key, args[2]], 0, 2)?;
    Ok(vec![Ty::new(query.dtype, dims)])
}

fn fit_mask(rules: &mut Rules, scores: &[Dim], mask: &Ty, dtype: DType) -> Result<(), Fault> {
    if mask.dtype != DType::Bool && mask.dtype != dtype {
        return Err(Fault::new(format!("`{}`: {{3}} must be bool or {dtype}, it is {}", rules.op, mask.dtype)).at(3));
    }
    match rules.broadcast_two(scores, &mask.dims, 3)?.len() == scores.len() {
        true => Ok(()),
        false => Err(Fault::new(format!("`{}`: {{3}} has more axes than the scores", rules.op))
            .help(format!("the scores are {}", rules.show_all(scores)))
            .at(3)),
    }
}

/// With weights P: `P^T g` for the values. With the scores' S = P (dP - sum(dP P)) for dP = g v^T: `S k` and `S^T q`, scaled,
/// for the queries and keys, and S itself for a mask that is added.
fn attention_slope(o: &mut Ops, c: &Pulled, k: usize) -> Val {
    let &[query, key, value, ..] = c.args else { unreachable!("attention has three operands or more") };
    let dtype = o.dtype(query);
    let g = o.cast(c.g, dtype);
    let weights = weights_of(o, c.args, c.attrs[0].flag());
    if k == 2 {
        let weights = o.cast(weights, dtype);
        let turned = o.swap_last(weights);
        return wide_product(o, turned, g);
    }
    let value = o.swap_last(value);
    let of_weights = wide_product(o, g, value);
    let of_scores = softmax_slope(o, weights, of_weights, o.rank(weights) - 1);
    if k == 3 {
        return of_scores;
    }
    let scale = scale(o, query);
    let scaled = o.mul(of_scores, scale);
    let scaled = o.cast(scaled, dtype);
    match k {
        0 => wide_product(o, scaled, key),
        _ => {
            let turned = o.swap_last(scaled);
            wide_product(o, turned, query)
        }
    }
}

/// The softmax of the masked scores.
fn weights_of(o: &mut Ops, args: &[Val], causal: bool) -> Val {
    let scores = scores(o, args[0], args[1]);
    let scores = masked(o, scores, args.get(3).copied(), causal);
    weights(o, scores)
}

fn scores(o: &mut Ops, query: Val, key: Val) -> Val {
    let key = o.swap_last(key);
    let product = wide_product(o, query, key);
    let scale = scale(o, query);
    o.mul(product, scale)
}

/// `1 / sqrt(d)`, by two exactly rounded ops, so that a known depth gives a constant.
fn scale(o: &mut Ops, query: Val) -> Val {
    let depth = o.dims(query).pop().expect("the type rule wants rank 2 or more");
    let depth = o.size(depth, o.dtype(query).compute());
    let root = o.apply("sqrt", &[depth]);
    o.apply("recip", &[root])
}

fn masked(o: &mut Ops, scores: Val, mask: Option<Val>, causal: bool) -> Val {
    let compute = o.dtype(scores);
    let never = o.float(f64::NEG_INFINITY, compute);
    let scores = match mask {
        Some(mask) if o.dtype(mask) == DType::Bool => o.choose(mask, scores, never),
        Some(mask) => {
            let mask = o.widen(mask);
            o.add(scores, mask)
        }
        None => scores,
    };
    if !causal {
        return scores;
    }
    let (dims, rank) = (o.dims(scores), o.rank(scores));
    let query = o.positions(dims[rank - 2].clone(), 0, 2);
    let key = o.positions(dims[rank - 1].clone(), 1, 2);
    let past = o.apply("le", &[key, query]);
    o.choose(past, scores, never)
}

/// A softmax along the last axis in which a row of -inf is 0.
fn weights(o: &mut Ops, scores: Val) -> Val {
    let last = Along::Axis(o.rank(scores) - 1);
    let (zero, one) = (o.zero(o.dtype(scores)), o.one(o.dtype(scores)));
    let never = o.float(f64::NEG_INFINITY, o.dtype(scores));
    let largest = o.reduce("amax", scores, last);
    let nothing = o.apply("eq", &[largest, never]);
    let shift = o.choose(nothing, zero, largest);
    let shift = o.spread(shift, last);
    let shifted = o.sub(scores, shift);
    let exps = o.apply("exp", &[shifted]);
    let sum = o.reduce("sum", exps, last);
    // The exponentials of such a row are all 0; any finite divisor keeps them.
    let sum = o.choose(nothing, one, sum);
    let sum = o.spread(sum, last);
    o.div(exps, sum)
}
