use super::Options;
use crate::graph::Graph;
use crate::op::{Attr, Build, Check, Literal, Op, Relation, Val};
use crate::plan::{Expr, Kind, Level, Plan, Step, View};
use crate::types::{DType, Dim};

/// Builds a graph, optimises and schedules it.
fn plan(build: impl FnOnce(&mut Graph) -> Vec<Val>) -> Plan {
    let mut graph = Graph::new("test");
    graph.outs = build(&mut graph);
    let graph = crate::optimise::run(graph, crate::optimise::Options::default());
    super::run(&graph, Options::default())
}

/// The kinds and names of the steps, a word each.
fn steps(plan: &Plan) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Kernel(k) => format!("{:?} {}", k.kind, k.name),
        Step::Matmul(m) => match &m.lib.rest {
            Some(rest) => format!("Matmul {} then {}", m.epilogue.name, rest.name),
            None => format!("Matmul {}", m.epilogue.name),
        },
    };
    plan.steps.iter().map(step).collect()
}

fn op(g: &mut Graph, name: &str, args: &[Val]) -> Val {
    g.push(Op::named(name), args, vec![])
}

fn axis(g: &mut Graph, name: &str, x: Val, axis: i64) -> Val {
    g.push(Op::named(name), &[x], vec![Attr::Int(axis)])
}

fn float(g: &mut Graph, value: f64, dtype: DType) -> Val {
    g.push(Op::named("constant"), &[], vec![Attr::Lit(Literal::Float(value)), Attr::DType(dtype)])
}

/// Says that two extents are equal, as named dims would.
fn same(g: &mut Graph, (x, i): (Val, usize), (y, k): (Val, usize)) {
    let (left, right) = (g.ty(x).dims[i].clone(), g.ty(y).dims[k].clone());
    g.checks.push((0, Check { left, right, relation: Relation::Equal, text: String::new() }));
}

const F32: DType = DType::F32;

#[test]
fn a_chain_is_one_map() {
    let plan = plan(|g| {
        let (x, y) = (g.input("x", F32, 1), g.input("y", F32, 1));
        let two = float(g, 2.0, F32);
        let scaled = op(g, "mul", &[x, two]);
        let relu = op(g, "relu", &[scaled]);
        let sigmoid = op(g, "sigmoid", &[x]);
        let product = op(g, "mul", &[relu, sigmoid]);
        vec![op(g, "add", &[product, y])]
    });
    assert_eq!(steps(&plan), ["Map k0_mul_relu_sigmoid_add"]);
}

#[test]
fn siblings_that_read_one_input_are_one_kernel() {
    let plan = plan(|g| {
        let x = g.input("x", F32, 1);
        vec![op(g, "relu", &[x]), op(g, "sigmoid", &[x])]
    });
    assert_eq!(steps(&plan), ["Map k0_relu_sigmoid"]);
    assert_eq!(plan.outs.len(), 2);
}

#[test]
fn softmax_is_one_row_kernel() {
    let plan = plan(|g| {
        let x = g.input("x", F32, 2);
        vec![axis(g, "softmax", x, -1)]
    });
    assert_eq!(steps(&plan), ["Row k0_max_sub_exp_sum"]);
}

#[test]
fn softmax_along_an_outer_axis_reduces_columns() {
    let plan = plan(|g| {
        let x = g.input("x", F32, 2);
        vec![axis(g, "softmax", x, 0)]
    });
    let kinds: Vec<Kind> = plan.kernels().map(|k| k.kind).collect();
    assert_eq!(kinds, [Kind::Column, Kind::Column, Kind::Map]);
}

#[test]
fn layer_norm_with_residual_and_dropout_is_one_row_kernel() {
    let plan = plan(|g| {
        let (x, b, r) = (g.input("x", F32, 2), g.input("b", F32, 1), g.input("r", F32, 2));
        let (w, be) = (g.input("w", F32, 1), g.input("be", F32, 1));
        let (eps, p) = (float(g, 1e-5, DType::F64), float(g, 0.1, DType::F64));
        same(g, (x, 0), (r, 0));
        same(g, (x, 1), (r, 1));
        same(g, (x, 1), (b, 0));
        let sum = op(g, "add", &[x, b]);
        let dropped = g.push(Op::named("dropout"), &[sum, p], vec![Attr::Bool(true)]);
        let residual = op(g, "add", &[r, dropped]);
        vec![op(g, "layer_norm", &[residual, w, be, eps])]
    });
    assert_eq!(steps(&plan).len(), 1, "{:?}", steps(&plan));
    assert_eq!(plan.draws.len(), 1);
}

#[test]
fn mean_cross_entropy_is_one_launch() {
    let plan = plan(|g| {
        let (x, t) = (g.input("x", F32, 2), g.input("t", DType::I64, 1));
        vec![op(g, "cross_entropy", &[x, t])]
    });
    assert_eq!(steps(&plan).len(), 1, "{:?}", steps(&plan));
    let Step::Kernel(kernel) = &plan.steps[0] else { panic!("a kernel") };
    assert!(kernel.stmts.iter().any(|s| s.level == Level::All));
}

#[test]
fn bias_and_relu_join_the_matmul() {
    let plan = plan(|g| {
        let (x, w, b) = (g.input("x", F32, 2), g.input("w", F32, 2), g.input("b", F32, 1));
        let product = op(g, "matmul", &[x, w]);
        same(g, (w, 1), (b, 0));
        let sum = op(g, "add", &[product, b]);
        vec![op(g, "relu", &[sum])]
    });
    assert_eq!(steps(&plan), ["Matmul k0_matmul_add_relu"]);
    let Step::Matmul(matmul) = &plan.steps[0] else { panic!("a matmul") };
    assert!(matmul.lib.bias.is_some() && matmul.lib.relu && matmul.lib.rest.is_none());
}

/// A kernel of ours reads rows of the left operand while others are written already.
#[test]
fn a_product_is_not_written_over_what_it_multiplies() {
    let plan = plan(|g| {
        let (x, w) = (g.input("x", DType::BF16, 2), g.input("w", DType::BF16, 2));
        same(g, (x, 1), (w, 0));
        same(g, (w, 0), (w, 1));
        let rows = axis(g, "softmax", x, -1);
        let product = op(g, "matmul", &[rows, w]);
        let exp = op(g, "exp", &[product]);
        vec![op(g, "mul", &[rows, exp])]
    });
    let Some(Step::Matmul(matmul)) = plan.steps.last() else { panic!("a matmul") };
    let out = &plan.bufs[plan.outs[0].buf.0 as usize];
    assert_eq!(out.donor, Some(matmul.lib.product.buf));
}

/// Products of `x` with weights of equal extents.
fn products_of(g: &mut Graph, dtype: DType, count: usize) -> Vec<Val> {
    let x = g.input("x", dtype, 2);
    let weights: Vec<Val> = (0..count).map(|n| g.input(&format!("w{n}"), dtype, 2)).collect();
    weights[1..].iter().for_each(|&w| {
        same(g, (w, 0), (weights[0], 0));
        same(g, (w, 1), (weights[0], 1));
    });
    weights.iter().map(|&w| op(g, "matmul", &[x, w])).collect()
}

/// The numbers of the products that one kernel may make, and how much it stores.
fn together(plan: &Plan) -> Vec<(u32, u32, usize)> {
    plan.products.iter().map(|p| (p.first, p.count, p.program.stores.len())).collect()
}

#[test]
fn products_of_one_left_operand_may_be_one_kernel() {
    let plan = plan(|g| products_of(g, F32, 3));
    assert_eq!(steps(&plan), ["Matmul k0_matmul", "Matmul k1_matmul", "Matmul k2_matmul"]);
    assert_eq!(together(&plan), [(0, 3, 3)]);
    assert_eq!((plan.launches(), plan.launches_where_together()), (3, 1));
    assert_eq!(plan.products[0].program.name, "k0_products");
}

#[test]
fn a_kernel_makes_at_most_four_products() {
    let plan = plan(|g| products_of(g, F32, 6));
    assert_eq!(together(&plan), [(0, 4, 4), (4, 2, 2)]);
}

/// `silu(x @ gate) * (x @ up)`, with the gate as a result too.
fn gated(dtype: DType, gate_is_kept: bool) -> Plan {
    plan(|g| {
        let products = products_of(g, dtype, 2);
        let gate = op(g, "silu", &[products[0]]);
        let out = op(g, "mul", &[gate, products[1]]);
        if gate_is_kept { vec![gate, out] } else { vec![out] }
    })
}

#[test]
fn a_gate_is_in_no_memory() {
    for dtype in [F32, DType::BF16] {
        let plan = gated(dtype, false);
        assert_eq!(together(&plan), [(0, 2, 1)], "{}", crate::plan::print::plan(&plan));
        assert_eq!(plan.launches_where_together(), 1);
        let product = |n: u32| plan.products[0].program.stmts.iter().any(|s| s.expr == Expr::Product(n));
        assert!(product(0) && product(1) && !product(2));
        assert_eq!(together(&gated(dtype, true)), [(0, 2, 2)]);
    }
}

/// What a kernel has at hand has the bits that memory would hold.
#[test]
fn a_gate_of_halves_is_rounded_in_registers() {
    let program = gated(DType::BF16, false).products.remove(0).program;
    let is_gate = |s: &&crate::plan::Stmt| matches!(&s.expr, Expr::Apply(op, _) if op.name == "mul");
    let last = program.stmts.iter().rfind(is_gate).expect("the gate is multiplied");
    for operand in last.expr.operands() {
        let stmt = program.stmt(operand);
        assert!(stmt.dtype == DType::BF16 && stmt.round, "{stmt:?}");
    }
}

#[test]
fn a_product_of_what_another_makes_stays_apart() {
    let plan = plan(|g| {
        let x = g.input("x", F32, 2);
        same(g, (x, 0), (x, 1));
        let square = op(g, "matmul", &[x, x]);
        vec![op(g, "matmul", &[x, square])]
    });
    assert_eq!(together(&plan), [], "{}", crate::plan::print::plan(&plan));
}

#[test]
fn products_of_other_extents_stay_apart() {
    let plan = plan(|g| {
        let [x, v, w] = ["x", "v", "w"].map(|name| g.input(name, F32, 2));
        same(g, (v, 0), (w, 0));
        vec![op(g, "matmul", &[x, v]), op(g, "matmul", &[x, w])]
    });
    assert_eq!(together(&plan), []);
}

#[test]
fn products_come_together_over_what_stands_between() {
    let plan = plan(|g| {
        let y = g.input("y", F32, 2);
        let mut all = products_of(g, F32, 2);
        // The second one comes behind rows in the program.
        let (last, node) = (all.pop().unwrap(), g.nodes.pop().unwrap());
        let rows = axis(g, "softmax", y, -1);
        let moved = Val { node: g.nodes.len() as u32, ..last };
        g.nodes.push(node);
        vec![all[0], rows, moved]
    });
    assert_eq!(steps(&plan), ["Matmul k0_matmul", "Matmul k1_matmul", "Row k2_max_sub_exp_sum"]);
    assert_eq!(together(&plan), [(0, 2, 2)]);
}

/// The steps of each launch of several small kernels.
fn small_launches(plan: &Plan) -> Vec<(u32, u32, &str)> {
    plan.small.iter().map(|small| (small.first, small.count, small.name.as_str())).collect()
}

#[test]
fn maps_over_domains_of_their_own_may_be_one_launch() {
    let plan = plan(|g| {
        (0..5)
            .map(|n| g.input(&format!("x{n}"), F32, 1 + n % 2))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|x| op(g, "relu", &[x]))
            .collect()
    });
    assert_eq!(plan.steps.len(), 5);
    assert_eq!(small_launches(&plan), [(0, 5, "k0_small")]);
    assert_eq!((plan.launches(), plan.launches_where_together()), (5, 1));
}

#[test]
fn a_launch_has_room_for_so_many_arguments() {
    let plan = plan(|g| {
        (0..40)
            .map(|n| g.input(&format!("x{n}"), F32, 1))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|x| op(g, "relu", &[x]))
            .collect()
    });
    assert_eq!(small_launches(&plan), [(0, 32, "k0_small"), (32, 8, "k32_small")]);
}

/// A temporary that dies in a map may be read by another one of its launch, which would find it overwritten.
#[test]
fn no_map_writes_over_what_one_beside_it_reads() {
    let plan = plan(|g| {
        let (x, y) = (g.input("x", F32, 2), g.input("y", F32, 2));
        let product = op(g, "matmul", &[x, y]);
        let sums = g.push(Op::named("cumsum"), &[product], vec![Attr::Int(-1)]);
        let turned = g.push(Op::named("flip"), &[sums], vec![Attr::Ints(vec![0])]);
        let part = g.push(
            Op::named("slice"),
            &[turned],
            vec![Attr::Int(0), Attr::Dim(Dim::Const(0)), Attr::Dim(Dim::Const(3))],
        );
        vec![op(g, "tanh", &[part]), op(g, "exp", &[sums])]
    });
    assert_eq!(small_launches(&plan).len(), 1, "{}", crate::plan::print::plan(&plan));
    let maps = plan.small[0].steps(&plan);
    let stores = maps.clone().flat_map(|kernel| &kernel.stores);
    assert_eq!((maps.len(), stores.clone().count()), (2, 2));
    assert!(stores.into_iter().all(|store| plan.bufs[store.to.buf.0 as usize].donor.is_none()));
}

/// The gradients of a product behind an activation: that of the weight is the last to read what was kept for it.
#[test]
fn a_product_that_frees_memory_runs_before_one_that_takes_it() {
    let plan = plan(|g| {
        let [x, up, down, slope] = ["x", "up", "down", "slope"].map(|name| g.input(name, F32, 2));
        let product = op(g, "matmul", &[x, up]);
        let hidden = op(g, "relu", &[product]);
        let out = op(g, "matmul", &[hidden, down]);
        let [turned, hidden] = [down, hidden].map(|x| op(g, "t", &[x]));
        let of_hidden = op(g, "matmul", &[slope, turned]);
        let of_down = op(g, "matmul", &[hidden, slope]);
        let bent = op(g, "tanh", &[of_hidden]);
        let of_up = op(g, "matmul", &[bent, up]);
        vec![out, of_up, of_down]
    });
    let all = steps(&plan);
    let taken = all.iter().position(|step| step.contains("tanh")).expect("the gradient of `hidden` goes through tanh");
    let freed = plan.bufs[plan.outs[2].buf.0 as usize].live.0 as usize;
    assert_eq!(freed + 1, taken, "{all:?}");
}

#[test]
fn a_half_product_rounds_before_its_bias() {
    let plan = plan(|g| {
        let (x, w, b) = (g.input("x", DType::BF16, 2), g.input("w", DType::BF16, 2), g.input("b", DType::BF16, 1));
        same(g, (w, 1), (b, 0));
        let product = op(g, "matmul", &[x, w]);
        vec![op(g, "add", &[product, b])]
    });
    let Step::Matmul(matmul) = &plan.steps[0] else { panic!("a matmul") };
    assert!(matmul.lib.bias.is_none() && matmul.lib.rest.is_some());
}

#[test]
fn what_follows_a_product_of_the_library_is_done_in_its_place() {
    let plan = plan(|g| {
        let (x, w) = (g.input("x", DType::BF16, 2), g.input("w", DType::BF16, 2));
        same(g, (x, 1), (w, 0));
        let product = op(g, "matmul", &[x, w]);
        let exp = op(g, "exp", &[product]);
        vec![op(g, "relu", &[exp])]
    });
    let Step::Matmul(matmul) = &plan.steps[0] else { panic!("a matmul") };
    let out = &plan.bufs[plan.outs[0].buf.0 as usize];
    assert!(matmul.lib.rest.is_some());
    assert_eq!(out.donor, Some(matmul.lib.product.buf));
}

/// What is saved of `gelu(x @ w)` in bf16 is the product, and not the slope of the gelu, which has twice the bytes.
#[test]
fn a_product_of_halves_is_stored_rather_than_floats_made_of_it() {
    let plan = plan(|g| {
        let [x, w, other] = ["x", "w", "other"].map(|name| g.input(name, DType::BF16, 2));
        same(g, (x, 1), (w, 0));
        same(g, (x, 0), (other, 0));
        same(g, (w, 1), (other, 1));
        let product = op(g, "matmul", &[x, w]);
        let wide = g.push(Op::named("cast"), &[product], vec![Attr::DType(F32)]);
        let (erf, exp) = (op(g, "erf", &[wide]), op(g, "exp", &[wide]));
        let bent = op(g, "mul", &[erf, exp]);
        let slope = op(g, "tanh", &[bent]);
        let next = op(g, "matmul", &[other, product]);
        let read = g.push(Op::named("cast"), &[next], vec![Attr::DType(F32)]);
        let scaled = op(g, "mul", &[slope, read]);
        vec![op(g, "gelu", &[product]), scaled]
    });
    let mut kept = plan.bufs.iter().filter(|buf| buf.class == crate::plan::BufClass::Temp);
    assert!(kept.clone().count() > 0 && kept.all(|buf| buf.ty.dtype == DType::BF16), "{:?}", plan.bufs);
}

#[test]
fn a_product_is_stored_in_the_order_its_reader_wants() {
    let plan = plan(|g| {
        let (p, v) = (g.input("p", F32, 4), g.input("v", F32, 4));
        let product = op(g, "matmul", &[p, v]);
        let heads_last = g.push(Op::named("permute"), &[product], vec![Attr::Ints(vec![0, 2, 1, 3])]);
        let dims = g.ty(heads_last).dims.clone();
        let merged = vec![dims[0].clone(), dims[1].clone(), Dim::mul(dims[2].clone(), dims[3].clone())];
        vec![g.push(Op::named("reshape"), &[heads_last], vec![Attr::Dims(merged)])]
    });
    assert_eq!((plan.steps.len(), plan.launches()), (1, 1), "{:?}", steps(&plan));
}

#[test]
fn scores_are_scaled_by_the_softmax_that_reads_them() {
    let plan = plan(|g| {
        let (q, k, v) = (g.input("q", F32, 4), g.input("k", F32, 4), g.input("v", F32, 4));
        vec![g.push(Op::named("scaled_dot_product_attention"), &[q, k, v], vec![Attr::Bool(false)])]
    });
    assert_eq!(plan.launches(), 3, "{:?}", steps(&plan));
}

/// The plans of attention over the same batches, as one op and written out, under a mask or not; `keep` says which of the
/// scores and weights are results too.
fn attention_plan(composite: bool, keep: [bool; 2]) -> Plan {
    plan(|g| {
        let (q, k, v) = (g.input("q", F32, 3), g.input("k", F32, 3), g.input("v", F32, 3));
        [k, v].into_iter().for_each(|x| same(g, (q, 0), (x, 0)));
        if composite {
            return vec![g.push(Op::named("scaled_dot_product_attention"), &[q, k, v], vec![Attr::Bool(true)])];
        }
        let turned = g.push(Op::named("transpose"), &[k], vec![Attr::Int(-2), Attr::Int(-1)]);
        let scores = op(g, "matmul", &[q, turned]);
        let weights = axis(g, "softmax", scores, -1);
        let out = op(g, "matmul", &[weights, v]);
        let kept = [scores, weights].into_iter().zip(keep).filter_map(|(val, keep)| keep.then_some(val));
        [out].into_iter().chain(kept).collect()
    })
}

#[test]
fn attention_is_found_as_one_op_and_written_out() {
    for composite in [true, false] {
        let plan = attention_plan(composite, [false, false]);
        assert_eq!((plan.attention.len(), plan.steps.len()), (1, 3), "{:?}", steps(&plan));
        crate::plan::verify::verify(&plan);
    }
}

#[test]
fn a_matrix_that_is_wanted_in_full_is_made_in_full() {
    for keep in [[true, false], [false, true]] {
        assert_eq!(attention_plan(false, keep).attention, []);
    }
}

#[test]
fn a_residual_is_added_by_the_norm_that_reads_it() {
    let plan = plan(|g| {
        let (x, w, b, r) = (g.input("x", F32, 2), g.input("w", F32, 2), g.input("b", F32, 1), g.input("r", F32, 2));
        let (scale, shift, eps) = (g.input("g", F32, 1), g.input("be", F32, 1), float(g, 1e-5, DType::F64));
        same(g, (x, 0), (r, 0));
        same(g, (w, 0), (r, 1));
        same(g, (b, 0), (r, 1));
        let linear = op(g, "linear", &[x, w, b]);
        let sum = op(g, "add", &[linear, r]);
        vec![sum, op(g, "layer_norm", &[sum, scale, shift, eps])]
    });
    assert_eq!(plan.launches(), 2, "{:?}", steps(&plan));
}

#[test]
fn an_epilogue_that_no_row_reads_stays_with_its_product() {
    let plan = plan(|g| {
        let (x, w) = (g.input("x", F32, 2), g.input("w", F32, 2));
        let product = op(g, "matmul", &[x, w]);
        vec![op(g, "gelu", &[product])]
    });
    assert_eq!((plan.steps.len(), plan.launches()), (1, 2), "{:?}", steps(&plan));
}

#[test]
fn whole_tensor_sums_do_not_feed_points_of_the_same_kernel() {
    let plan = plan(|g| {
        let x = g.input("x", F32, 2);
        let total = op(g, "sum_all", &[x]);
        vec![op(g, "div", &[x, total])]
    });
    assert_eq!(steps(&plan), ["Row k0_sum", "Map k1_div"]);
}

#[test]
fn column_sum_of_squares_is_one_kernel() {
    let plan = plan(|g| {
        let x = g.input("x", F32, 2);
        let square = op(g, "mul", &[x, x]);
        vec![axis(g, "sum", square, 0)]
    });
    assert_eq!(steps(&plan), ["Column k0_mul_sum"]);
}

#[test]
fn a_transpose_costs_no_kernel() {
    let plan = plan(|g| {
        let (x, y) = (g.input("x", F32, 2), g.input("y", F32, 2));
        let turned = g.push(Op::named("t"), &[x], vec![]);
        vec![op(g, "add", &[turned, y])]
    });
    assert_eq!(steps(&plan), ["Map k0_add"]);
}

#[test]
fn results_do_not_alias_inputs_or_each_other() {
    let plan = plan(|g| {
        let x = g.input("x", F32, 1);
        let y = op(g, "neg", &[x]);
        vec![x, y, y]
    });
    let bufs: std::collections::BTreeSet<_> = plan.outs.iter().map(|o| o.buf).collect();
    assert_eq!(bufs.len(), 3);
    assert!(plan.outs.iter().all(|o| !matches!(plan.bufs[o.buf.0 as usize].class, crate::plan::BufClass::In(_))));
}

#[test]
fn a_guess_lets_the_bias_join_the_matmul() {
    let mut graph = Graph::new("test");
    let (x, w, b) = (graph.input("x", F32, 2), graph.input("w", F32, 2), graph.input("b", F32, 1));
    let product = op(&mut graph, "matmul", &[x, w]);
    graph.outs = vec![op(&mut graph, "add", &[product, b])];
    let run = |graph: Graph| super::run(&crate::optimise::run(graph, Default::default()), Options::default());
    let guessed = run(crate::optimise::assume(&graph).expect("the bias may broadcast"));
    assert_eq!(steps(&guessed), ["Matmul s0_matmul_add"]);
    assert_eq!(guessed.guards.len(), 1);
    assert_eq!(steps(&run(graph)), ["Matmul k0_matmul", "Map k1_add"]);
}

#[test]
fn what_all_rows_reduce_to_is_read_by_a_later_kernel() {
    let plan = plan(|g| {
        let x = g.input("x", F32, 3);
        let means = axis(g, "mean", x, 2);
        vec![op(g, "var_all", &[means])]
    });
    let kernels = plan.steps.iter().map(|step| if let Step::Kernel(k) = step { k } else { panic!("{step:?}") });
    for kernel in kernels {
        let late = |id: &crate::plan::StmtId| kernel.stmts[id.0 as usize].level == Level::All;
        for stmt in kernel.stmts.iter().filter(|stmt| stmt.level != Level::All) {
            if let Expr::Apply(_, args) = &stmt.expr {
                assert!(!args.iter().any(late), "{} reads what is known after its last row", kernel.name);
            }
        }
    }
}

#[test]
fn a_gather_under_a_reshape_is_stored() {
    let plan = plan(|g| {
        let (x, index) = (g.input("x", F32, 2), g.input("index", DType::I64, 1));
        let rows = g.push(Op::named("index_select"), &[x, index], vec![Attr::Int(0)]);
        let count = g.ty(rows).numel();
        let flat = g.push(Op::named("reshape"), &[rows], vec![Attr::Dims(vec![count])]);
        vec![op(g, "neg", &[flat])]
    });
    let gathered = plan.steps.iter().filter_map(|step| if let Step::Kernel(k) = step { Some(k) } else { None });
    let mut leaves = gathered.flat_map(|k| &k.leaves).filter(|leaf| leaf.indexed.is_some());
    assert!(leaves.all(|leaf| !leaf.views.iter().any(|view| matches!(view, View::Reshape(_)))));
}

/// Products of heads, turned and joined along the last axis, are written to their parts of it; one that is joined twice is copied.
#[test]
fn products_are_written_where_they_are_joined() {
    let joined = |twice: bool| {
        plan(|g| {
            let [x, y, z] = ["x", "y", "z"].map(|name| g.input(name, F32, 4));
            (0..3).for_each(|axis| same(g, (y, axis), (z, axis)));
            let heads = |g: &mut Graph, a: Val, b: Val| {
                let turned = g.push(Op::named("transpose"), &[b], vec![Attr::Int(-2), Attr::Int(-1)]);
                let product = op(g, "matmul", &[a, turned]);
                let by_rows = g.push(Op::named("permute"), &[product], vec![Attr::Ints(vec![0, 2, 1, 3])]);
                let ty = g.ty(by_rows).clone();
                let wide = Dim::mul(ty.dims[2].clone(), ty.dims[3].clone());
                g.push(
                    Op::named("reshape"),
                    &[by_rows],
                    vec![Attr::Dims(vec![ty.dims[0].clone(), ty.dims[1].clone(), wide])],
                )
            };
            let first = heads(g, x, y);
            let second = if twice { first } else { heads(g, x, z) };
            vec![g.push(Op::named("cat"), &[first, second], vec![Attr::Int(2)])]
        })
    };
    let once = joined(false);
    assert_eq!(steps(&once), ["Matmul k0_matmul", "Matmul k1_matmul"]);
    for step in &once.steps {
        let Step::Matmul(matmul) = step else { panic!("{step:?}") };
        let to = &matmul.lib.product;
        assert!(to.buf == once.outs[0].buf && matches!(to.views[0], View::Slice { axis: 2, .. }), "{to:?}");
        assert_eq!(matmul.epilogue.stores[0].to, *to);
    }
    assert_eq!(steps(&joined(true)).len(), 3);
}

/// Where parts have other extents rows could begin at odd addresses, and a library writes no columns.
#[test]
fn what_would_be_slower_for_it_is_copied_where_it_is_joined() {
    let of_products = |turned: bool| {
        plan(|g| {
            let [x, w, y] = ["x", "w", "y"].map(|name| g.input(name, F32, 2));
            let product = op(g, "matmul", &[x, w]);
            let mut parts = [product, y];
            if turned {
                let other = op(g, "matmul", &[w, w]);
                same(g, (x, 0), (w, 0));
                parts = [product, other]
                    .map(|part| g.push(Op::named("transpose"), &[part], vec![Attr::Int(0), Attr::Int(1)]));
            }
            vec![g.push(Op::named("cat"), &parts, vec![Attr::Int(1)])]
        })
    };
    for turned in [false, true] {
        let steps = steps(&of_products(turned));
        assert_eq!(steps.iter().filter(|step| step.contains("copy")).count(), 2, "{steps:?}");
    }
}

/// A plan that writes rows into caches, each at the positions of an input with this number, and of a first one looked up in a table;
/// for each write whether a GPU may do it in place.
fn writes(places: &[usize], looked_up: Option<usize>) -> Vec<bool> {
    let plan = plan(|g| {
        let caches = places.iter().map(|_| g.input("cache", F32, 2)).collect::<Vec<_>>();
        let (rows, table) = (g.input("rows", F32, 2), g.input("table", F32, 2));
        let index = [(); 2].map(|()| g.input("place", DType::I64, 1));
        caches.iter().for_each(|cache| same(g, (*cache, 0), (table, 0)));
        let looked_up = looked_up.map(|place| {
            let row = axis_with(g, "index_select", &[table, index[place]], 0);
            g.push(Op::named("cumsum"), &[row], vec![Attr::Int(1)])
        });
        let copies = caches
            .iter()
            .zip(places)
            .map(|(cache, place)| axis_with(g, "index_copy_", &[*cache, index[*place], rows], 0));
        looked_up.into_iter().chain(copies.collect::<Vec<_>>()).collect()
    });
    assert!(plan.writes.iter().all(
        |write| matches!(&plan.steps[write.copy as usize + 1], Step::Kernel(kernel) if kernel.heeds == write.on_gpu)
    ));
    plan.writes.iter().map(|write| write.on_gpu).collect()
}

fn axis_with(g: &mut Graph, name: &str, args: &[Val], axis: i64) -> Val {
    g.push(Op::named(name), args, vec![Attr::Int(axis)])
}

#[test]
fn rows_are_written_in_place_where_nothing_behind_finds_another_fault() {
    assert_eq!(writes(&[0, 0], None), [true, true]);
    // The second write looks at positions that the first has not seen.
    assert_eq!(writes(&[0, 1], None), [false, true]);
    assert_eq!(writes(&[0, 1], Some(1)), [true, true]);
    assert_eq!(writes(&[0, 0], Some(1)), [true, true]);
}

#[test]
fn what_is_read_behind_a_write_is_copied_first() {
    let plan = plan(|g| {
        let (cache, row, other) = (g.input("cache", F32, 2), g.input("row", F32, 2), g.input("other", F32, 2));
        let range = [Attr::Int(0), Attr::Dim(Dim::Const(3)), Attr::Dim(Dim::Const(4))].to_vec();
        let written = g.push(Op::named("slice_assign"), &[cache, row], range.clone());
        let sums = g.push(Op::named("cumsum"), &[cache], vec![Attr::Int(0)]);
        vec![written, sums, g.push(Op::named("slice_assign"), &[other, row], range)]
    });
    let names: Vec<&str> = plan.writes.iter().map(|write| plan.bufs[write.from.0 as usize].name.as_str()).collect();
    assert_eq!(names, ["other"], "{}", crate::plan::print::plan(&plan));
}

/// The sum over the first axis of a value that is repeated along the last.
fn sum_of_repeated(make: impl FnOnce(&mut Graph, Val) -> Val) -> Vec<String> {
    steps(&plan(|g| {
        let x = g.input("x", F32, 3);
        let x = make(g, x);
        let repeats = [1, 1, 2].map(Dim::Const).to_vec();
        let repeated = g.push(Op::named("repeat"), &[x], vec![Attr::Dims(repeats)]);
        vec![axis(g, "sum", repeated, 0)]
    }))
}

#[test]
fn what_a_reshape_merges_with_its_repetition_lies_in_memory() {
    let positions = sum_of_repeated(|g, x| g.push(Op::named("triu"), &[x], vec![Attr::Int(1)]));
    assert_eq!(positions, ["Map k0_add_ge_where_cond", "Column k1_sum"]);
    assert_eq!(sum_of_repeated(|g, x| op(g, "neg", &[x])), ["Map k0_neg", "Column k1_sum"]);
}

#[test]
fn what_repeats_along_all_that_a_reshape_merges_is_read_in_place() {
    let plan = plan(|g| {
        let (x, bias) = (g.input("x", F32, 3), g.input("bias", F32, 1));
        same(g, (x, 2), (bias, 0));
        let sum = op(g, "add", &[x, bias]);
        let [b, s, d] = [0, 1, 2].map(|k| g.ty(x).dims[k].clone());
        let rows = g.push(Op::named("reshape"), &[sum], vec![Attr::Dims(vec![Dim::mul(b, s), d])]);
        vec![axis(g, "sum", rows, -1)]
    });
    assert_eq!(steps(&plan), ["Row k0_add_sum"]);
}
