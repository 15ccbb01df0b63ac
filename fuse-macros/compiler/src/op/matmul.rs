//! Products of matrices.

use super::ParamKind::{DType as Kind, Tensor, TensorOf};
use super::build::Ops;
use super::rules::{self, Fault, Rules, Types};
use super::{Accepts, Attr, Call, Class, Gradient, OpInfo, Pulled, Val, param};
use crate::types::{DType, Dim, Ty};

pub(super) const ROWS: &[OpInfo] = &[
    OpInfo {
        name: "matmul",
        doc: "The product of the matrices in the last two axes; axes before them broadcast, a vector counts as a row on \
              the left and as a column on the right",
        params: &[param("other", Tensor)],
        accepts: Accepts::Number,
        infer: matmul_type,
        decompose: Some(|b, args, _| vec![matmul(&mut Ops(b), args[0], args[1])]),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "product",
        doc: "The product of the matrices in the last two axes; axes before them broadcast. With an inner extent k it is off by at \
              most (k + 8) 2^-24 of the sum of |a||b| (2^-53 for f64), halves by the rounding of the result beside it",
        call: Call::Internal,
        class: Class::Matmul,
        params: &[param("other", Tensor)],
        accepts: Accepts::Factor,
        infer: product_type,
        gradient: Gradient::Built(factor),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "scaled_matmul",
        doc: "The product of fp8 matrices in the last two axes, summed in f32, times the scale of each, in the element type asked for",
        params: &[
            param("other", Tensor),
            param("scale", TensorOf(DType::F32)),
            param("other_scale", TensorOf(DType::F32)),
            param("dtype", Kind),
        ],
        accepts: Accepts::Float8,
        infer: scaled_type,
        decompose: Some(|b, args, attrs| {
            let mut o = Ops(b);
            let product = wide_product(&mut o, args[0], args[1]);
            let scaled = args[2..].iter().fold(product, |product, &scale| o.mul(product, scale));
            vec![o.cast(scaled, attrs[0].dtype())]
        }),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "linear",
        doc: "x w^T + b with `weight` of extents [out, in], rounded once",
        params: &[param("weight", Tensor), param("bias", Tensor)],
        accepts: Accepts::Float,
        infer: linear_type,
        decompose: Some(|b, args, _| {
            let mut o = Ops(b);
            let weight = o.permute(args[1], &[1, 0]);
            let vector = o.rank(args[0]) == 1;
            let x = if vector { o.unsqueeze(args[0], 0) } else { args[0] };
            let result = product_plus(&mut o, x, weight, args[2]);
            vec![if vector { o.squeeze(result, 0) } else { result }]
        }),
        gradient: Gradient::Built(linear_slope),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "addmm",
        doc: "The receiver plus the product of two matrices, rounded once",
        params: &[param("a", Tensor), param("b", Tensor)],
        accepts: Accepts::Float,
        infer: |rules, args, _| plus_product_type(rules, args, 2),
        decompose: Some(|b, args, _| vec![product_plus(&mut Ops(b), args[1], args[2], args[0])]),
        ..OpInfo::BASE
    },
    OpInfo {
        name: "baddbmm",
        doc: "The receiver plus the products of two batches of matrices, rounded once",
        params: &[param("a", Tensor), param("b", Tensor)],
        accepts: Accepts::Float,
        infer: |rules, args, _| plus_product_type(rules, args, 3),
        decompose: Some(|b, args, _| vec![product_plus(&mut Ops(b), args[1], args[2], args[0])]),
        ..OpInfo::BASE
    },
];

/// The product of two matrices, not rounded below the compute type.
pub(super) fn wide_product(o: &mut Ops, a: Val, b: Val) -> Val {
    let compute = o.dtype(a).compute();
    let attrs = if compute == o.dtype(a) { vec![] } else { vec![Attr::DType(compute)] };
    o.with("product", &[a, b], attrs)
}

/// `g b^T` and `a^T g`, in the operands' element type as in the product itself, not rounded below the compute type.
fn factor(o: &mut Ops, c: &Pulled, k: usize) -> Val {
    let (a, b) = (c.args[0], c.args[1]);
    let g = o.cast(c.g, o.dtype(a));
    if k == 0 {
        let b = o.swap_last(b);
        return wide_product(o, g, b);
    }
    // One matrix for a whole batch: the rows of the batch are rows of one product.
    let (a, g) = match o.rank(b) {
        2 => (rows(o, a), rows(o, g)),
        _ => (a, g),
    };
    let a = o.swap_last(a);
    wide_product(o, a, g)
}

/// All axes but the last as one.
fn rows(o: &mut Ops, x: Val) -> Val {
    let mut dims = o.dims(x);
    let last = dims.pop().expect("rows have an axis");
    let count = dims.into_iter().fold(Dim::Const(1), Dim::mul);
    o.reshape(x, vec![count, last])
}

/// `g w`, `g^T x` and the sum of the rows of `g`.
fn linear_slope(o: &mut Ops, c: &Pulled, k: usize) -> Val {
    let (x, weight) = (c.args[0], c.args[1]);
    let g = o.cast(c.g, o.dtype(x));
    let g = rows(o, g);
    match k {
        0 => {
            let product = wide_product(o, g, weight);
            // Rounded before it gets its extents back, so that it is rounded where the product is made.
            let product = o.cast(product, o.dtype(x));
            o.reshape(product, o.dims(x))
        }
        1 => {
            let (g, x) = (o.swap_last(g), rows(o, x));
            wide_product(o, g, x)
        }
        _ => c.g,
    }
}

/// `a b + bias`, rounded once.
fn product_plus(o: &mut Ops, a: Val, b: Val, bias: Val) -> Val {
    let product = wide_product(o, a, b);
    let bias = o.widen(bias);
    let sum = o.add(product, bias);
    o.cast(sum, o.dtype(a))
}

/// Vectors become matrices of one row or column, which goes again after the product.
fn matmul(o: &mut Ops, a: Val, b: Val) -> Val {
    let (row, column) = (o.rank(a) == 1, o.rank(b) == 1);
    let left = if row { o.unsqueeze(a, 0) } else { a };
    let right = if column { o.unsqueeze(b, 1) } else { b };
    let product = o.apply("product", &[left, right]);
    let product = if column { o.squeeze(product, o.rank(product) - 1) } else { product };
    let rank = o.rank(product);
    if row { o.squeeze(product, if column { rank - 1 } else { rank - 2 }) } else { product }
}

fn matmul_type(rules: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    let (mut left, mut right) = (args[0].clone(), args[1].clone());
    let (row, column) = (left.rank() == 1, right.rank() == 1);
    if row {
        left.dims.insert(0, Dim::Const(1));
    }
    if column {
        right.dims.push(Dim::Const(1));
    }
    let mut dims = product_dims(rules, &[&left, &right], 0, 1)?;
    if column {
        dims.pop();
    }
    if row {
        dims.remove(dims.len() - if column { 1 } else { 2 });
    }
    Ok(vec![Ty::new(args[0].dtype, dims)])
}

fn product_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    let dims = product_dims(rules, args, 0, 1)?;
    let dtype = attrs.first().map_or(args[0].dtype, Attr::dtype);
    Ok(vec![Ty::new(dtype, dims)])
}

fn scaled_type(rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Types {
    rules::need_rank(rules, args, 1, args[0].rank())?;
    for scale in [2, 3] {
        rules::need_rank(rules, args, scale, 0)?;
        rules::need_dtype(rules, args, scale, DType::F32)?;
    }
    let dtype = attrs[0].dtype();
    if !dtype.is_float() {
        return Err(Fault::new(format!("`{}` gives floats, not {dtype}", rules.op)).by_types());
    }
    Ok(vec![Ty::new(dtype, product_dims(rules, args, 0, 1)?)])
}

/// The extents of the product of operands `a` and `b`.
pub(super) fn product_dims(rules: &mut Rules, args: &[&Ty], a: usize, b: usize) -> Result<Vec<Dim>, Fault> {
    for operand in [a, b] {
        if args[operand].rank() < 2 {
            let message = format!("`{}` is for matrices, {{{operand}}} has rank {}", rules.op, args[operand].rank());
            return Err(Fault::new(message).at(operand));
        }
    }
    same_dtype(rules, args, a, b)?;
    let (left, right) = (args[a], args[b]);
    let [left_batch @ .., m, k] = left.dims.as_slice() else { unreachable!() };
    let [right_batch @ .., other_k, n] = right.dims.as_slice() else { unreachable!() };
    equal_inner(rules, (a, k), (b, other_k), n == k)?;
    let batches = rules.broadcast_two(left_batch, right_batch, b);
    let mut dims = batches.map_err(|fault| unequal_batches(rules, (a, left_batch), (b, right_batch), fault))?;
    dims.extend([m.clone(), n.clone()]);
    Ok(dims)
}

fn unequal_batches(rules: &Rules, (a, left): (usize, &[Dim]), (b, right): (usize, &[Dim]), fault: Fault) -> Fault {
    let (left, right) = (rules.show_all(left), rules.show_all(right));
    let message = format!("batches of `{}` do not broadcast: {{{a}}} has {left}, {{{b}}} has {right}", rules.op);
    Fault { message, ..fault }
}

fn same_dtype(rules: &Rules, args: &[&Ty], a: usize, b: usize) -> Result<(), Fault> {
    if args[a].dtype == args[b].dtype {
        return Ok(());
    }
    let message = format!(
        "operands of `{}` have different element types: {{{a}}} is {}, {{{b}}} is {}",
        rules.op, args[a].dtype, args[b].dtype
    );
    Err(Fault::new(message).help(format!("`cast::<{}>()` converts", args[a].dtype)).at(b).by_types())
}

fn equal_inner(
    rules: &mut Rules,
    (a, left): (usize, &Dim),
    (b, right): (usize, &Dim),
    transposed_fits: bool,
) -> Result<(), Fault> {
    let op = rules.op;
    if rules.equal(left, right, || format!("inner dimensions of `{op}` differ: k = {{left}} and k = {{right}}")) {
        return Ok(());
    }
    let (left, right) = (rules.show(left), rules.show(right));
    let fault =
        Fault::new(format!("inner dimensions of `{op}` differ: {{{a}}} has k = {left}, {{{b}}} has k = {right}")).at(b);
    Err(fault.help(match transposed_fits {
        true => format!("`{{{b}}}.t()` would give k = {left}"),
        false => format!("the last extent of {{{a}}} is summed against the last but one of {{{b}}}"),
    }))
}

fn linear_type(rules: &mut Rules, args: &[&Ty], _: &[Attr]) -> Types {
    let x = args[0];
    rules::need_rank(rules, args, 1, 2)?;
    rules::need_rank(rules, args, 2, 1)?;
    same_dtype(rules, args, 0, 1)?;
    same_dtype(rules, args, 0, 2)?;
    let (out, inner) = (&args[1].dims[0], &args[1].dims[1]);
    let Some(last) = x.dims.last() else {
        return Err(Fault::new("`linear` needs an axis of features, but {0} has rank 0")
            .help("`{0}.unsqueeze(0)` has one")
            .at(0));
    };
    if !rules.equal(last, inner, || "`linear`: {left} features against a weight for {right}".to_owned()) {
        let fault = Fault::new(format!(
            "`linear`: {{0}} has {} features, {{1}} is for {}",
            rules.show(last),
            rules.show(inner)
        ));
        let turned = out == last;
        let help = if turned { ": `{1}.t()` would fit" } else { "" };
        return Err(fault.help(format!("a weight has extents [out, in]{help}")).at(1));
    }
    if !rules.equal(out, &args[2].dims[0], || "`linear`: {left} outputs and a bias for {right}".to_owned()) {
        let (out, bias) = (rules.show(out), rules.show(&args[2].dims[0]));
        return Err(Fault::new(format!("`linear`: {{1}} has {out} outputs, {{2}} is for {bias}"))
            .help("a bias has one element for each output, a weight has extents [out, in]")
            .at(2));
    }
    let mut dims = x.dims.clone();
    dims[x.rank() - 1] = out.clone();
    Ok(vec![Ty::new(x.dtype, dims)])
}

fn plus_product_type(rules: &mut Rules, args: &[&Ty], rank: usize) -> Types {
    rules::need_rank(rules, args, 1, rank)?;
    rules::need_rank(rules, args, 2, rank)?;
    same_dtype(rules, args, 0, 1)?;
    let product = product_dims(rules, args, 1, 2)?;
    let dims = rules.broadcast_two(&product, &args[0].dims, 0).map_err(|fault| {
        let (product, own) = (rules.show_all(&product), rules.show_all(&args[0].dims));
        Fault { message: format!("`{}`: {{0}} is {own}, the product is {product}", rules.op), ..fault }
    })?;
    grows_not(rules, &dims, &product)?;
    Ok(vec![Ty::new(args[0].dtype, dims)])
}

/// The receiver broadcasts to the product, not the other way round.
fn grows_not(rules: &mut Rules, joint: &[Dim], product: &[Dim]) -> Result<(), Fault> {
    let op = rules.op;
    let fits = joint.len() == product.len()
        && joint.iter().zip(product).all(|(joint, own)| {
            rules.equal(joint, own, || {
                format!("`{op}`: the receiver has extent {{left}} where the product has {{right}}")
            })
        });
    match fits {
        true => Ok(()),
        false => Err(Fault::new(format!("`{op}`: {{0}} is larger than the product {}", rules.show_all(product)))
            .help("it broadcasts to the product, not the other way round")
            .at(0)),
    }
}
