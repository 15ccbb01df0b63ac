//! Rows and decompositions against known values.

use super::*;
use crate::graph::verify::expect_valid;
use crate::op::{Build, Literal, Op};

/// A graph over these inputs, evaluated; `build` gives its results.
fn run(inputs: &[Value], build: impl FnOnce(&mut Graph, &[Val]) -> Vec<Val>) -> Result<Vec<Value>, Failure> {
    run_with(inputs, &Host { rounding: Rounding::EveryOp, ..Host::default() }, build)
}

fn run_with(
    inputs: &[Value],
    host: &Host,
    build: impl FnOnce(&mut Graph, &[Val]) -> Vec<Val>,
) -> Result<Vec<Value>, Failure> {
    let mut g = Graph::new("test");
    let named = |(k, value): (usize, &Value)| g.input(&format!("x{k}"), value.dtype, value.dims.len());
    let vals: Vec<Val> = inputs.iter().enumerate().map(named).collect();
    g.outs = build(&mut g, &vals);
    expect_valid(&g, "test");
    eval(&g, inputs, host)
}

/// One op with these attributes on the inputs.
fn op(name: &str, inputs: &[Value], attrs: Vec<Attr>) -> Value {
    try_op(name, inputs, attrs).unwrap().remove(0)
}

fn try_op(name: &str, inputs: &[Value], attrs: Vec<Attr>) -> Result<Vec<Value>, Failure> {
    run(inputs, |g, vals| {
        let val = g.push(Op::named(name), vals, attrs);
        (0..g.node(val).outs.len() as u32).map(|out| Val { out, ..val }).collect()
    })
}

fn f32s(dims: &[usize], data: &[f64]) -> Value {
    Value::floats(DType::F32, dims, data)
}

fn i64s(dims: &[usize], data: &[i64]) -> Value {
    Value::ints(DType::I64, dims, data)
}

fn constant(g: &mut Graph, literal: Literal, dtype: DType) -> Val {
    g.push(Op::named("constant"), &[], vec![Attr::Lit(literal), Attr::DType(dtype)])
}

fn axis(k: i64) -> Vec<Attr> {
    vec![Attr::Int(k)]
}

/// Every element within a relative or an absolute error.
#[track_caller]
fn assert_close(value: &Value, want: &[f64], tolerance: f64) {
    let have = value.as_floats();
    assert_eq!(have.len(), want.len(), "{have:?} against {want:?}");
    for (h, w) in have.iter().zip(want) {
        let close = (h - w).abs() <= tolerance * w.abs().max(1.0) || (h.is_nan() && w.is_nan()) || h == w;
        assert!(close, "{have:?} against {want:?}");
    }
}

#[test]
fn bf16_rounds_after_every_op() {
    let x = Value::floats(DType::BF16, &[3], &[256.0, 1.0, 3.140625]);
    let y = Value::floats(DType::BF16, &[3], &[1.0, 0.00390625, 0.10009765625]);
    let result = run(&[x, y], |g, v| {
        let t = g.push(Op::named("add"), &[v[0], v[1]], vec![]);
        let d = g.push(Op::named("sub"), &[t, v[0]], vec![]);
        vec![g.push(Op::named("sub"), &[v[1], d], vec![])]
    });
    assert_eq!(result.unwrap()[0].as_floats(), [1.0, 0.00390625, 0.00634765625]);
}

#[test]
fn weak_scalars_enter_halves_at_the_compute_type() {
    let h = Value::floats(DType::F16, &[2], &[1.0, 2048.0]);
    let result = run(&[h], |g, v| {
        let tenth = constant(g, Literal::Float(0.1), DType::F32);
        vec![g.push(Op::named("add"), &[v[0], tenth], vec![])]
    });
    assert_eq!(result.unwrap()[0].as_floats(), [1.099609375, 2048.0]);
}

#[test]
fn nan_wins_in_reductions_and_the_first_is_found() {
    let nan = f64::NAN;
    let x = f32s(&[3, 3], &[nan, 4.6, 1.0, 1.0, nan, nan, 0.0, -1.0, 3.0]);
    assert_eq!(op("argmax", std::slice::from_ref(&x), axis(1)).as_ints(), [0, 1, 2]);
    assert_eq!(op("argmin", std::slice::from_ref(&x), axis(1)).as_ints(), [0, 1, 1]);
    assert_close(&op("max", std::slice::from_ref(&x), axis(1)), &[nan, nan, 3.0], 0.0);
    assert_close(&op("min", &[x], axis(1)), &[nan, nan, -1.0], 0.0);
}

#[test]
fn one_position_looks_up_a_vector() {
    let index = Value::ints(DType::I64, &[], &[1]);
    let row = op("embedding", &[f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), index], vec![]);
    assert_eq!((row.dims.as_slice(), row.as_floats()), (&[3][..], vec![4.0, 5.0, 6.0]));
}

#[test]
fn layer_norm_of_large_values_does_not_overflow() {
    let x = f32s(&[1, 3], &[1e19, 2e19, 3e19]);
    let result = run(&[x, f32s(&[3], &[1.0; 3]), f32s(&[3], &[0.0; 3])], |g, v| {
        let eps = constant(g, Literal::Float(1e-5), DType::F64);
        let var = g.push(Op::named("var_correction"), &[v[0]], vec![Attr::Int(1), Attr::Int(0)]);
        vec![var, g.push(Op::named("layer_norm"), &[v[0], v[1], v[2], eps], vec![])]
    });
    let [var, norm] = result.unwrap().try_into().unwrap();
    assert!((var.as_floats()[0] / 6.6666673e37 - 1.0).abs() < 1e-6);
    assert_close(&norm, &[-1.2247449, 0.0, 1.2247449], 1e-6);
}

#[test]
fn layer_norm_takes_the_last_axes_of_its_weight_together() {
    let x = f32s(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 8.0]);
    let result = run(&[x, f32s(&[2, 2], &[1.0, 2.0, 1.0, 1.0]), f32s(&[2, 2], &[0.0, 0.0, 1.0, 0.0])], |g, v| {
        let eps = constant(g, Literal::Float(0.0), DType::F64);
        vec![g.push(Op::named("layer_norm"), &[v[0], v[1], v[2], eps], vec![])]
    });
    let result = result.unwrap().remove(0);
    assert_eq!(result.dims, [2, 2, 2]);
    let (a, b, r) = (1.3416407865, 0.4472135955, 0.57735026919);
    assert_close(&result, &[-a, -2.0 * b, b + 1.0, a, -r, -2.0 * r, 1.0 - r, 3.0 * r], 1e-6);
}

#[test]
fn softmax_rows_sum_to_one_and_one_element_is_one() {
    let x = f32s(&[2, 3], &[1.0, 2.0, 3.0, -1000.0, 0.0, 1000.0]);
    let y = op("softmax", std::slice::from_ref(&x), axis(-1));
    assert_close(&op("sum", &[y], axis(1)), &[1.0, 1.0], 1e-6);
    assert_close(&op("softmax", &[f32s(&[3, 1], &[-9.9e14, 3.0, 0.5])], axis(1)), &[1.0; 3], 0.0);
    assert_close(&op("log_softmax", &[f32s(&[1, 2], &[1000.0, 0.0])], axis(1)), &[0.0, -1000.0], 0.0);
    assert_close(&op("softmax", &[f32s(&[2, 2], &[0.0, 1.0, 0.0, 1.0])], axis(0)), &[0.5; 4], 0.0);
}

#[test]
fn reductions_of_nothing() {
    let x = f32s(&[2, 0], &[]);
    let reduce = |name: &str| op(name, std::slice::from_ref(&x), axis(1)).as_floats();
    assert_eq!(reduce("sum"), [0.0, 0.0]);
    assert_eq!(reduce("prod"), [1.0, 1.0]);
    assert!(reduce("mean").iter().chain(&reduce("var")).all(|x| x.is_nan()));
    assert_eq!(reduce("logsumexp"), [f64::NEG_INFINITY; 2]);
    assert_eq!(op("softmax", std::slice::from_ref(&x), axis(1)).dims, [2, 0]);
    assert_eq!(op("sum", &[Value::ints(DType::I32, &[2, 0], &[])], axis(1)), i64s(&[2], &[0, 0]));
    let failure = try_op("max", &[x], axis(1)).unwrap_err();
    assert_eq!(failure, Failure::Check("`max` needs at least 1 element, there are 0".to_owned()));
    assert_eq!(op("max", &[f32s(&[0, 2], &[])], axis(1)).dims, [0]);
}

#[test]
fn variance_of_one_element() {
    let x = f32s(&[1], &[5.0]);
    assert!(op("var_all", std::slice::from_ref(&x), vec![]).as_floats()[0].is_nan());
    assert!(op("std", std::slice::from_ref(&x), axis(0)).as_floats()[0].is_nan());
    assert_eq!(op("var_correction", &[x], vec![Attr::Int(0), Attr::Int(0)]).as_floats(), [0.0]);
}

#[test]
fn sums_of_integers_are_i64() {
    let v = Value::ints(DType::U8, &[2], &[200, 100]);
    assert_eq!(op("cumsum", std::slice::from_ref(&v), axis(0)), i64s(&[2], &[200, 300]));
    assert_eq!(op("prod", &[v], axis(0)), i64s(&[], &[20000]));
    assert_eq!(op("sum_all", &[Value::bools(&[3], &[true, true, false])], vec![]), i64s(&[], &[2]));
    let i = Value::ints(DType::I32, &[3], &[1073741824, 1073741824, 5]);
    assert_eq!(op("sum_keepdim", &[i], axis(0)), i64s(&[1], &[2147483653]));
}

#[test]
fn logsumexp_of_infinities() {
    let inf = f64::INFINITY;
    let x = f32s(&[3, 2], &[-inf, -inf, inf, 0.0, 1000.0, 1000.0]);
    assert_close(&op("logsumexp", &[x], axis(1)), &[-inf, inf, 1000.0 + 2f64.ln()], 1e-6);
}

#[test]
fn products_of_matrices_broadcast_and_sum_nothing_to_zero() {
    let a = f32s(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = f32s(&[2, 3, 2], &(0..12).map(f64::from).collect::<Vec<_>>());
    assert_eq!(op("matmul", &[a, b], vec![]).as_floats(), [16., 22., 34., 49., 52., 58., 124., 139.]);
    let nothing = op("matmul", &[f32s(&[2, 0], &[]), f32s(&[0, 3], &[])], vec![]);
    assert_eq!(nothing, f32s(&[2, 3], &[0.0; 6]));
    let ints = op("matmul", &[i64s(&[1, 2], &[1, 2]), i64s(&[2, 1], &[3, 4])], vec![]);
    assert_eq!(ints, i64s(&[1, 1], &[11]));
}

#[test]
fn linear_rounds_once() {
    // 256 + 1 is no bf16, but 256 + 1 + 1 is: rounding the product first would give 256.
    let bf16 = |dims: &[usize], data: &[f64]| Value::floats(DType::BF16, dims, data);
    let operands = [bf16(&[1, 2], &[256.0, 1.0]), bf16(&[1, 2], &[1.0, 1.0]), bf16(&[1], &[1.0])];
    assert_eq!(op("linear", &operands, vec![]).as_floats(), [258.0]);
    let [x, w, b] = operands;
    assert_eq!(op("addmm", &[b, x, bf16(&[2, 1], &[1.0, 1.0])], vec![]).as_floats(), [258.0]);
    assert_eq!(w.dims, [1, 2]);
}

#[test]
fn attention_rows_without_keys_are_zero() {
    let q = f32s(&[1, 2, 2], &[1.0, 0.0, 0.0, 1.0]);
    let k = f32s(&[1, 3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let v = f32s(&[1, 3, 1], &[1.0, 2.0, 4.0]);
    let allowed = [false, false, false, true, false, true];
    let added: Vec<f64> = allowed.iter().map(|&a| if a { 0.0 } else { f64::NEG_INFINITY }).collect();
    for mask in [Value::bools(&[2, 3], &allowed), f32s(&[2, 3], &added)] {
        let operands = [q.clone(), k.clone(), v.clone(), mask];
        let y = op("scaled_dot_product_attention", &operands, vec![Attr::Bool(false)]);
        assert_close(&y, &[0.0, 3.0092847], 1e-6);
    }
}

#[test]
fn causal_masks_align_top_left() {
    let ones = |dims: &[usize]| f32s(dims, &vec![1.0; dims.iter().product()]);
    let v = f32s(&[3, 1], &[1.0, 3.0, 100.0]);
    let y = op("scaled_dot_product_attention", &[ones(&[2, 4]), ones(&[3, 4]), v], vec![Attr::Bool(true)]);
    assert_close(&y, &[1.0, 2.0], 1e-6);
}

#[test]
fn cross_entropy_leaves_out_what_is_ignored_and_refuses_what_is_out_of_range() {
    let x = f32s(&[1, 2], &[1000.0, 0.0]);
    let y = f32s(&[1, 3], &[1.0, 2.0, 3.0]);
    let plain = |x: &Value, target: i64| try_op("cross_entropy", &[x.clone(), i64s(&[1], &[target])], vec![]);
    assert_eq!(plain(&x, 1).unwrap()[0].as_floats(), [1000.0]);
    assert_eq!(plain(&x, 0).unwrap()[0].as_floats(), [0.0]);
    assert_eq!(plain(&y, -4), Err(Failure::Index { index: -4, extent: 3 }));
    assert_eq!(plain(&y, 3), Err(Failure::Index { index: 3, extent: 3 }));
    assert!(plain(&y, -100).unwrap()[0].as_floats()[0].is_nan());
    let attrs = vec![Attr::Int(0), Attr::Dim(Dim::Const(255))];
    assert_eq!(op("cross_entropy_with", &[y, i64s(&[1], &[255])], attrs).as_floats(), [0.0]);
}

#[test]
fn cross_entropy_takes_the_mean_of_what_is_left() {
    let x = f32s(&[3, 2], &[0.0, 0.0, 5.0, 1.0, 0.0, 0.0]);
    let y = op("cross_entropy", &[x, i64s(&[3], &[0, -100, 1])], vec![]);
    assert_close(&y, &[2f64.ln()], 1e-6);
}

#[test]
fn positions_read_and_write() {
    let w = f32s(&[4, 2], &[1., -1., 2., -2., 3., -3., 4., -4.]);
    assert_eq!(op("embedding", &[w.clone(), i64s(&[2], &[0, 3])], vec![]).as_floats(), [1., -1., 4., -4.]);
    assert_eq!(op("embedding", &[w.clone(), i64s(&[1, 1], &[2])], vec![]).dims, [1, 1, 2]);
    let out = Failure::Index { index: -3, extent: 4 };
    assert_eq!(try_op("embedding", &[w.clone(), i64s(&[1], &[-3])], vec![]), Err(out.clone()));
    assert_eq!(try_op("index_select", &[w.clone(), i64s(&[1], &[-3])], axis(0)), Err(out));
    assert_eq!(op("index_select", &[w.clone(), i64s(&[3], &[1, 1, 0])], axis(1)).dims, [4, 3]);
    assert_eq!(op("gather", &[w.clone(), i64s(&[2, 1], &[1, 0])], axis(1)).as_floats(), [-1., 2.]);
    let src = f32s(&[2, 2], &[10., 20., 30., 40.]);
    let added = op("index_add", &[w.clone(), i64s(&[2], &[1, 1]), src.clone()], axis(0));
    assert_eq!(added.as_floats(), [1., -1., 42., 58., 3., -3., 4., -4.]);
    let copied = op("index_copy", &[w.clone(), i64s(&[2], &[3, 0]), src.clone()], axis(0));
    assert_eq!(copied.as_floats(), [30., 40., 2., -2., 3., -3., 10., 20.]);
    let scattered = op("scatter_add", &[w, i64s(&[1, 2], &[0, 3]), src], axis(0));
    assert_eq!(scattered.as_floats(), [11., -1., 2., -2., 3., -3., 4., 16.]);
}

#[test]
fn slices_are_read_and_assigned() {
    let x = i64s(&[2, 6], &(-6..6).collect::<Vec<_>>());
    let range = |start: i64, end: i64| vec![Attr::Int(1), Attr::Dim(start.into()), Attr::Dim(end.into())];
    assert_eq!(op("slice", std::slice::from_ref(&x), range(2, -1)).as_ints(), [-4, -3, -2, 2, 3, 4]);
    let twos = i64s(&[], &[2]);
    let assigned = op("slice_assign", &[x, twos], range(2, 5));
    assert_eq!(assigned.as_ints(), [-6, -5, 2, 2, 2, -1, 0, 1, 2, 2, 2, 5]);
}

#[test]
fn symbolic_slices_clip_at_run_time() {
    for (start, want) in [(1, vec![1, 2, 3]), (-2, vec![2, 3]), (7, vec![]), (-9, vec![0, 1, 2, 3])] {
        let mut g = Graph::new("f");
        let s = Dim::Sym(g.sym("start", SymSource::Host(0)));
        let x = g.input("x", DType::I64, 1);
        let attrs = vec![Attr::Int(0), Attr::Dim(s), Attr::Dim(Dim::Const(100))];
        g.outs = vec![g.push(Op::named("slice"), &[x], attrs)];
        let host = Host { ints: &[start], ..Host::default() };
        let result = eval(&g, &[i64s(&[4], &[0, 1, 2, 3])], &host).unwrap();
        assert_eq!(result[0].as_ints(), want, "from {start}");
    }
}

#[test]
fn views_show_the_same_elements() {
    let x = i64s(&[2, 3], &[0, 1, 2, 3, 4, 5]);
    let one = std::slice::from_ref(&x);
    assert_eq!(op("t", one, vec![]).as_ints(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(
        op("transpose", one, vec![Attr::Int(-1), Attr::Int(0)]),
        op("permute", one, vec![Attr::Ints(vec![1, 0])])
    );
    assert_eq!(op("flip", one, vec![Attr::Ints(vec![0, -1])]).as_ints(), [5, 4, 3, 2, 1, 0]);
    let twice = Attr::Dims(vec![2.into(), 2.into()]);
    assert_eq!(op("repeat", &[i64s(&[1, 2], &[1, 2])], vec![twice]), i64s(&[2, 4], &[1, 2, 1, 2, 1, 2, 1, 2]));
    assert_eq!(op("tril", one, vec![Attr::Int(0)]).as_ints(), [0, 0, 0, 3, 4, 0]);
    assert_eq!(op("triu", one, vec![Attr::Int(1)]).as_ints(), [0, 1, 2, 0, 0, 5]);
    assert_eq!(op("stack", &[x.clone(), x.clone()], axis(1)).dims, [2, 2, 3]);
    assert_eq!(op("cat", &[x.clone(), x.clone()], axis(-1)).as_ints(), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    let parts = try_op("chunk", &[x], vec![Attr::Int(1), Attr::Int(2)]).unwrap();
    assert_eq!([parts[0].as_ints(), parts[1].as_ints()], [vec![0, 1, 3, 4], vec![2, 5]]);
}

#[test]
fn repeats_of_many_axes_go_one_by_one() {
    let x = i64s(&[1, 1, 1, 1, 2], &[1, 2]);
    let twice = op("repeat", &[x], vec![Attr::Dims(vec![2.into(); 5])]);
    assert_eq!(twice.dims, [2, 2, 2, 2, 4]);
    assert_eq!(twice.as_ints()[..4], [1, 2, 1, 2]);
}

#[test]
fn constructors_count_and_fill() {
    let made = |name: &str, attrs: Vec<Attr>| op(name, &[], attrs);
    let range = |a: Attr, b: Attr, dtype| made("arange", vec![a, b, Attr::DType(dtype)]);
    assert_eq!(range(Attr::Int(2), Attr::Int(5), DType::I64).as_ints(), [2, 3, 4]);
    assert_eq!(range(Attr::Float(0.5), Attr::Float(2.0), DType::F32).as_floats(), [0.5, 1.5]);
    assert_eq!(made("eye", vec![Attr::Int(2), Attr::DType(DType::F32)]).as_floats(), [1., 0., 0., 1.]);
    let ones = made("ones", vec![Attr::Dims(vec![2.into()]), Attr::DType(DType::Bool)]);
    assert_eq!(ones, Value::bools(&[2], &[true, true]));
}

#[test]
fn uniform_halves_stay_below_one() {
    let almost = |_: Source, _, _| 1.0 - f64::from(f32::EPSILON) / 2.0;
    let host = Host { random: &almost, rounding: Rounding::EveryOp, ..Host::default() };
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let attrs = vec![Attr::Dims(vec![1.into()]), Attr::DType(dtype)];
        let draw = run_with(&[], &host, |g, _| vec![g.push(Op::named("rand"), &[], attrs)]).unwrap();
        assert!((0.0..1.0).contains(&draw[0].as_floats()[0]), "{dtype}");
    }
}

#[test]
fn dropout_scales_what_it_keeps() {
    let by_position = |_: Source, draw: u32, at: u64| (f64::from(draw) + at as f64) / 4.0 % 1.0;
    let host = Host { random: &by_position, ..Host::default() };
    let drop = |p: f64, training| {
        run_with(&[f32s(&[4], &[1.0, 2.0, f64::INFINITY, 4.0])], &host, |g, v| {
            let p = constant(g, Literal::Float(p), DType::F64);
            let once = g.push(Op::named("dropout"), &[v[0], p], vec![Attr::Bool(training)]);
            vec![once, g.push(Op::named("dropout"), &[v[0], p], vec![Attr::Bool(training)])]
        })
        .unwrap()
    };
    let [first, second] = drop(0.5, true).try_into().unwrap();
    assert_eq!(first.as_floats(), [0.0, 0.0, f64::INFINITY, 8.0].map(|x| x));
    assert_eq!(second.as_floats()[..2], [0.0, 4.0]);
    assert_eq!(drop(0.5, false)[0].as_floats(), [1.0, 2.0, f64::INFINITY, 4.0]);
    assert_eq!(drop(1.0, true)[0].as_floats()[..2], [0.0, 0.0]);
}

#[test]
fn integer_division_by_zero_fails() {
    let (one, zero) = (i64s(&[1], &[1]), i64s(&[1], &[0]));
    for name in ["div", "fmod", "floor_divide", "remainder"] {
        assert_eq!(try_op(name, &[one.clone(), zero.clone()], vec![]), Err(Failure::DivisionByZero), "{name}");
    }
    assert_eq!(op("div", &[f32s(&[1], &[1.0]), f32s(&[1], &[0.0])], vec![]).as_floats(), [f64::INFINITY]);
}

#[test]
fn u8_wraps_at_every_step() {
    let u = Value::ints(DType::U8, &[2], &[128, 200]);
    assert_eq!(op("add", &[u.clone(), u], vec![]).as_ints(), [0, 144]);
    let q = Value::ints(DType::U8, &[2], &[200, 200]);
    let sum = run(&[q], |g, v| {
        let a = g.push(Op::named("abs"), &[v[0]], vec![]);
        let n = g.push(Op::named("neg"), &[a], vec![]);
        vec![g.push(Op::named("sum_all"), &[n], vec![])]
    });
    assert_eq!(sum.unwrap()[0].as_ints(), [112]);
}

#[test]
fn generic_types_compute_as_what_they_are_made() {
    let mut g = Graph::new("f");
    let x = g.input("x", DType::Param(0), 1);
    g.outs = vec![g.push(Op::named("mean"), &[x], axis(0))];
    expect_valid(&g, "test");
    let host = Host { params: &[DType::F16], ..Host::default() };
    let result = eval(&g, &[Value::floats(DType::F16, &[3], &[1.0, 2.0, 2.0])], &host).unwrap();
    assert_eq!(result[0], Value::floats(DType::F16, &[], &[5.0 / 3.0]));
}

#[test]
fn what_composites_open_into_has_the_types_they_promise() {
    let mut g = Graph::new("f");
    let t = g.input("t", DType::F16, 3);
    let [b, r, c] = g.ty(t).dims.clone().try_into().unwrap();
    // As a segment whose named dims are solved: operands share symbols.
    let mut input = |dtype, dims: &[Dim]| {
        let val = g.input("x", dtype, 0);
        g.nodes[val.node as usize].outs[0].dims = dims.to_vec();
        val
    };
    let (m, v) = (input(DType::F16, &[r.clone(), c.clone()]), input(DType::F16, std::slice::from_ref(&c)));
    let (row, index) = (input(DType::F16, std::slice::from_ref(&r)), input(DType::I64, std::slice::from_ref(&r)));
    let scores = input(DType::F16, &[b.clone(), c.clone(), r.clone()]);
    let (mask, square) = (input(DType::Bool, &[r.clone(), c.clone()]), input(DType::F16, &[r.clone(), r.clone()]));
    let eps = constant(&mut g, Literal::Float(1e-5), DType::F64);
    let one = constant(&mut g, Literal::Float(1.0), DType::F32);
    let calls: Vec<(&str, Vec<Val>, Vec<Attr>)> = vec![
        ("mean", vec![t], axis(1)),
        ("max_keepdim", vec![t], axis(1)),
        ("std_all", vec![t], vec![]),
        ("norm", vec![t], axis(0)),
        ("logsumexp_keepdim", vec![t], axis(-1)),
        ("softmax", vec![t], axis(1)),
        ("layer_norm", vec![t, v, v, eps], vec![]),
        ("rms_norm", vec![t, m, eps], vec![]),
        ("dropout", vec![t, eps], vec![Attr::Bool(true)]),
        ("cross_entropy", vec![m, index], vec![]),
        ("cross_entropy_with", vec![m, index], vec![Attr::Int(0), Attr::Int(3)]),
        ("linear", vec![t, m, row], vec![]),
        ("linear", vec![v, m, row], vec![]),
        ("addmm", vec![v, square, m], vec![]),
        ("scaled_dot_product_attention", vec![t, t, t], vec![Attr::Bool(true)]),
        ("masked_fill", vec![m, mask, one], vec![]),
        ("index_select", vec![t, index], axis(1)),
        ("embedding", vec![m, index], vec![]),
        ("index_add", vec![m, index, m], axis(0)),
        ("baddbmm", vec![row, t, scores], vec![]),
        ("tril", vec![t], vec![Attr::Int(-1)]),
        ("slice_assign", vec![t, v], vec![Attr::Int(0), Attr::Int(1), Attr::Int(-1)]),
        ("repeat", vec![t], vec![Attr::Dims(vec![2.into(), 1.into(), 3.into()])]),
        ("chunk", vec![t], vec![Attr::Int(0), Attr::Int(3)]),
        ("rand", vec![], vec![Attr::Dims(vec![2.into()]), Attr::DType(DType::F16)]),
        ("full", vec![one], vec![Attr::Dims(vec![2.into()]), Attr::DType(DType::F16)]),
    ];
    for (name, args, attrs) in calls {
        let op = Op::named(name);
        let val = g.push(op, &args, attrs.clone());
        let promised = g.node(val).outs.clone();
        let opened = op.decompose.unwrap_or_else(|| panic!("`{name}` is a composite"))(&mut g, &args, &attrs);
        let types: Vec<Ty> = opened.iter().map(|&val| g.ty(val).clone()).collect();
        assert_eq!(types, promised, "{name}");
    }
    expect_valid(&g, "test");
}
