//! Branches: paths, selects, and branches of the host.

use super::{check, check_graphs};
use expect_test::expect;

#[test]
fn a_host_branch_gives_two_graphs() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, training: bool) -> Tensor<f32, 1> {
            let mut y = x * 2.0;
            if training {
                y = y.relu();
            }
            y + 1.0
        }"#,
        expect![[r#"
            if training {
                [__t3] = graph f(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[] = constant(Float(2.0), f32)
                  | %2: f32[x.0] = mul(%0, %1)  // y
                  | %3: f32[x.0] = relu(%2)  // y
                  | %4: f32[] = constant(Float(1.0), f32)
                  | %5: f32[x.0] = add(%3, %4)
                  | out %5
                => __t3
            } else {
                [__t2] = graph f_1(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[] = constant(Float(2.0), f32)
                  | %2: f32[x.0] = mul(%0, %1)  // y
                  | %3: f32[] = constant(Float(1.0), f32)
                  | %4: f32[x.0] = add(%2, %3)
                  | out %4
                => __t2
            } 
        "#]],
    );
}

#[test]
fn a_match_gives_a_graph_for_each_arm() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, act: Act) -> Tensor<f32, 1> {
            let y = match act {
                Act::Relu => x.relu(),
                Act::Gelu => x.gelu(),
            };
            y.exp()
        }"#,
        expect![[r#"
            match act { Act :: Relu => {
                [__t2] = graph f(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[x.0] = relu(%0)  // y
                  | %2: f32[x.0] = exp(%1)
                  | out %2
                => __t2
            } Act :: Gelu => {
                [__t2] = graph f_1(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[x.0] = gelu(%0)  // y
                  | %2: f32[x.0] = exp(%1)
                  | out %2
                => __t2
            } } 
        "#]],
    );
}

#[test]
fn an_optional_tensor_is_matched() {
    check(
        r#"fn f(x: &Tensor<f32, 2>, bias: Option<&Tensor<f32, 1>>) -> Tensor<f32, 2> {
            let mut y = x.exp();
            if let Some(b) = bias {
                y = y + b;
            }
            y
        }"#,
        expect![[r#"
            if let Some (b) = bias {
                [__t3] = graph f(x, b)
                  | %0: f32[x.0, x.1] = input(0)  // x
                  | %1: f32[x.0, x.1] = exp(%0)  // y
                  | %2: f32[b.0] = input(1)  // b
                  | %3: f32[x.0, broadcast(x.1, b.0)] = add(%1, %2)  // y
                  | check %3: x.1 broadcasts with b.0
                  | out %3
                => __t3
            } else {
                [__t1] = graph f_1(x)
                  | %0: f32[x.0, x.1] = input(0)  // x
                  | %1: f32[x.0, x.1] = exp(%0)  // y
                  | out %1
                => __t1
            } 
        "#]],
    );
}

#[test]
fn an_early_return_is_a_path() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
            let y = x.exp();
            if n == 0 {
                return y;
            }
            y * 2.0
        }"#,
        expect![[r#"
            if n == 0 {
                [__t1] = graph f(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[x.0] = exp(%0)  // y
                  | out %1
                => __t1
            } else {
                [__t2] = graph f_1(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[x.0] = exp(%0)  // y
                  | %2: f32[] = constant(Float(2.0), f32)
                  | %3: f32[x.0] = mul(%1, %2)
                  | out %3
                => __t2
            } 
        "#]],
    );
}

#[test]
fn short_circuits_do_not_run_what_they_guard() {
    check(
        r#"fn f(a: &Tensor<f32, 1>, b: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let x = a * 0.5 + 1.0;
            let b2 = if b.sum_all().item() < 0.0 { println!("neg"); -b } else { b.clone() };
            let ok = b.max_all().item() > 9.0 && noisy(b);
            if ok { x } else { x * b2 }
        }"#,
        expect![[r#"
            [x, __t4] = graph f(a, b)
              | %0: f32[a.0] = input(0)  // a
              | %1: f32[] = constant(Float(0.5), f32)
              | %2: f32[a.0] = mul(%0, %1)
              | %3: f32[] = constant(Float(1.0), f32)
              | %4: f32[a.0] = add(%2, %3)  // x
              | %5: f32[b.0] = input(1)  // b
              | %6: f32[] = sum_all(%5)
              | out %4, %6
            if __t4 . item () < 0.0 {
                println ! ("neg") ;
                [b2, __t6] = graph f_1(b)
                  | %0: f32[b.0] = input(0)  // b
                  | %1: f32[b.0] = neg(%0)  // b2
                  | %2: f32[] = max_all(%0)
                  | check %2: max(1, b.0) = b.0
                  | out %1, %2
                let ok = __t6 . item () > 9.0 && noisy (b) ;
                if ok {
                    => x . clone ()
                } else {
                    [__t7] = graph f_2(x, b2)
                      | %0: f32[a.0] = input(0)  // x
                      | %1: f32[b.0] = input(1)  // b2
                      | %2: f32[broadcast(a.0, b.0)] = mul(%0, %1)
                      | check %2: a.0 broadcasts with b.0
                      | out %2
                    => __t7
                } 
            } else {
                [__t5] = graph f_3(b)
                  | %0: f32[b.0] = input(0)  // b
                  | %1: f32[] = max_all(%0)
                  | check %1: max(1, b.0) = b.0
                  | out %1
                let ok = __t5 . item () > 9.0 && noisy (b) ;
                if ok {
                    => x . clone ()
                } else {
                    [__t6] = graph f_4(x, b)
                      | %0: f32[a.0] = input(0)  // x
                      | %1: f32[b.0] = input(1)  // b
                      | %2: f32[broadcast(a.0, b.0)] = mul(%0, %1)
                      | check %2: a.0 broadcasts with b.0
                      | out %2
                    => __t6
                } 
            } 
            break B001 at 3:25: `item` needs the value on the host
            break B001 at 4:22: `item` needs the value on the host
        "#]],
    );
}

#[test]
fn dropout_with_a_host_flag_is_two_paths() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, training: bool) -> Tensor<f32, 1> {
            let y = x.relu().dropout(0.1, training);
            y * 2.0
        }"#,
        expect![[r#"
            if training {
                [__t3] = graph f(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[x.0] = relu(%0)
                  | %2: f64[] = constant(Float(0.1), f64)
                  | %3: f32[x.0] = dropout(%1, %2, true)  // y
                  | %4: f32[] = constant(Float(2.0), f32)
                  | %5: f32[x.0] = mul(%3, %4)
                  | out %5
                => __t3
            } else {
                [__t3] = graph f_1(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[x.0] = relu(%0)
                  | %2: f64[] = constant(Float(0.1), f64)
                  | %3: f32[x.0] = dropout(%1, %2, false)  // y
                  | %4: f32[] = constant(Float(2.0), f32)
                  | %5: f32[x.0] = mul(%3, %4)
                  | out %5
                => __t3
            } 
        "#]],
    );
}

#[test]
fn a_cheap_branch_on_data_is_a_select() {
    check(
        "fn f(x: &Tensor<f32, 1>, k: f32) -> Tensor<f32, 1> {
            let y = x * 2.0;
            let mut z = x.exp();
            let w = if y.mean_all().item() > k { z = z + 1.0; y.relu() } else { -&y };
            w * z
        }",
        expect![[r#"
            __s1: f32 = k
            [__t10] = graph f(x, __s1)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[] = constant(Float(2.0), f32)
              | %2: f32[x.0] = mul(%0, %1)  // y
              | %3: f32[x.0] = exp(%0)  // z
              | %4: f32[] = mean_all(%2)
              | %5: f32[] = scalar(0)
              | %6: bool[] = gt(%4, %5)
              | %7: f32[] = constant(Float(1.0), f32)
              | %8: f32[x.0] = add(%3, %7)  // z
              | %9: f32[x.0] = relu(%2)
              | %10: f32[x.0] = neg(%2)
              | %11: f32[x.0] = where_cond(%6, %9, %10)  // w
              | %12: f32[x.0] = where_cond(%6, %8, %3)
              | %13: f32[x.0] = mul(%11, %12)
              | out %13
            => __t10
        "#]],
    );
}

#[test]
fn an_arm_that_may_fail_keeps_the_branch() {
    check(
        "fn f(x: &Tensor<i64, 1>, n: &Tensor<i64, 1>) -> Tensor<i64, 1> {
            if x.sum_all().item() > 0 { x / n } else { x + 1 }
        }",
        expect![[r#"
            [__t2] = graph f(x)
              | %0: i64[x.0] = input(0)  // x
              | %1: i64[] = sum_all(%0)
              | out %1
            if __t2 . item () > 0 {
                [__t3] = graph f_1(x, n)
                  | %0: i64[x.0] = input(0)  // x
                  | %1: i64[n.0] = input(1)  // n
                  | %2: i64[broadcast(x.0, n.0)] = div(%0, %1)
                  | check %2: x.0 broadcasts with n.0
                  | out %2
                => __t3
            } else {
                [__t3] = graph f_2(x)
                  | %0: i64[x.0] = input(0)  // x
                  | %1: i64[] = constant(Int(1), i64)
                  | %2: i64[x.0] = add(%0, %1)
                  | out %2
                => __t3
            } 
            break B001 at 2:16: `item` needs the value on the host
        "#]],
    );
}

#[test]
fn what_never_ends_is_the_last_of_its_path() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
            let y = if n == 0 { x.exp() } else { panic!("no {n}") };
            y * 2.0
        }"#,
        expect![[r#"
            if n == 0 {
                [__t2] = graph f(x)
                  | %0: f32[x.0] = input(0)  // x
                  | %1: f32[x.0] = exp(%0)  // y
                  | %2: f32[] = constant(Float(2.0), f32)
                  | %3: f32[x.0] = mul(%1, %2)
                  | out %3
                => __t2
            } else {
                { panic ! ("no {n}") } ;
            } 
        "#]],
    );
}

#[test]
fn expensive_arms_are_graphs_of_a_branch() {
    check_graphs(
        r#"fn f(#[dims(N, N)] x: &Tensor<f32, 2>, #[dims(N, N)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            let mut y = x.relu();
            let z = if y.mean_all().item() > 0.2 {
                y = y.matmul(w);
                y.softmax(1)
            } else {
                w.matmul(x)
            };
            y + z
        }"#,
        expect![[r#"
            __d0 = x.size(0)
            check x.size(1) = N
            check w.size(0) = N
            check w.size(1) = N
            [mut y, __t4] = graph f(x)
              | %0: f32[N, N] = input(0)  // x
              | %1: f32[N, N] = relu(%0)  // y
              | %2: f32[] = mean_all(%1)
              | %3: f32[] = constant(Float(0.20000000298023224), f32)
              | %4: bool[] = gt(%2, %3)
              | out %1, %4
            [y, __b1] = if __t4 {
                [__t5, __t6] = graph f_1(y, w)
                  | %0: f32[N, N] = input(0)  // y
                  | %1: f32[N, N] = input(1)  // w
                  | %2: f32[N, N] = matmul(%0, %1)  // y
                  | %3: f32[N, N] = softmax(%2, 1)
                  | out %2, %3
            } else {
                [__t5] = graph f_2(w, x)
                  | %0: f32[N, N] = input(0)  // w
                  | %1: f32[N, N] = input(1)  // x
                  | %2: f32[N, N] = matmul(%0, %1)
                  | out %2
            }
            [__t7] = graph f_3(y, __b1)
              | %0: f32[N, N] = input(0)  // y
              | %1: f32[N, N] = input(1)
              | %2: f32[N, N] = add(%0, %1)
              | out %2
            => __t7
            break B001 at 3:21: which arm is taken is known only at run time
        "#]],
    );
}

#[test]
fn an_arm_alone_leaves_variables_as_they_are() {
    check_graphs(
        r#"fn f(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            let mut y = x.matmul(w);
            if y.max_all().item() > 1.0 {
                y = y.softmax(1);
            }
            y.relu()
        }"#,
        expect![[r#"
            [mut y, __t4] = graph f(x, w)
              | %0: f32[x.0, x.1] = input(0)  // x
              | %1: f32[w.0, w.1] = input(1)  // w
              | %2: f32[x.0, w.1] = matmul(%0, %1)  // y
              | %3: f32[] = max_all(%2)
              | %4: f32[] = constant(Float(1.0), f32)
              | %5: bool[] = gt(%3, %4)
              | check %2: x.1 = w.0
              | check %3: max(1, x.0*w.1) = x.0*w.1
              | out %2, %5
            [y] = if __t4 {
                [__t5] = graph f_1(y)
                  | %0: f32[x.0, w.1] = input(0)  // y
                  | %1: f32[x.0, w.1] = softmax(%0, 1)  // y
                  | out %1
            } else {
            }
            [__t6] = graph f_2(y)
              | %0: f32[x.0, w.1] = input(0)  // y
              | %1: f32[x.0, w.1] = relu(%0)
              | out %1
            => __t6
            break B001 at 3:13: which arm is taken is known only at run time
        "#]],
    );
}

#[test]
fn arms_with_effects_or_of_other_types_are_left_to_the_host() {
    let arms = [
        "{ println!(\"one\"); x.softmax(1) } else { x.matmul(x) }",
        "{ x.softmax(1).sum(0) } else { x.sum(0) }",
        "{ x.dropout(0.5, true) } else { x.softmax(1) }",
        "{ return x.softmax(1); } else { x.softmax(0) }",
        "{ x.softmax(1) } else { x.softmax(1).narrow(0, 0, 1) }",
    ];
    for arms in arms {
        let ty = if arms.contains("sum") { 1 } else { 2 };
        let source = format!(
            "fn f(x: &Tensor<f32, 2>) -> Tensor<f32, {ty}> {{ let y: Tensor<f32, {ty}> = if x.max_all().item() > 1.0 {arms}; y }}"
        );
        let captured = super::captured_as(&source, true);
        let on_device = captured.contains("= if ");
        assert_eq!(on_device, arms.contains("sum"), "{captured}");
    }
}
