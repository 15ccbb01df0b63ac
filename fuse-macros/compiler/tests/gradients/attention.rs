//! Which attention of training is one kernel of a GPU forward and two backward.

use expect_test::{Expect, expect};
use fuse_compiler::autodiff::{self, Request, Seed, split};
use fuse_compiler::graph::Graph;
use fuse_compiler::op::{Attr, Literal, Ops, Val};
use fuse_compiler::plan::verify::verify;
use fuse_compiler::plan::{Buf, BufClass, FusedBack, Kind, Plan, Step, print};
use fuse_compiler::types::{DType, Dim};
use fuse_compiler::{optimise, schedule};
use std::collections::BTreeSet;

/// The plan of a function and its gradients, for operands that do not broadcast. Every result has a cotangent.
fn plan(inputs: &[(&str, DType, usize)], wrt: &[u32], function: impl FnOnce(&mut Ops, &[Val]) -> Vec<Val>) -> Plan {
    let mut graph = Graph::new("f");
    let vals: Vec<Val> = inputs.iter().map(|(name, dtype, rank)| graph.input(name, *dtype, *rank)).collect();
    graph.outs = function(&mut Ops(&mut graph), &vals);
    let seeds = graph.outs.iter().map(|_| Seed::Input).collect();
    let joint = autodiff::run(graph, &Request { wrt: wrt.to_vec(), seeds });
    let joint = optimise::assume(&joint).unwrap_or(joint);
    let plan = schedule::run(&optimise::run(joint, optimise::Options::default()), schedule::Options::default());
    verify(&plan);
    plan
}

/// What a plan has of attention.
fn check(plan: &Plan, expected: Expect) {
    let text = print::plan(plan);
    let lines = text.lines().filter(|line| line.contains("attention") || line.contains("back from step"));
    expected.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

/// Heads of one projection, `[b, s, 3 h d]` to three of `[b, h, s, d]`.
fn heads(o: &mut Ops, projected: Val) -> [Val; 3] {
    let dims = o.dims(projected);
    [0, 1, 2].map(|k| {
        let part = o.narrow(projected, 2, Dim::Const(768 * k), Dim::Const(768));
        let part = o.reshape(part, vec![dims[0].clone(), dims[1].clone(), Dim::Const(12), Dim::Const(64)]);
        o.permute(part, &[0, 2, 1, 3])
    })
}

/// The weights of attention, scaled by 1/8.
fn weights(o: &mut Ops, q: Val, k: Val) -> Val {
    let k = o.swap_last(k);
    let scores = o.apply("matmul", &[q, k]);
    let scale = o.constant(Literal::Float(0.125), o.dtype(q));
    let scores = o.mul(scores, scale);
    o.with("softmax", &[scores], vec![Attr::Int(-1)])
}

fn drop_some(o: &mut Ops, x: Val) -> Val {
    let rate = o.float(0.1, DType::F64);
    o.with("dropout", &[x, rate], vec![Attr::Bool(true)])
}

const HALVES: &[(&str, DType, usize)] = &[("q", DType::BF16, 4), ("k", DType::BF16, 4), ("v", DType::BF16, 4)];

/// Attention of a transformer's layer, as it is trained.
fn layer(o: &mut Ops, x: &[Val]) -> Vec<Val> {
    let dims = o.dims(x[0]);
    let projected = o.apply("linear", x);
    let [q, k, v] = heads(o, projected);
    let weights = weights(o, q, k);
    let weights = drop_some(o, weights);
    let out = o.apply("matmul", &[weights, v]);
    let out = o.permute(out, &[0, 2, 1, 3]);
    vec![o.reshape(out, vec![dims[0].clone(), dims[1].clone(), Dim::Const(768)])]
}

fn layer_of(dtype: DType) -> Plan {
    plan(&[("x", dtype, 3), ("w", dtype, 2), ("b", dtype, 1)], &[0, 1, 2], layer)
}

#[test]
fn a_layer_in_training_is_three_kernels() {
    check(
        &layer_of(DType::BF16),
        expect![[r#"
            k1_attention: attention of map[x.0, 12, x.1, x.1] cast38 = product; cast38 = mul(cast38, mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176))
            k1_attention_queries, k1_attention_keys: back from step 4 of map[x.0, 12, x.1, x.1] cast38 = product; cast38 = mul(cast38, mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)); cast65 = cast65
            k1_attention_drops: what is kept of the weights
        "#]],
    );
    check(
        &layer_of(DType::Param(0)),
        expect![[r#"
            k1_attention: attention of map[x.0, 12, x.1, x.1] cast39 = product; cast39 = mul(cast39, mul(C0(ge(uniform0(position), 0.10000000149011612)), 1.1111111111111112))
            k1_attention_queries, k1_attention_keys: back from step 4 of map[x.0, 12, x.1, x.1] cast39 = product; cast39 = mul(cast39, mul(C0(ge(uniform0(position), 0.10000000149011612)), 1.1111111111111112)); cast66 = cast66
            k1_attention_drops: what is kept of the weights
        "#]],
    );
}

#[test]
fn gradients_of_keys_lie_row_by_row() {
    let plan = layer_of(DType::BF16);
    let back = plan.fused[0].back.as_ref().expect("there is a way back");
    let (_, _, _, queries, keys) = back.steps(&plan);
    // Both are read as `[b, s, h d]`, so that is how they lie.
    for product in [queries, keys] {
        let buf = &plan.bufs[product.lib.product.buf.0 as usize];
        assert_eq!(buf.ty.dims[2..], [Dim::Const(12), Dim::Const(64)], "{}", print::plan(&plan));
    }
    // Nothing is copied, since the gradient of the projection is made of the three.
    let copies = plan.steps.iter().filter(|step| matches!(step, Step::Kernel(kernel) if kernel.stmts.len() == 1));
    assert!(copies.count() <= 6, "{}", print::plan(&plan));
}

#[test]
fn what_the_way_back_reads_lives_until_then() {
    let plan = layer_of(DType::BF16);
    let (fused, end) = (&plan.fused[0], plan.fused[0].back.as_ref().expect("there is a way back").first + 4);
    let (scores, _, values) = fused.steps.steps(&plan);
    for operand in [&scores.a, &scores.b, &values.b, &values.lib.product] {
        assert!(plan.bufs[operand.buf.0 as usize].live.1 >= end);
    }
    assert!(plan.bufs.iter().all(|buf| buf.donor != Some(values.lib.product.buf)));
}

#[test]
fn attention_as_one_op_goes_back_in_two_kernels() {
    let inputs = [HALVES, &[("mask", DType::Bool, 4)]].concat();
    let masked = |o: &mut Ops, x: &[Val]| vec![o.with("scaled_dot_product_attention", x, vec![Attr::Bool(true)])];
    check(
        &plan(&inputs, &[0, 1, 2], masked),
        expect![[r#"
        s0_attention: attention, causal of map[q.0, q.1, q.2, k.2] cast29 = where_cond(mask, mul(product, recip(sqrt(q.3))), -inf)
        s0_attention_queries, s0_attention_keys: back from step 3 of map[q.0, q.1, q.2, k.2] cast29 = where_cond(mask, mul(product, recip(sqrt(q.3))), -inf); cast41 = mul(cast41, recip(sqrt(q.3)))
    "#]],
    );
}

#[test]
fn dropped_weights_are_one_kernel_where_nothing_goes_back() {
    let mut graph = Graph::new("f");
    let x: Vec<Val> = HALVES.iter().map(|(name, dtype, rank)| graph.input(name, *dtype, *rank)).collect();
    let o = &mut Ops(&mut graph);
    let weights = weights(o, x[0], x[1]);
    let weights = drop_some(o, weights);
    let out = o.apply("matmul", &[weights, x[2]]);
    graph.outs = vec![out];
    let graph = optimise::assume(&graph).unwrap_or(graph);
    let plan = schedule::run(&optimise::run(graph, optimise::Options::default()), schedule::Options::default());
    check(
        &plan,
        expect![[r#"
        attention: s0_matmul, s1_mul_max_sub_exp, s2_matmul
        s0_attention: attention of map[q.0, q.1, q.2, k.2] cast24 = product; cast24 = mul(cast24, mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176))
    "#]],
    );
}

/// Attention that somebody looks into, or that is no multiple of a softmax.
#[track_caller]
fn stays_in_steps(inputs: &[(&str, DType, usize)], wrt: &[u32], function: impl FnOnce(&mut Ops, &[Val]) -> Vec<Val>) {
    let plan = plan(inputs, wrt, function);
    assert!(plan.fused.is_empty(), "{}", print::plan(&plan));
}

#[test]
fn what_somebody_else_reads_stays_in_steps() {
    // The user has the weights, too.
    stays_in_steps(HALVES, &[0, 1, 2], |o, x| {
        let weights = weights(o, x[0], x[1]);
        vec![o.apply("matmul", &[weights, x[2]]), weights]
    });
    // The gradient of a learned bias is that of the scores.
    let biased = [HALVES, &[("bias", DType::BF16, 4)]].concat();
    stays_in_steps(&biased, &[0, 1, 2, 3], |o, x| {
        vec![o.with("scaled_dot_product_attention", x, vec![Attr::Bool(false)])]
    });
    // Without a gradient of the keys two of the five steps are not there.
    stays_in_steps(HALVES, &[0, 2], |o, x| {
        let weights = weights(o, x[0], x[1]);
        vec![o.apply("matmul", &[weights, x[2]])]
    });
    // What the slope of a score of one's own needs is kept.
    stays_in_steps(HALVES, &[0, 1, 2], |o, x| {
        let k = o.swap_last(x[1]);
        let scores = o.apply("matmul", &[x[0], k]);
        let scores = o.apply("tanh", &[scores]);
        let weights = o.with("softmax", &[scores], vec![Attr::Int(-1)]);
        vec![o.apply("matmul", &[weights, x[2]])]
    });
    // Two products have the same weights.
    stays_in_steps(HALVES, &[0, 1, 2], |o, x| {
        let weights = weights(o, x[0], x[1]);
        let out = o.apply("matmul", &[weights, x[2]]);
        let twice = o.apply("matmul", &[weights, x[1]]);
        vec![out, twice]
    });
}

#[test]
fn weights_that_are_no_multiples_of_a_softmax_stay_in_steps() {
    stays_in_steps(HALVES, &[0, 1, 2], |o, x| {
        let weights = weights(o, x[0], x[1]);
        let squared = o.mul(weights, weights);
        vec![o.apply("matmul", &[squared, x[2]])]
    });
    stays_in_steps(HALVES, &[0, 1, 2], |o, x| {
        let weights = weights(o, x[0], x[1]);
        let one = o.constant(Literal::Float(1.0), DType::BF16);
        let more = o.add(weights, one);
        vec![o.apply("matmul", &[more, x[2]])]
    });
}

/// What a function with gradients in a file of the benchmarks becomes.
fn emitted(text: &str, name: &str) -> String {
    let file: syn::File = syn::parse_str(text).unwrap();
    let function = file.items.into_iter().find_map(|item| match item {
        syn::Item::Fn(function) if function.sig.ident == name => Some(function),
        _ => None,
    });
    let mut function = function.expect("the benchmark has such a function");
    let is_compile = |attr: &syn::Attribute| attr.path().is_ident("compile");
    let attribute = function.attrs.iter().position(is_compile).map(|at| function.attrs.remove(at));
    let Some(syn::Meta::List(list)) = attribute.map(|attr| attr.meta) else { panic!("it has options") };
    let function = quote::ToTokens::into_token_stream(function);
    let emitted = fuse_compiler::pipeline::compile(list.tokens, function).to_string();
    assert!(!emitted.contains("compile_error"), "{emitted}");
    emitted
}

fn goes_back_in_kernels(emitted: &str) -> bool {
    emitted.contains("fuse_attention_dq") && emitted.contains("fuse_attention_dkv")
}

/// The transformer block of the benchmarks, as it stands there, walks back through its attention in kernels.
#[test]
fn a_block_of_the_benchmarks_is_compiled() {
    assert!(goes_back_in_kernels(&emitted(include_str!("../../../../benches/workloads/functions.rs"), "block_train")));
}

/// Keys that are broadcast to a group of heads are seen under other views on the way back. Their gradients are sums over the group.
#[test]
fn heads_that_share_keys_go_back_in_kernels() {
    let text = include_str!("../../../../benches/attention/inputs.rs");
    assert!(["grouped", "grouped_causal"].iter().all(|name| goes_back_in_kernels(&emitted(text, name))));
}

/// The plans of forward and backward as two graphs, and what is kept between them.
fn apart(
    inputs: &[(&str, DType, usize)],
    wrt: &[u32],
    memory: f64,
    function: impl FnOnce(&mut Ops, &[Val]) -> Vec<Val>,
) -> ([Plan; 2], Vec<String>) {
    let mut graph = Graph::new("f");
    let vals: Vec<Val> = inputs.iter().map(|(name, dtype, rank)| graph.input(name, *dtype, *rank)).collect();
    graph.outs = function(&mut Ops(&mut graph), &vals);
    let scheduled = |graph: &Graph| {
        let graph = optimise::assume(graph).unwrap_or_else(|| graph.clone());
        let plan = schedule::run(&optimise::run(graph, optimise::Options::default()), schedule::Options::default());
        verify(&plan);
        plan
    };
    let attended = |graph: &Graph| scheduled(graph).attended();
    let pair = split::run(&graph, wrt, &[0], memory, &attended).expect("gradients go through it");
    ([&pair.forward, &pair.backward].map(scheduled), pair.told)
}

/// The launches of both on Hopper, and whether any buffer that they touch is a matrix of queries by keys.
fn check_apart((plans, told): &([Plan; 2], Vec<String>), expected: Expect) {
    let mut text = told.join("\n") + "\n";
    for plan in plans {
        text += &format!("{} launches\n", plan.launches_where_fused());
        let printed = print::plan(plan);
        let lines = printed.lines().filter(|line| line.contains("attention") || line.contains("back from step"));
        lines.for_each(|line| text += &format!("    {}\n", line.split(" of map").next().unwrap_or(line)));
        for large in matrices(plan) {
            text += &format!("    {large} is a matrix of queries by keys\n");
        }
    }
    expected.assert_eq(&text);
}

/// Buffers with as many elements as there are weights, but those that only the steps of attention have to do with that kernels do.
fn matrices(plan: &Plan) -> Vec<String> {
    let mut inner: BTreeSet<usize> = BTreeSet::new();
    for fused in &plan.fused {
        inner.extend((fused.steps.first as usize..).take(fused.count()));
        inner.extend(fused.back.iter().flat_map(|back| (back.first as usize..).take(FusedBack::STEPS)));
    }
    let weights: Vec<&[Dim]> = plan.steps.iter().filter_map(rows).collect();
    let is_large = |buf: &&Buf| weights.iter().any(|dims| buf.ty.dims == **dims);
    let outside = |buf: &&Buf| {
        matches!(buf.class, BufClass::Out | BufClass::In(_))
            || !(buf.live.0..=buf.live.1).all(|k| inner.contains(&(k as usize)))
    };
    plan.bufs.iter().filter(is_large).filter(outside).map(|buf| buf.name.clone()).collect()
}

/// The domain of a step that goes row by row over a matrix of more than two axes.
fn rows(step: &Step) -> Option<&[Dim]> {
    match step {
        Step::Kernel(kernel) if kernel.kind == Kind::Row && kernel.domain.len() > 3 => Some(&kernel.domain),
        _ => None,
    }
}

#[test]
fn a_layer_on_a_tape_keeps_none_of_its_weights() {
    for memory in [0.0, 1.0] {
        for dtype in [DType::BF16, DType::F32, DType::Param(0)] {
            let inputs = [("x", dtype, 3), ("w", dtype, 2), ("b", dtype, 1)];
            let apart = apart(&inputs, &[0, 1, 2], memory, layer);
            assert!(apart.0.iter().all(|plan| matrices(plan).is_empty() && plan.fused.len() == 1), "{:?}", apart.1);
        }
    }
    let inputs = [("x", DType::BF16, 3), ("w", DType::BF16, 2), ("b", DType::BF16, 1)];
    check_apart(
        &apart(&inputs, &[0, 1, 2], 0.0, layer),
        expect![[r#"
        keeps the argument `x`
        keeps the argument `w`
        keeps `linear`, 2*x.0*x.1*w.0 bytes
        computes again `product`, `mul`, `softmax`, `cast`, `uniform`, `cast`, `ge`, `cast`, `sub`, `div`, `eq`, `where_cond`, `cast`, `mul`, `cast`
        2 launches
            attention: k1_matmul, k2_mul_max_sub_exp, k3_matmul
            k1_attention: attention
        13 launches
            k0_attention: attention
            k0_attention_queries, k0_attention_keys: back from step 2
            k0_attention_drops: what is kept of the weights
    "#]],
    );
}

#[test]
fn attention_on_a_tape_is_kernels() {
    let inputs = [HALVES, &[("mask", DType::Bool, 4)]].concat();
    let masked = |o: &mut Ops, x: &[Val]| vec![o.with("scaled_dot_product_attention", x, vec![Attr::Bool(true)])];
    check_apart(
        &apart(&inputs, &[0, 1, 2], 0.0, masked),
        expect![[r#"
        keeps the argument `q`
        keeps the argument `k`
        keeps the argument `v`
        keeps the argument `mask`
        1 launches
            attention: s0_matmul, s1_le_sqrt_recip_mul, s2_matmul
            s0_attention: attention, causal
            mask is a matrix of queries by keys
        3 launches
            s0_attention: attention, causal
            s0_attention_queries, s0_attention_keys: back from step 2
            mask is a matrix of queries by keys
    "#]],
    );
    let written = |o: &mut Ops, x: &[Val]| {
        let weights = weights(o, x[0], x[1]);
        vec![o.apply("matmul", &[weights, x[2]])]
    };
    check_apart(
        &apart(HALVES, &[0, 1, 2], 0.0, written),
        expect![[r#"
        keeps the argument `q`
        keeps the argument `k`
        keeps the argument `v`
        computes again `product`, `mul`, `softmax`
        1 launches
            attention: s0_matmul, s1_mul_max_sub_exp, s2_matmul
            s0_attention: attention
        3 launches
            s0_attention: attention
            s0_attention_queries, s0_attention_keys: back from step 2
    "#]],
    );
}

/// Nor does what nobody reads change that.
#[test]
fn a_product_that_nobody_reads_keeps_no_weights() {
    let twice = |o: &mut Ops, x: &[Val]| {
        let weights = weights(o, x[0], x[1]);
        o.apply("matmul", &[weights, x[2]]);
        let dropped = drop_some(o, weights);
        vec![o.apply("matmul", &[dropped, x[2]])]
    };
    let (plans, told) = apart(HALVES, &[0, 1, 2], 0.0, twice);
    assert!(plans.iter().all(|plan| matrices(plan).is_empty() && plan.fused.len() == 1), "{told:?}");
}

/// Where there will be no kernels, nothing is multiplied again.
#[test]
fn weights_are_kept_where_the_way_back_goes_in_steps() {
    // The product of a gradient of the keys is not there.
    let written = |o: &mut Ops, x: &[Val]| {
        let weights = weights(o, x[0], x[1]);
        vec![o.apply("matmul", &[weights, x[2]])]
    };
    check_apart(
        &apart(HALVES, &[0, 2], 0.0, written),
        expect![[r#"
        keeps the argument `k`
        keeps the argument `v`
        keeps `softmax`, 2*q.2*k.2*broadcast(q.0, k.0)*broadcast(q.1, k.1) bytes
        3 launches
            cast15 is a matrix of queries by keys
            product4 is a matrix of queries by keys
        4 launches
            input2 is a matrix of queries by keys
            cast22 is a matrix of queries by keys
            cast7 is a matrix of queries by keys
    "#]],
    );
    // There are no kernels of doubles.
    let doubles = [("q", DType::F64, 4), ("k", DType::F64, 4), ("v", DType::F64, 4)];
    check_apart(
        &apart(&doubles, &[0, 1, 2], 0.0, written),
        expect![[r#"
        keeps the argument `q`
        keeps the argument `k`
        keeps the argument `v`
        keeps `softmax`, 8*q.2*k.2*broadcast(q.0, k.0)*broadcast(q.1, k.1) bytes
        3 launches
            div13 is a matrix of queries by keys
            product4 is a matrix of queries by keys
        5 launches
            input3 is a matrix of queries by keys
            mul16 is a matrix of queries by keys
            product8 is a matrix of queries by keys
    "#]],
    );
    // Nor of heads that are as wide.
    let wide = |o: &mut Ops, x: &[Val]| {
        let [b, h, s] = [0, 1, 2].map(|axis| o.dims(x[0])[axis].clone());
        let [q, k, v] = [0, 1, 2].map(|n| o.reshape(x[n], vec![b.clone(), h.clone(), s.clone(), Dim::Const(256)]));
        let weights = weights(o, q, k);
        vec![o.apply("matmul", &[weights, v])]
    };
    check_apart(
        &apart(HALVES, &[0, 1, 2], 0.0, wide),
        expect![[r#"
        keeps the argument `q`
        keeps the argument `k`
        keeps the argument `v`
        keeps `softmax`, 2*q.0*q.1*q.2*q.2 bytes
        3 launches
            cast18 is a matrix of queries by keys
            product7 is a matrix of queries by keys
        6 launches
            input3 is a matrix of queries by keys
            cast26 is a matrix of queries by keys
            cast11 is a matrix of queries by keys
    "#]],
    );
}
