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
            loop {
                [__t3] = graph f(h)
                  | %0: f32[h.0] = input(0)  // h
                  | %1: f32[] = max_all(%0)
                  | check %1: max(1, h.0) = h.0
                  | out %1
                if __t3 . item () > 1.0 {
                    [__t4] = graph f_1(h)
                      | %0: f32[h.0] = input(0)  // h
                      | %1: f32[] = constant(Float(0.5), f32)
                      | %2: f32[h.0] = mul(%0, %1)  // h
                      | out %2
                    h = __t4 ;
                } else {
                    { break ; } ;
                } 
            } 
            => h . clone ()
            break B009 at 3:13: how often the loop runs is known only at run time
            break B001 at 3:19: `item` needs the value on the host
        "#]],
    );
}
