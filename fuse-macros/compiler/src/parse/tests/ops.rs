//! Ops become nodes, shapes formulas, and numbers constants.

use super::check;
use expect_test::expect;

#[test]
fn straight_line_ops_are_one_graph() {
    check(
        r#"fn f(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(D, H)] w: &Tensor<f32, 2>, #[dims(H)] b: &Tensor<f32, 1>) -> Tensor<f32, 2> {
            let h = (x.matmul(w) + b).gelu();
            h * 2.0
        }"#,
        expect![[r#"
            __d1 = x.size(1)
            __d2 = w.size(1)
            check w.size(0) = D
            check b.size(0) = H
            [__t6] = graph f(x, w, b)
              | %0: f32[B, D] = input(0)  // x
              | %1: f32[D, H] = input(1)  // w
              | %2: f32[B, H] = matmul(%0, %1)
              | %3: f32[H] = input(2)  // b
              | %4: f32[B, H] = add(%2, %3)
              | %5: f32[B, H] = gelu(%4)  // h
              | %6: f32[] = constant(Float(2.0), f32)
              | %7: f32[B, H] = mul(%5, %6)
              | out %7
            => __t6
        "#]],
    );
}

#[test]
fn shape_arithmetic_stays_symbolic() {
    check(
        r#"fn f(x: &Tensor<f32, 3>, heads: usize) -> Tensor<f32, 4> {
            let [b, s, d] = x.dims();
            x.relu().reshape([b, s, heads, d / heads]).permute([0, 2, 1, 3])
        }"#,
        expect![[r#"
            let [b , s , d] = x . dims () ;
            __d3 = heads as i64
            let _ = 1i64 / __d3 ;
            [__t3] = graph f(x, __d3)
              | heads = host 0 (s3)
              | %0: f32[x.0, x.1, x.2] = input(0)  // x
              | %1: f32[x.0, x.1, x.2] = relu(%0)
              | %2: f32[x.0, x.1, heads, (x.2)/(heads)] = reshape(%1, [x.0, x.1, heads, (x.2)/(heads)])
              | %3: f32[x.0, heads, x.1, (x.2)/(heads)] = permute(%2, [0, 2, 1, 3])
              | check %2: x.0*x.1*x.2 = x.0*x.1*heads*(x.2)/(heads)
              | out %3
            => __t3
        "#]],
    );
}

#[test]
fn chunks_take_their_number_from_the_pattern() {
    check(
        r#"fn f(#[dims(B, 3 * D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            let [q, k, v] = x.chunk(-1);
            q * k + v
        }"#,
        expect![[r#"
            __d1 from x.size(1) = 3 * D
            [__t5] = graph f(x, __d1)
              | D = host 0 (s1)
              | %0: f32[B, 3*D] = input(0)  // x
              | %1: f32[B, D], f32[B, D], f32[B, D] = chunk(%0, -1, 3)  // q
              | %2: f32[B, D] = mul(%1, %1.1)
              | %3: f32[B, D] = add(%2, %1.2)
              | out %3
            => __t5
        "#]],
    );
}

#[test]
fn tuples_and_arrays_are_seen_through() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
            let (a, b) = (x + y, x - y);
            for w in [&a, &b] { let _c = w.exp(); }
            (a * &b, b)
        }"#,
        expect![[r#"
            [__t6, __t3] = graph f(x, y)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[y.0] = input(1)  // y
              | %2: f32[broadcast(x.0, y.0)] = add(%0, %1)  // a
              | %3: f32[broadcast(x.0, y.0)] = sub(%0, %1)  // b
              | %4: f32[broadcast(x.0, y.0)] = exp(%2)  // _c
              | %5: f32[broadcast(x.0, y.0)] = exp(%3)  // _c
              | %6: f32[broadcast(x.0, y.0)] = mul(%2, %3)
              | check %2: x.0 broadcasts with y.0
              | check %3: x.0 broadcasts with y.0
              | out %6, %3
            => (__t6 , __t3 ,)
        "#]],
    );
}

#[test]
fn a_constructor_takes_its_type_from_the_annotation() {
    check(
        "fn f(x: &Tensor<f32, 1>, d: &Device) -> Tensor<f32, 1> { let z: Tensor<f32, 1> = Tensor::zeros([3], d); x + z }",
        expect![[r#"
            let z : Tensor < f32 , 1 > = Tensor :: zeros ([3] , d) ;
            [__t2] = graph f(x, z)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[z.0] = input(1)  // z
              | %2: f32[broadcast(x.0, z.0)] = add(%0, %1)
              | check %2: x.0 broadcasts with z.0
              | out %2
            => __t2
        "#]],
    );
}

#[test]
fn a_constructor_on_the_device_of_a_tensor_is_captured() {
    check(
        "fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> { let z = Tensor::<f32, 1>::zeros([x.size(0)], x.device()); x + z }",
        expect![[r#"
            [__t2] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[x.0] = zeros([x.0], f32)  // z
              | %2: f32[x.0] = add(%0, %1)
              | out %2
            => __t2
        "#]],
    );
}
