//! What holds for every row.

use super::*;
use crate::graph::Graph;
use crate::types::{Dim, Ty};

#[test]
fn names_are_unique_and_found() {
    for op in table() {
        assert_eq!(table().iter().filter(|other| other.name == op.name).count(), 1, "{}", op.name);
        assert_eq!(Op::find(op.name), Some(*op));
    }
}

#[test]
fn every_row_is_documented_and_has_a_domain() {
    for op in table() {
        assert!(!op.doc.is_empty() && !op.doc.ends_with('.'), "{}: {:?}", op.name, op.doc);
        assert!(op.domain.0 < op.domain.1, "{}", op.name);
        for param in op.params {
            assert!(!param.name.is_empty(), "{}", op.name);
        }
    }
}

#[test]
fn rows_have_the_columns_of_their_class() {
    for op in table() {
        let has_text = op.class == Class::Elementwise && op.name != "cast";
        assert_eq!(op.scalar.is_some(), has_text, "{}", op.name);
        assert_eq!(op.decompose.is_some(), op.class == Class::Composite, "{}", op.name);
    }
}

#[test]
fn texts_name_exactly_the_operands() {
    for op in table() {
        let Some(scalar) = &op.scalar else { continue };
        let texts = [scalar.cuda, scalar.rust].into_iter().chain(scalar.int.into_iter().flat_map(|(c, r)| [c, r]));
        for text in texts {
            for operand in 0..=op.params.len() {
                assert!(text.contains(&format!("{{{operand}}}")), "{}: operand {operand} in {text}", op.name);
            }
            assert!(!text.contains(&format!("{{{}}}", op.params.len() + 1)), "{}: {text}", op.name);
        }
    }
}

#[test]
fn helpers_exist_and_come_after_what_they_need() {
    for op in table() {
        let Some(scalar) = &op.scalar else { continue };
        for text in [scalar.cuda, scalar.int.map_or("", |(cuda, _)| cuda)] {
            let found = helpers::needed_by(text);
            for name in text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| w.starts_with("fuse_")) {
                assert!(found.iter().any(|helper| helper.name == name), "{}: {name}", op.name);
            }
        }
    }
    let names: Vec<_> =
        helpers::needed_by("fuse_floor_divide(a, b) + fuse_powi(a, 2)").iter().map(|h| h.name).collect();
    assert_eq!(names, ["fuse_fmod", "fuse_neg", "fuse_div", "fuse_floor_divide", "fuse_mul", "fuse_powi"]);
}

#[test]
fn operators_mean_rows() {
    for (symbol, operands, name) in
        [("+", 2, "add"), ("-", 2, "sub"), ("-", 1, "neg"), ("!", 1, "bitwise_not"), ("%", 2, "fmod")]
    {
        assert_eq!(Op::operator(symbol, operands), Some(Op::named(name)));
    }
}

#[test]
fn the_whole_list_of_the_design_is_there() {
    let methods = "matmul linear addmm baddbmm relu leaky_relu gelu gelu_tanh silu sigmoid tanh exp ln sqrt rsqrt powi powf \
        abs neg recip sin cos erf floor ceil round clamp minimum maximum eq ne lt le gt ge isnan isinf logical_and \
        logical_or logical_not bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift floor_divide \
        remainder fmod where_cond masked_fill sum sum_all mean mean_all max_all min_all norm std max min prod var argmax \
        argmin softmax log_softmax logsumexp layer_norm rms_norm dropout reshape permute transpose t unsqueeze squeeze \
        expand narrow slice chunk unbind gather index_select embedding scatter_add index_add cumsum tril triu flip \
        repeat detach slice_assign index_copy scaled_dot_product_attention cross_entropy cast item to_vec sum_keepdim \
        argmax_keepdim var_all var_correction std_correction cross_entropy_with copy_";
    for name in methods.split_whitespace() {
        assert!(Op::method(name).is_some(), "method {name}");
    }
    for name in "cat stack zeros ones full arange from_vec from_slice randn rand eye".split_whitespace() {
        assert!(Op::function(name).is_some(), "function {name}");
    }
    assert_eq!(Op::method("take"), None);
}

/// Types of the operands by shape text, with the attributes; `s` is a symbolic extent.
fn types(name: &str, args: &[Ty], attrs: &[Attr]) -> (Result<Vec<Ty>, Fault>, Vec<Check>) {
    let mut rules = Rules::default();
    let result = Op::named(name).types(&mut rules, &args.iter().collect::<Vec<_>>(), attrs);
    (result, rules.checks)
}

fn f32s(dims: &[i64]) -> Ty {
    Ty::new(DType::F32, dims.iter().map(|&d| Dim::Const(d)).collect::<Vec<_>>())
}

fn message(name: &str, args: &[Ty], attrs: &[Attr]) -> String {
    types(name, args, attrs).0.expect_err("the rule should refuse this").message
}

#[test]
fn size_one_stretches_to_zero_and_zero_does_not_stretch_to_two() {
    assert_eq!(types("add", &[f32s(&[2, 0]), f32s(&[2, 1])], &[]).0, Ok(vec![f32s(&[2, 0])]));
    assert_eq!(
        message("add", &[f32s(&[2, 0]), f32s(&[2, 2])], &[]),
        "operands of `add` do not broadcast: {0} is [2, 0], {1} is [2, 2]"
    );
}

#[test]
fn an_open_broadcast_becomes_a_check() {
    let mut g = Graph::new("f");
    let (x, y) = (g.input("x", DType::F32, 1), g.input("y", DType::F32, 1));
    let sum = g.try_push(Op::named("add"), &[x, y], vec![]).unwrap();
    assert_eq!(g.checks.len(), 1);
    assert_eq!(g.checks[0].0, sum.node);
    assert_eq!(g.checks[0].1.relation, Relation::Broadcasts);
}

#[test]
fn matmul_names_both_inner_extents_and_the_way_out() {
    let fault = types("matmul", &[f32s(&[2, 64]), f32s(&[128, 64])], &[]).0.unwrap_err();
    assert_eq!(fault.message, "inner dimensions of `matmul` differ: {0} has k = 64, {1} has k = 128");
    assert_eq!(fault.help.as_deref(), Some("`{1}.t()` would give k = 64"));
    assert_eq!(fault.operand, Some(1));
}

#[test]
fn matmul_broadcasts_batches() {
    let result = types("matmul", &[f32s(&[2, 1, 2, 3]), f32s(&[1, 3, 3, 2])], &[]).0;
    assert_eq!(result, Ok(vec![f32s(&[2, 3, 2, 2])]));
}

#[test]
fn vectors_multiply_as_rows_and_columns() {
    let result = |a: &[i64], b: &[i64]| types("matmul", &[f32s(a), f32s(b)], &[]).0.unwrap()[0].clone();
    assert_eq!(result(&[3], &[3]), f32s(&[]));
    assert_eq!(result(&[2, 3], &[3]), f32s(&[2]));
    assert_eq!(result(&[3], &[5, 3, 4]), f32s(&[5, 4]));
}

#[test]
fn element_types_must_agree_but_scalars_are_weak() {
    let half = Ty::new(DType::F16, [Dim::Const(3)]);
    assert_eq!(types("add", &[half.clone(), f32s(&[])], &[]).0, Ok(vec![half.clone()]));
    assert_eq!(types("sub", &[f32s(&[]), half.clone()], &[]).0, Ok(vec![half.clone()]));
    assert_eq!(
        message("add", &[half, f32s(&[3])], &[]),
        "operands of `add` have different element types: {0} is f16, {1} is f32"
    );
}

#[test]
fn float_only_ops_refuse_integers() {
    let ints = Ty::new(DType::I64, [Dim::Const(3)]);
    assert_eq!(message("softmax", std::slice::from_ref(&ints), &[Attr::Int(0)]), "`softmax` is for floats, {0} is i64");
    assert_eq!(message("mean", &[ints], &[Attr::Int(0)]), "`mean` is for floats, {0} is i64");
}

#[test]
fn fp8_is_cast_before_it_is_computed_with() {
    let x = Ty::new(DType::F8E4M3, [Dim::Const(3)]);
    for (name, args) in [("add", 2), ("matmul", 2), ("exp", 1), ("relu", 1)] {
        let fault = types(name, &vec![x.clone(); args], &[]).0.unwrap_err();
        assert_eq!(fault.help.as_deref(), Some("`cast::<f32>()` before it converts"), "{}", fault.message);
        assert!(!fault.by_types && fault.message.ends_with("{0} is f8e4m3"), "{}", fault.message);
    }
    assert_eq!(types("sum", std::slice::from_ref(&x), &[Attr::Int(0)]).0, Ok(vec![Ty::new(DType::F32, [])]));
    assert_eq!(types("max", &[x], &[Attr::Int(0)]).0, Ok(vec![Ty::new(DType::F8E4M3, [])]));
}

#[test]
fn scales_of_fp8_are_floats_of_rank_0() {
    let matrix = |dtype, dims: [i64; 2]| Ty::new(dtype, dims.map(Dim::Const));
    let (a, b, one) = (matrix(DType::F8E4M3, [2, 3]), matrix(DType::F8E4M3, [3, 5]), f32s(&[]));
    let call = |a: &Ty, b: &Ty, scale: &Ty, dtype| {
        types("scaled_matmul", &[a.clone(), b.clone(), scale.clone(), one.clone()], &[Attr::DType(dtype)]).0
    };
    assert_eq!(call(&a, &b, &one, DType::BF16), Ok(vec![matrix(DType::BF16, [2, 5])]));
    assert!(call(&a, &b, &f32s(&[2]), DType::BF16).is_err());
    assert!(call(&a, &b, &one, DType::I64).unwrap_err().message.contains("gives floats"));
    assert!(call(&a, &a, &one, DType::F32).unwrap_err().message.contains("inner dimensions"));
    let fault = call(&matrix(DType::BF16, [2, 3]), &b, &one, DType::F32).unwrap_err();
    assert_eq!(fault.help.as_deref(), Some("`cast::<f8e4m3>()` before it converts"));
}

#[test]
fn sums_of_integers_and_bool_are_i64() {
    for dtype in [DType::U8, DType::I32, DType::Bool] {
        let x = Ty::new(dtype, [Dim::Const(3)]);
        assert_eq!(types("sum", &[x], &[Attr::Int(0)]).0, Ok(vec![Ty::new(DType::I64, [])]));
    }
}

#[test]
fn the_largest_of_nothing_is_refused_where_it_is_asked_for() {
    assert!(message("max", &[f32s(&[2, 0])], &[Attr::Int(1)]).contains("of no elements"));
    assert_eq!(types("max", &[f32s(&[0, 2])], &[Attr::Int(1)]).0, Ok(vec![f32s(&[0])]));
}

#[test]
fn reshape_compares_numbers_of_elements_as_formulas() {
    let mut g = Graph::new("f");
    let x = g.input("x", DType::F32, 2);
    let [b, d] = [g.ty(x).dims[0].clone(), g.ty(x).dims[1].clone()];
    g.try_push(Op::named("reshape"), &[x], vec![Attr::Dims(vec![Dim::mul(d.clone(), b.clone())])]).unwrap();
    assert_eq!(g.checks, []);
    let halves = Dim::floor_div(d.clone(), Dim::Const(2));
    g.try_push(Op::named("reshape"), &[x], vec![Attr::Dims(vec![b, Dim::Const(2), halves])]).unwrap();
    assert_eq!(g.checks.len(), 1);
    assert!(
        message("reshape", &[f32s(&[2, 3])], &[Attr::Dims(vec![5.into()])]).contains("keeps the number of elements")
    );
}

#[test]
fn slices_clip_as_python_does() {
    let slice = |start: i64, end: i64| {
        types("slice", &[f32s(&[10])], &[Attr::Int(0), Attr::Dim(start.into()), Attr::Dim(end.into())]).0.unwrap()[0]
            .dims[0]
            .clone()
    };
    assert_eq!(slice(2, 5), Dim::Const(3));
    assert_eq!(slice(-3, 100), Dim::Const(3));
    assert_eq!(slice(-100, -8), Dim::Const(2));
    assert_eq!(slice(5, 2), Dim::Const(0));
}

#[test]
fn narrow_stays_inside() {
    let attrs = |start: i64, len: i64| [Attr::Int(0), Attr::Dim(start.into()), Attr::Dim(len.into())];
    assert!(types("narrow", &[f32s(&[10])], &attrs(7, 3)).0.is_ok());
    assert!(message("narrow", &[f32s(&[10])], &attrs(8, 3)).contains("positions 8..11"));
}

#[test]
fn chunks_of_a_symbolic_multiple_are_even() {
    let mut g = Graph::new("f");
    let d = Dim::Sym(g.sym("D", crate::graph::SymSource::Host(0)));
    let x = Ty::new(DType::F32, [Dim::mul(Dim::Const(3), d.clone())]);
    let (parts, checks) = types("chunk", &[x], &[Attr::Int(0), Attr::Int(3)]);
    assert_eq!(parts, Ok(vec![Ty::new(DType::F32, [d]); 3]));
    assert_eq!(checks, []);
    let uneven = types("chunk", &[f32s(&[7])], &[Attr::Int(0), Attr::Int(3)]).0;
    assert_eq!(uneven, Ok(vec![f32s(&[3]), f32s(&[3]), f32s(&[1])]));
}

#[test]
fn attention_takes_masks_that_broadcast_with_the_scores() {
    let (q, k, v) = (f32s(&[2, 4, 5, 8]), f32s(&[2, 4, 6, 8]), f32s(&[2, 4, 6, 3]));
    let mask = Ty::new(DType::Bool, [Dim::Const(5), Dim::Const(6)]);
    let name = "scaled_dot_product_attention";
    let result = types(name, &[q.clone(), k.clone(), v.clone(), mask], &[Attr::Bool(false)]).0;
    assert_eq!(result, Ok(vec![f32s(&[2, 4, 5, 3])]));
    let odd = Ty::new(DType::Bool, [Dim::Const(5), Dim::Const(7)]);
    assert!(message(name, &[q, k, v, odd], &[Attr::Bool(false)]).contains("do not broadcast"));
}
