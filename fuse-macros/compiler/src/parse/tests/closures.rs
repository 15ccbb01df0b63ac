//! Closures of `value_and_grad` are read in place, or followed on the tape.

use super::check;
use expect_test::expect;

#[test]
fn a_closure_becomes_a_part_of_the_graph_around_it() {
    check(
        r#"fn f(x: &Tensor<f32, 2>, w: &mut Tensor<f32, 2>, b: &mut Tensor<f32, 1>) -> Tensor<f32, 0> {
            let (loss, (w_grad, b_grad)) = value_and_grad((&*w, &*b), |(w, b)| {
                let y = x.matmul(&w) + b;
                (&y * &y).sum_all()
            });
            *w = &*w - w_grad * 0.1;
            *b = &*b - b_grad * 0.1;
            loss
        }"#,
        expect![[r#"
            [__t12, __t14, __t8] = graph f(w, b, x)
              | %0: f32[w.0, w.1] = input(0)  // w
              | %1: f32[w.0, w.1] = variable(%0)  // w
              | %2: f32[b.0] = input(1)  // b
              | %3: f32[b.0] = variable(%2)  // b
              | %4: f32[x.0, x.1] = input(2)  // x
              | %5: f32[x.0, w.1] = matmul(%4, %1)
              | %6: f32[x.0, broadcast(w.1, b.0)] = add(%5, %3)  // y
              | %7: f32[x.0, broadcast(w.1, b.0)] = mul(%6, %6)
              | %8: f32[] = sum_all(%7)  // loss
              | %9: f32[w.0, w.1], f32[b.0] = gradients(%8, %1, %3)  // w_grad
              | %10: f32[] = constant(Float(0.10000000149011612), f32)
              | %11: f32[w.0, w.1] = mul(%9, %10)
              | %12: f32[w.0, w.1] = sub(%0, %11)  // w
              | %13: f32[] = constant(Float(0.10000000149011612), f32)
              | %14: f32[b.0] = mul(%9.1, %13)
              | %15: f32[b.0] = sub(%2, %14)  // b
              | check %5: x.1 = w.0
              | check %6: w.1 broadcasts with b.0
              | out %12, %15, %8
            * w = __t12 ;
            * b = __t14 ;
            => __t8
        "#]],
    );
}

#[test]
fn a_closure_that_reads_on_the_host_is_followed_on_the_tape() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let y = x.exp();
            let (_, w_grad) = value_and_grad(w, |w| {
                let norm = w.norm_all().item();
                (w * &y).sum_all() * norm
            });
            w_grad * x
        }"#,
        expect![[r#"
            [y] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[x.0] = exp(%0)  // y
              | out %1
            let (_ , w_grad) = value_and_grad (w , | w | { let norm = w . norm_all () . item () ; (w * & y) . sum_all () * norm }) ;
            [__t4] = graph f_1(w_grad, x)
              | %0: f32[w_grad.0] = input(0)  // w_grad
              | %1: f32[x.0] = input(1)  // x
              | %2: f32[broadcast(w_grad.0, x.0)] = mul(%0, %1)
              | check %2: w_grad.0 broadcasts with x.0
              | out %2
            => __t4
            break B018 at 4:28: `item` needs the value on the host, so a tape follows this `value_and_grad`
        "#]],
    );
}

#[test]
fn what_a_closure_binds_on_the_host_hides_nothing_behind_it() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>, n: f32) -> Tensor<f32, 1> {
            let grad = value_and_grad(w, |w| {
                let n = std::env::args().count() as f32;
                (w * n).sum_all()
            }).1;
            grad * n
        }"#,
        expect![[r#"
            eager
            break B018 at 2:43: the closure has host bindings of its own, so a tape follows this `value_and_grad`
        "#]],
    );
}

#[test]
fn gradients_of_gradients_are_marked_inside_out() {
    check(
        r#"fn f(x: &Tensor<f64, 1>) -> (Tensor<f64, 0>, Tensor<f64, 1>) {
            value_and_grad(x, |x| {
                let slope = value_and_grad(&x, |x| (&x * &x * x).sum_all()).1;
                (&slope * &slope).sum_all()
            })
        }"#,
        expect![[r#"
            [__t8, __t9] = graph f(x)
              | %0: f64[x.0] = input(0)  // x
              | %1: f64[x.0] = variable(%0)  // x
              | %2: f64[x.0] = variable(%1)  // x
              | %3: f64[x.0] = mul(%2, %2)
              | %4: f64[x.0] = mul(%3, %2)
              | %5: f64[] = sum_all(%4)
              | %6: f64[x.0] = gradients(%5, %2)  // slope
              | %7: f64[x.0] = mul(%6, %6)
              | %8: f64[] = sum_all(%7)
              | %9: f64[x.0] = gradients(%8, %1)
              | out %8, %9
            => (__t8 , __t9 ,)
        "#]],
    );
}

#[test]
fn extents_and_tensors_of_a_closure_may_have_names_of_their_own() {
    check(
        r#"fn f(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            let h = x.exp();
            let (_, grad) = value_and_grad(w, |w| {
                let [rows, columns] = w.dims();
                let h = h.reshape([rows, columns]) * w;
                h.sum_all()
            });
            grad * h
        }"#,
        expect![[r#"
            __d2 = w.size(0)
            __d3 = w.size(1)
            let [rows , columns] = [(__d2) as usize , (__d3) as usize] ;
            [__t8] = graph f(x, w)
              | %0: f32[x.0, x.1] = input(0)  // x
              | %1: f32[x.0, x.1] = exp(%0)  // h
              | %2: f32[w.0, w.1] = input(1)  // w
              | %3: f32[w.0, w.1] = variable(%2)  // w
              | %4: f32[w.0, w.1] = reshape(%1, [w.0, w.1])
              | %5: f32[w.0, w.1] = mul(%4, %3)  // h
              | %6: f32[] = sum_all(%5)
              | %7: f32[w.0, w.1] = gradients(%6, %3)  // grad
              | %8: f32[broadcast(x.0, w.0), broadcast(x.1, w.1)] = mul(%7, %1)
              | check %4: x.0*x.1 = w.0*w.1
              | check %8: w.0 broadcasts with x.0
              | check %8: w.1 broadcasts with x.1
              | out %8
            => __t8
        "#]],
    );
}
