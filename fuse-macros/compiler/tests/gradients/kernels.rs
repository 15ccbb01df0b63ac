//! Which kernels forward and backward are together.

use expect_test::{Expect, expect};
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::graph::Graph;
use fuse_compiler::op::{Attr, Ops, Val};
use fuse_compiler::plan::print;
use fuse_compiler::types::DType;
use fuse_compiler::{optimise, schedule};

/// The plan of a function of bf16 inputs of these ranks and its gradients, for operands that do not broadcast.
fn check(inputs: &[(&str, usize)], wrt: &[u32], function: impl FnOnce(&mut Ops, &[Val]) -> Val, expected: Expect) {
    let mut graph = Graph::new("f");
    let dtype = |name: &str| if name == "targets" { DType::I64 } else { DType::BF16 };
    let vals: Vec<Val> = inputs.iter().map(|(name, rank)| graph.input(name, dtype(name), *rank)).collect();
    graph.outs = vec![function(&mut Ops(&mut graph), &vals)];
    let joint = autodiff::run(graph, &Request { wrt: wrt.to_vec(), seeds: vec![Seed::Input] });
    let joint = optimise::assume(&joint).unwrap_or(joint);
    let plan = schedule::run(&optimise::run(joint, optimise::Options::default()), schedule::Options::default());
    expected.assert_eq(&print::plan(&plan));
}

fn axis(k: i64) -> Vec<Attr> {
    vec![Attr::Int(k)]
}

#[test]
fn a_softmax_and_its_gradient_are_one_kernel() {
    check(
        &[("x", 2)],
        &[0],
        |o, x| o.with("softmax", x, axis(-1)),
        expect![[r#"
        k0_max_sub_exp_sum: row[x.0 | x.1] t1 = f32(x); t4 = exp(sub(t1, max(t1))); t7 = bf16(div(t4, sum(t4))); t8 = f32(t7); t10 = f32(cotangent); cast9 = t7; x_grad = bf16(mul(t8, sub(t10, sum(mul(t10, t8)))))
    "#]],
    );
}

#[test]
fn a_layer_norm_has_one_kernel_for_rows_and_sums_for_its_parameters() {
    let function = |o: &mut Ops, x: &[Val]| {
        let eps = o.float(1e-5, DType::F64);
        o.apply("layer_norm", &[x[0], x[1], x[2], eps])
    };
    check(
        &[("x", 2), ("w", 1), ("b", 1)],
        &[0, 1, 2],
        function,
        expect![[r#"
            k0_sum_div_sub_mul: row[x.0 | x.1] t1 = f32(x); t4 = div(sum(t1), x.1); t5 = sub(t1, t4); t11 = rsqrt(add(div(sum(mul(t5, t5)), x.1), 0.000009999999747378752)); t12 = mul(t5, t11); t14 = f32(w); t22 = mul(f32(cotangent), t14); div6 = t4; rsqrt14 = t11; cast21 = bf16(add(mul(t12, t14), f32(b))); x_grad = bf16(mul(t11, sub(sub(t22, div(sum(t22), x.1)), mul(t12, div(sum(mul(t22, t12)), x.1)))))
            k1_sub_mul_sum: column[x.1 | x.0] t1 = f32(cotangent); w_grad = bf16(sum(mul(t1, mul(sub(f32(x), div6), rsqrt14)))); b_grad = bf16(sum(t1))
        "#]],
    );
}

#[test]
fn a_cross_entropy_and_its_gradient_read_the_logits_once() {
    check(
        &[("x", 2), ("targets", 1)],
        &[0],
        |o, x| o.apply("cross_entropy", x),
        expect![[r#"
            k0_eq_logical_not_sum: row[ | x.0] sum_all23 = sum(logical_not(eq(targets, -100)))
            k1_eq_max_sub_exp: row[x.0 | x.1] t2 = eq(targets, -100); t4 = f32(x); t5 = max(t4); t7 = exp(sub(t4, t5)); t8 = sum(t7); t39 = div(t7, t8); cast26 = bf16(div(sum(where_cond(t2, 0, sub(ln(t8), sub(f32(x[where_cond(eq(targets, -100), 0, targets)]), t5)))), f32(sum_all23))); x_grad = bf16(mul(where_cond(t2, 0, div(f32(cotangent), f32(sum_all23))), where_cond(eq(position, where_cond(eq(targets, -100), 0, targets)), add(t39, -1), t39)))
        "#]],
    );
}

#[test]
fn a_linear_layer_rounds_its_gradients_where_they_are_made() {
    let function = |o: &mut Ops, x: &[Val]| {
        let h = o.apply("linear", x);
        o.apply("gelu", &[h])
    };
    check(
        &[("x", 3), ("w", 2), ("b", 1)],
        &[0, 1, 2],
        function,
        expect![[r#"
            k0_matmul_add_gelu: matmul[x.0, x.1, w.0, x.2] t4 = bf16(add(matmul(x, w), f32(b))); cast7 = t4; gelu8 = gelu(t4)
            k1_mul_erf_add_exp: map[x.0, x.1, w.0] t3 = f32(cast7); cast28 = bf16(mul(f32(cotangent), add(mul(add(erf(mul(t3, 0.7071067811865476)), 1), 0.5), mul(t3, mul(exp(mul(mul(t3, t3), -0.5)), 0.3989422804014327)))))
            k2_matmul: matmul[x.0*x.1, x.2, w.0] cast31 = bf16(matmul(cast28, w))
            k3_matmul: matmul[w.0, x.2, x.0*x.1] w_grad = bf16(matmul(cast28, x))
            k4_sum: column[w.0 | x.0*x.1] b_grad = bf16(sum(f32(cast28)))
        "#]],
    );
}

#[test]
fn a_rectified_product_keeps_a_mask() {
    let function = |o: &mut Ops, x: &[Val]| {
        let h = o.apply("matmul", &x[..2]);
        let h = o.add(h, x[2]);
        o.apply("relu", &[h])
    };
    check(
        &[("x", 2), ("w", 2), ("b", 1)],
        &[0, 1, 2],
        function,
        expect![[r#"
        s0_matmul_add_relu_le: matmul[x.0, w.1, x.1] t3 = relu(add(matmul(x, w), b)); relu5 = t3; le10 = le(f32(t3), 0)
        s1_where_cond: map[x.0, w.1] cast12 = bf16(where_cond(le10, 0, f32(cotangent)))
        s2_sum: column[w.1 | x.0] b_grad = bf16(sum(f32(cast12)))
        s3_matmul: matmul[x.0, x.1, w.1] x_grad = bf16(matmul(cast12, w))
        s4_matmul: matmul[x.1, w.1, x.0] w_grad = bf16(matmul(x, cast12))
    "#]],
    );
}

#[test]
fn attention_walks_its_rows_once_in_each_direction() {
    let function = |o: &mut Ops, x: &[Val]| o.with("scaled_dot_product_attention", x, vec![Attr::Bool(true)]);
    check(
        &[("q", 4), ("k", 4), ("v", 4)],
        &[0, 1, 2],
        function,
        expect![[r#"
            s0_matmul: matmul[q.0, q.1, q.2, k.2, q.3] product4 = matmul(q, k)
            s1_le_sqrt_recip_mul: row[q.0, q.1, q.2 | k.2] t9 = where_cond(le(position, position), mul(product4, recip(sqrt(q.3))), -inf); t10 = max(t9); t12 = eq(t10, -inf); t16 = exp(sub(t9, where_cond(t12, 0, t10))); t20 = div(t16, where_cond(t12, 1, sum(t16))); div26 = t20; cast27 = bf16(t20)
            s2_matmul: matmul[q.0, q.1, q.2, v.3, k.2] cast29 = bf16(matmul(cast27, v))
            s3_matmul: matmul[q.0, q.1, k.2, v.3, q.2] v_grad = bf16(matmul(cast27, cotangent))
            s4_matmul: matmul[q.0, q.1, q.2, k.2, v.3] product32 = matmul(cotangent, v)
            s5_mul_sum_sub_sqrt: row[q.0, q.1, q.2 | k.2] cast39 = bf16(mul(mul(div26, sub(product32, sum(mul(product32, div26)))), recip(sqrt(q.3))))
            s6_matmul: matmul[q.0, q.1, q.2, q.3, k.2] q_grad = bf16(matmul(cast39, k))
            s7_matmul: matmul[q.0, q.1, k.2, q.3, q.2] k_grad = bf16(matmul(cast39, q))
            s0_attention: attention, causal of map[q.0, q.1, q.2, k.2] cast27 = product
            s0_attention_queries, s0_attention_keys: back from step 3 of map[q.0, q.1, q.2, k.2] cast27 = product; cast39 = cast39
        "#]],
    );
}

#[test]
fn a_dropout_behind_a_product_is_part_of_its_epilogue() {
    let function = |o: &mut Ops, x: &[Val]| {
        let h = o.apply("linear", &x[..3]);
        let h = o.apply("gelu", &[h]);
        let rate = o.float(0.1, DType::F64);
        let h = o.with("dropout", &[h, rate], vec![Attr::Bool(true)]);
        o.apply("matmul", &[h, x[3]])
    };
    check(
        &[("x", 3), ("w", 2), ("b", 1), ("v", 2)],
        &[1],
        function,
        expect![[r#"
            k0_matmul_add_gelu_random: matmul[x.0, x.1, w.0, x.2] t4 = bf16(add(matmul(x, w), f32(b))); cast8 = t4; cast18 = bf16(mul(f32(gelu(t4)), mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)))
            k1_matmul: matmul[x.0, x.1, v.1, w.0] product19 = matmul(cast18, v)
            k2_matmul_random_ge_mul: matmul[x.0, x.1, w.0, v.1] t14 = f32(cast8); cast45 = bf16(mul(f32(bf16(mul(f32(bf16(matmul(cotangent, v))), mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)))), add(mul(add(erf(mul(t14, 0.7071067811865476)), 1), 0.5), mul(t14, mul(exp(mul(mul(t14, t14), -0.5)), 0.3989422804014327)))))
            k3_matmul: matmul[w.0, x.2, x.0*x.1] w_grad = bf16(matmul(cast45, x))
        "#]],
    );
}
