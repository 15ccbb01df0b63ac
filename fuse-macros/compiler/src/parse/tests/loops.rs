//! Loops, unrolled and not.

use super::check;
use expect_test::expect;

#[test]
fn a_constant_range_is_unrolled() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let mut y = x.clone();
            for i in 0..3 {
                y = y.relu() + 1.0;
            }
            y
        }"#,
        expect![[r#"
            [__t6] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[x.0] = relu(%0)
              | %2: f32[] = constant(Float(1.0), f32)
              | %3: f32[x.0] = add(%1, %2)  // y
              | %4: f32[x.0] = relu(%3)
              | %5: f32[] = constant(Float(1.0), f32)
              | %6: f32[x.0] = add(%4, %5)  // y
              | %7: f32[x.0] = relu(%6)
              | %8: f32[] = constant(Float(1.0), f32)
              | %9: f32[x.0] = add(%7, %8)  // y
              | out %9
            => __t6
        "#]],
    );
}

#[test]
fn a_run_time_loop_stays_a_loop() {
    check(
        r#"fn f(x: &Tensor<f32, 2>, layers: &[Tensor<f32, 2>]) -> Tensor<f32, 2> {
            let mut h = x.relu();
            for w in layers {
                h = h.matmul(w).relu();
            }
            h + 1.0
        }"#,
        expect![[r#"
            [mut h] = graph f(x)
              | %0: f32[x.0, x.1] = input(0)  // x
              | %1: f32[x.0, x.1] = relu(%0)  // h
              | out %1
            for w in layers {
                [__t5] = graph f_1(h, w)
                  | %0: f32[h.0, h.1] = input(0)  // h
                  | %1: f32[w.0, w.1] = input(1)  // w
                  | %2: f32[h.0, w.1] = matmul(%0, %1)
                  | %3: f32[h.0, w.1] = relu(%2)  // h
                  | check %2: h.1 = w.0
                  | out %3
                h = __t5 ;
            } 
            [__t3] = graph f_2(h)
              | %0: f32[h.0, h.1] = input(0)  // h
              | %1: f32[] = constant(Float(1.0), f32)
              | %2: f32[h.0, h.1] = add(%0, %1)
              | out %2
            => __t3
            break B009 at 3:13: how often the loop runs is known only at run time
        "#]],
    );
}

#[test]
fn a_while_loop_reads_its_condition_in_the_loop() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let mut h = x.clone();
            while h.max_all().item() > 1.0 {
                h = h * 0.5;
            }
            h
        }"#,
        expect![[r#"
            let mut h = x . clone () ;
            [__t3] = graph f(h)
              | %0: f32[x.0] = input(0)  // h
              | %1: f32[] = max_all(%0)
              | %2: f32[] = constant(Float(1.0), f32)
              | %3: bool[] = gt(%1, %2)
              | check %1: max(1, x.0) = x.0
              | out %3
            while __t3 {
                [__t2, __t4] = graph f_1(h)
                  | %0: f32[x.0] = input(0)  // h
                  | %1: f32[] = constant(Float(0.5), f32)
                  | %2: f32[x.0] = mul(%0, %1)  // h
                  | %3: f32[] = max_all(%2)
                  | %4: f32[] = constant(Float(1.0), f32)
                  | %5: bool[] = gt(%3, %4)
                  | check %3: max(1, x.0) = x.0
                  | out %2, %5
            } [h]
            => h . clone ()
            break B009 at 3:13: how often the loop runs is known only at run time
        "#]],
    );
}

#[test]
fn a_loop_on_tensor_data_is_two_graphs() {
    check(
        r#"fn f(x: &Tensor<f32, 2>, step: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            let mut y: Tensor<f32, 2> = x.clone();
            let mut n = y.sum_all();
            while y.abs().max_all().item() > 1.0 {
                let smaller = &y * 0.5;
                n = n + smaller.sum_all();
                y = smaller;
            }
            y.gelu() + n
        }"#,
        expect![[r#"
            [mut n] = graph f(x)
              | %0: f32[x.0, x.1] = input(0)  // x
              | %1: f32[] = sum_all(%0)  // n
              | out %1
            let mut y = x . clone () ;
            [__t6] = graph f_1(y)
              | %0: f32[x.0, x.1] = input(0)  // y
              | %1: f32[x.0, x.1] = abs(%0)
              | %2: f32[] = max_all(%1)
              | %3: f32[] = constant(Float(1.0), f32)
              | %4: bool[] = gt(%2, %3)
              | check %2: max(1, x.0*x.1) = x.0*x.1
              | out %4
            while __t6 {
                [__t4, __t6, __t9] = graph f_2(y, n)
                  | %0: f32[x.0, x.1] = input(0)  // y
                  | %1: f32[] = constant(Float(0.5), f32)
                  | %2: f32[x.0, x.1] = mul(%0, %1)  // smaller
                  | %3: f32[] = sum_all(%2)
                  | %4: f32[] = input(1)  // n
                  | %5: f32[] = add(%4, %3)  // n
                  | %6: f32[x.0, x.1] = abs(%2)
                  | %7: f32[] = max_all(%6)
                  | %8: f32[] = constant(Float(1.0), f32)
                  | %9: bool[] = gt(%7, %8)
                  | check %7: max(1, x.0*x.1) = x.0*x.1
                  | out %2, %5, %9
            } [y, n]
            [__t7] = graph f_3(y, n)
              | %0: f32[x.0, x.1] = input(0)  // y
              | %1: f32[x.0, x.1] = gelu(%0)
              | %2: f32[] = input(1)  // n
              | %3: f32[x.0, x.1] = add(%1, %2)
              | out %3
            => __t7
            break B009 at 4:13: how often the loop runs is known only at run time
        "#]],
    );
}

#[test]
fn a_flag_of_the_device_keeps_a_loop_going() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let mut y: Tensor<f32, 1> = x.clone();
            while !y.max_all().lt(1.0).item() {
                y = y * 0.5;
            }
            y
        }"#,
        expect![[r#"
            let mut y = x . clone () ;
            [__t4] = graph f(y)
              | %0: f32[x.0] = input(0)  // y
              | %1: f32[] = max_all(%0)
              | %2: f32[] = constant(Float(1.0), f32)
              | %3: bool[] = lt(%1, %2)
              | %4: bool[] = logical_not(%3)
              | check %1: max(1, x.0) = x.0
              | out %4
            while __t4 {
                [__t2, __t5] = graph f_1(y)
                  | %0: f32[x.0] = input(0)  // y
                  | %1: f32[] = constant(Float(0.5), f32)
                  | %2: f32[x.0] = mul(%0, %1)  // y
                  | %3: f32[] = max_all(%2)
                  | %4: f32[] = constant(Float(1.0), f32)
                  | %5: bool[] = lt(%3, %4)
                  | %6: bool[] = logical_not(%5)
                  | check %3: max(1, x.0) = x.0
                  | out %2, %6
            } [y]
            => y . clone ()
            break B009 at 3:13: how often the loop runs is known only at run time
        "#]],
    );
}

#[test]
fn a_loop_that_does_more_than_give_tensors_new_values_stays_one() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let mut y: Tensor<f32, 1> = x.clone();
            let mut turns = 0;
            while y.max_all().item() > 1.0 {
                y = y * 0.5;
                turns += 1;
            }
            y
        }"#,
        expect![[r#"
            let mut turns = 0 ;
            let mut y = x . clone () ;
            loop {
                [__t3] = graph f(y)
                  | %0: f32[y.0] = input(0)  // y
                  | %1: f32[] = max_all(%0)
                  | check %1: max(1, y.0) = y.0
                  | out %1
                if __t3 . item () > 1.0 {
                    turns += 1 ;
                    [__t4] = graph f_1(y)
                      | %0: f32[y.0] = input(0)  // y
                      | %1: f32[] = constant(Float(0.5), f32)
                      | %2: f32[y.0] = mul(%0, %1)  // y
                      | out %2
                    y = __t4 ;
                } else {
                    { break ; } ;
                } 
            } 
            => y . clone ()
            break B009 at 4:13: how often the loop runs is known only at run time
            break B001 at 4:19: `item` needs the value on the host
        "#]],
    );
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let mut y: Tensor<f32, 1> = x.clone();
            while y.max_all().item() > 1.0 {
                y = y.narrow(0, 0, 2);
            }
            y
        }"#,
        expect![[r#"
            let mut y = x . clone () ;
            loop {
                [__t3] = graph f(y)
                  | %0: f32[y.0] = input(0)  // y
                  | %1: f32[] = max_all(%0)
                  | check %1: max(1, y.0) = y.0
                  | out %1
                if __t3 . item () > 1.0 {
                    [__t4] = graph f_1(y)
                      | %0: f32[y.0] = input(0)  // y
                      | %1: f32[2] = narrow(%0, 0, 0, 2)  // y
                      | check %1: max(2, y.0) = y.0
                      | out %1
                    y = __t4 ;
                } else {
                    { break ; } ;
                } 
            } 
            => y . clone ()
            break B009 at 3:13: how often the loop runs is known only at run time
            break B001 at 3:19: `item` needs the value on the host
        "#]],
    );
}
