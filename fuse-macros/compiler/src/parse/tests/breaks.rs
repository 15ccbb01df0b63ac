//! Where a graph ends.

use super::{captured, check};
use expect_test::expect;

#[test]
fn a_print_of_a_tensor_is_a_break() {
    check(
        r#"fn f(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            let h = x.relu();
            let unused = x + 1.0;
            println!("{h}");
            let k = h.matmul(w);
            k + &h
        }"#,
        expect![[r#"
            [h] = graph f(x)
              | %0: f32[x.0, x.1] = input(0)  // x
              | %1: f32[x.0, x.1] = relu(%0)  // h
              | %2: f32[] = constant(Float(1.0), f32)
              | %3: f32[x.0, x.1] = add(%0, %2)  // unused
              | out %1
            println ! ("{h}") ;
            [__t5] = graph f_1(h, w)
              | %0: f32[x.0, x.1] = input(0)  // h
              | %1: f32[w.0, w.1] = input(1)  // w
              | %2: f32[x.0, w.1] = matmul(%0, %1)  // k
              | %3: f32[x.0, broadcast(x.1, w.1)] = add(%2, %0)
              | check %2: x.1 = w.0
              | check %3: w.1 broadcasts with x.1
              | out %3
            => __t5
            break B004 at 4:13: `println!` reads a tensor
        "#]],
    );
}

#[test]
fn an_item_read_is_a_break() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let y = x * 2.0;
            if y.mean_all().item() > 0.2 {
                y.relu()
            } else {
                y.exp()
            }
        }"#,
        expect![[r#"
            [y, __t2] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[] = constant(Float(2.0), f32)
              | %2: f32[x.0] = mul(%0, %1)  // y
              | %3: f32[] = mean_all(%2)
              | out %2, %3
            if __t2 . item () > 0.2 {
                [__t3] = graph f_1(y)
                  | %0: f32[x.0] = input(0)  // y
                  | %1: f32[x.0] = relu(%0)
                  | out %1
                => __t3
            } else {
                [__t3] = graph f_2(y)
                  | %0: f32[x.0] = input(0)  // y
                  | %1: f32[x.0] = exp(%0)
                  | out %1
                => __t3
            } 
            break B001 at 3:16: `item` needs the value on the host
        "#]],
    );
}

#[test]
fn an_item_read_may_be_a_scalar() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let y = x.exp();
            y / y.sum_all().item() + 1.0
        }"#,
        expect![[r#"
            [y, __t2] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[x.0] = exp(%0)  // y
              | %2: f32[] = sum_all(%1)
              | out %1, %2
            __s1: f32 = __t2 . item ()
            [__t4] = graph f_1(y, __s1)
              | %0: f32[x.0] = input(0)  // y
              | %1: f32[] = scalar(0)
              | %2: f32[x.0] = div(%0, %1)
              | %3: f32[] = constant(Float(1.0), f32)
              | %4: f32[x.0] = add(%2, %3)
              | out %4
            => __t4
            break B001 at 3:17: `item` needs the value on the host
        "#]],
    );
}

#[test]
fn a_call_into_unknown_code_is_a_break() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Result<Tensor<f32, 1>, Error> {
            let y = x * 2.0;
            let z: Tensor<f32, 1> = helper(&y.relu(), 3)?;
            Ok(z + y)
        }"#,
        expect![[r#"
            [y, __t2] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[] = constant(Float(2.0), f32)
              | %2: f32[x.0] = mul(%0, %1)  // y
              | %3: f32[x.0] = relu(%2)
              | out %2, %3
            let z : Tensor < f32 , 1 > = helper (& __t2 , 3) ? ;
            [__t4] = graph f_1(z, y)
              | %0: f32[z.0] = input(0)  // z
              | %1: f32[x.0] = input(1)  // y
              | %2: f32[broadcast(z.0, x.0)] = add(%0, %1)
              | check %2: z.0 broadcasts with x.0
              | out %2
            => Ok (__t4)
            break B003 at 3:37: `helper` is code that fuse cannot see into
        "#]],
    );
}

#[test]
fn closures_over_tensors_are_a_break() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let y = x.exp();
            let add = |t: &Tensor<f32, 1>| t + &y;
            let z: Tensor<f32, 1> = add(x);
            z.relu()
        }"#,
        expect![[r#"
            [y] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[x.0] = exp(%0)  // y
              | out %1
            let add = | t : & Tensor < f32 , 1 > | t + & y ;
            let z : Tensor < f32 , 1 > = add (x) ;
            [__t3] = graph f_1(z)
              | %0: f32[z.0] = input(0)  // z
              | %1: f32[z.0] = relu(%0)
              | out %1
            => __t3
            break B006 at 3:23: a closure uses tensors
            break B003 at 4:37: `add` is code that fuse cannot see into
        "#]],
    );
}

#[test]
fn a_statement_that_may_return_ends_the_graph() {
    check(
        "fn f(x: &Tensor<f32, 1>, s: &str) -> Result<Tensor<f32, 1>, E> { let y = x.exp(); let k = s.parse()?; Ok(y * k) }",
        expect![[r#"
            [y] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[x.0] = exp(%0)  // y
              | out %1
            let k = s . parse () ? ;
            __s1: f32 = k
            [__t2] = graph f_1(y, __s1)
              | %0: f32[x.0] = input(0)  // y
              | %1: f32[] = scalar(0)
              | %2: f32[x.0] = mul(%0, %1)
              | out %2
            => Ok (__t2)
            break B007 at 1:91: `s.parse()?` may leave the function or loop
        "#]],
    );
}

#[test]
fn a_generic_rank_is_read_as_many_axes() {
    check(
        "fn f<const R: usize>(x: &Tensor<f32, R>, k: f32) -> Tensor<f32, R> { (x * k).softmax(-1) }",
        expect![[r#"
            __s1: f32 = k
            [__t2] = graph f(x, __s1)
              | %0: f32[x.0, x.1, x.2, x.3, x.4, x.5] = input(0)  // x
              | %1: f32[] = scalar(0)
              | %2: f32[x.0, x.1, x.2, x.3, x.4, x.5] = mul(%0, %1)
              | %3: f32[x.0, x.1, x.2, x.3, x.4, x.5] = softmax(%2, -1)
              | out %3
            => __t2
        "#]],
    );
}

#[test]
fn a_generic_rank_that_an_op_does_not_keep_runs_eager_and_says_so() {
    let reasons = [
        ("x.softmax(0)", "`softmax` counts an axis from the front"),
        ("x.unsqueeze(0).squeeze(0)", "`unsqueeze` does not keep the rank"),
        ("x + w", "`add` brings tensors of open rank together with others"),
        ("Tensor::<f32, R>::zeros(x.dims(), x.device())", "a tensor's rank or element type is not written out"),
    ];
    for (body, reason) in reasons {
        let text =
            format!("fn f<const R: usize>(x: &Tensor<f32, R>, w: &Tensor<f32, 1>) -> Tensor<f32, R> {{ {body} }}");
        let break_ = format!("eager\nbreak B017 at 1:25: {reason}, so the function runs op by op\n");
        assert_eq!(captured(&text), break_);
    }
}

#[test]
fn an_opaque_return_type_runs_eager_and_says_so() {
    check(
        "fn f(x: &Tensor<f32, 1>) -> (usize, impl Debug) { (1, x.exp()) }",
        expect![[r#"
            eager
            break B017 at 1:37: a type in `impl` is that of one body alone, so the function runs op by op
        "#]],
    );
}

#[test]
fn code_under_cfg_runs_eager_and_says_so() {
    check(
        "fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> { #[cfg(test)] let x = x.relu(); x.exp() }",
        expect![[r#"
            eager
            break B017 at 1:46: code under `#[cfg]` may or may not be there, so the function runs op by op
        "#]],
    );
}
