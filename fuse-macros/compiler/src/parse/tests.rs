//! Small functions and what they are captured as.

use super::{Function, function};
use crate::diag::Diagnostics;
use expect_test::{Expect, expect};
use syn::ItemFn;

fn captured(source: &str) -> String {
    let item: ItemFn = syn::parse_str(source).expect("the test's function parses");
    let mut diag = Diagnostics::default();
    let program = function(&Function { sig: &item.sig, block: &item.block, outer: None }, &mut diag);
    match diag.messages() {
        messages if messages.is_empty() => program.map_or("silent".to_owned(), |program| program.to_string()),
        messages => messages.join("\n"),
    }
}

fn check(source: &str, expected: Expect) {
    expected.assert_eq(&captured(source));
}

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
fn host_statements_run_in_their_place() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, lr: f32) -> Tensor<f32, 1> {
            let y = x * lr;
            println!("half");
            let lr = lr * 0.5;
            y - x * lr
        }"#,
        expect![[r#"
            __s1: f32 = lr
            println ! ("half") ;
            let lr = lr * 0.5 ;
            __s2: f32 = lr
            [__t3] = graph f(x, __s1, __s2)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[] = scalar(0)
              | %2: f32[x.0] = mul(%0, %1)  // y
              | %3: f32[] = scalar(1)
              | %4: f32[x.0] = mul(%0, %3)
              | %5: f32[x.0] = sub(%2, %4)
              | out %5
            => __t3
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
fn a_missing_annotation_is_named() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let z = helper(x);
            z.relu() + x
        }"#,
        expect![[r#"
            the element type and rank of `z` are not known here
            help: write its type where it is bound, or bind it again: `let z: Tensor<f32, 2> = z;`"#]],
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
fn unequal_names_are_a_contradiction() {
    check(
        r#"fn f(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(H, D)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            x.matmul(w)
        }"#,
        expect![[r#"
            inner dimensions of `matmul` differ: `x` has k = D, `w` has k = H
            help: `w.t()` would give k = D; `D` is from `x: #[dims(B, D)]`, `H` is from `w: #[dims(H, D)]`; extents that must be equal have one name"#]],
    );
}

#[test]
fn fields_are_read_by_annotated_locals() {
    check(
        r#"fn f(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            let w: &Tensor<f32, 2> = &self.w;
            x.matmul(w) * self.scale
        }"#,
        expect![[r#"
            let w : & Tensor < f32 , 2 > = & self . w ;
            __s1: f32 = self . scale
            [__t3] = graph f(x, w, __s1)
              | %0: f32[x.0, x.1] = input(0)  // x
              | %1: f32[w.0, w.1] = input(1)  // w
              | %2: f32[x.0, w.1] = matmul(%0, %1)
              | %3: f32[] = scalar(0)
              | %4: f32[x.0, w.1] = mul(%2, %3)
              | check %2: x.1 = w.0
              | out %4
            => __t3
        "#]],
    );
}

#[test]
fn a_field_without_annotation_is_named() {
    check(
        r#"fn f(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
            x.matmul(&self.w)
        }"#,
        expect![[r#"
            the element type and rank of `self.w` are not known here
            help: bind it first: `let w: &Tensor<f32, 2> = &self.w;`"#]],
    );
}

#[test]
fn containers_live_on_the_host() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let mut v = vec![];
            let y = x * 3.0;
            v.push(y.clone());
            println!("a");
            v.push(y + 1.0);
            let r: Tensor<f32, 1> = v.pop().unwrap();
            println!("b");
            r + v.len() as f32
        }"#,
        expect![[r#"
            let mut v = vec ! [] ;
            [y] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[] = constant(Float(3.0), f32)
              | %2: f32[x.0] = mul(%0, %1)  // y
              | out %2
            __t1 = y . clone ()
            v . push (__t1 . clone ()) ;
            println ! ("a") ;
            [__t2] = graph f_1(y)
              | %0: f32[x.0] = input(0)  // y
              | %1: f32[] = constant(Float(1.0), f32)
              | %2: f32[x.0] = add(%0, %1)
              | out %2
            v . push (__t2) ;
            let r : Tensor < f32 , 1 > = v . pop () . unwrap () ;
            println ! ("b") ;
            __s1: f32 = v . len () as f32
            [__t4] = graph f_2(r, __s1)
              | %0: f32[r.0] = input(0)  // r
              | %1: f32[] = scalar(0)
              | %2: f32[r.0] = add(%0, %1)
              | out %2
            => __t4
            break B003 at 4:13: `v.push(y.clone())` hands a tensor to code fuse cannot see into
            break B003 at 6:13: `v.push(y + 1.0)` hands a tensor to code fuse cannot see into
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
fn block_bindings_stay_in_their_block() {
    check(
        r#"fn f(x: &Tensor<f32, 1>, k: f32) -> Tensor<f32, 1> {
            let mut y = x.exp();
            {
                let k = open();
                y = y * k;
            }
            y * k
        }"#,
        expect![[r#"
            [mut y] = graph f(x)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[x.0] = exp(%0)  // y
              | out %1
            {
                let k = open () ;
                __s1: f32 = k
                [__t2] = graph f_1(y, __s1)
                  | %0: f32[x.0] = input(0)  // y
                  | %1: f32[] = scalar(0)
                  | %2: f32[x.0] = mul(%0, %1)  // y
                  | out %2
                y = __t2 ;
            } 
            __s3: f32 = k
            [__t3] = graph f_2(y, __s3)
              | %0: f32[y.0] = input(0)  // y
              | %1: f32[] = scalar(0)
              | %2: f32[y.0] = mul(%0, %1)
              | out %2
            => __t3
            break B011 at 3:13: the block has host bindings of its own
        "#]],
    );
}

#[test]
fn mutation_of_a_scalar_after_the_op_is_not_seen() {
    check(
        r#"fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
            let mut k = 2.0;
            let y = x * k;
            k = 10.0;
            y + k
        }"#,
        expect![[r#"
            let mut k = 2.0 ;
            __s1: f32 = k
            k = 10.0 ;
            __s2: f32 = k
            [__t2] = graph f(x, __s1, __s2)
              | %0: f32[x.0] = input(0)  // x
              | %1: f32[] = scalar(0)
              | %2: f32[x.0] = mul(%0, %1)  // y
              | %3: f32[] = scalar(1)
              | %4: f32[x.0] = add(%2, %3)
              | out %4
            => __t2
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
fn known_inner_dimensions_that_differ_are_named() {
    check(
        "fn f(#[dims(2, 3)] x: &Tensor<f32, 2>, #[dims(4, 5)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> { x.matmul(w) }",
        expect![[r#"
            inner dimensions of `matmul` differ: `x` has k = 3, `w` has k = 4
            help: the last extent of `x` is summed against the last but one of `w`"#]],
    );
}

#[test]
fn operands_that_do_not_broadcast_are_shown() {
    check(
        "fn f(#[dims(2, 3)] x: &Tensor<f32, 2>, #[dims(4)] b: &Tensor<f32, 1>) -> Tensor<f32, 2> { let y = x.exp(); y + b }",
        expect![[r#"
            operands of `+` do not broadcast: `y` is [2, 3], `b` is [4]
            help: extents must be equal or 1, counted from the last axis"#]],
    );
}

#[test]
fn named_dims_that_meet_show_where_they_are_from() {
    check(
        "fn f(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(H)] b: &Tensor<f32, 1>) -> Tensor<f32, 2> { x + b }",
        expect![[r#"
            operands of `+` do not broadcast: `x` is [B, D], `b` is [H]
            help: extents must be equal or 1, counted from the last axis; `D` is from `x: #[dims(B, D)]`, `H` is from `b: #[dims(H)]`; extents that must be equal have one name"#]],
    );
}

#[test]
fn every_mistake_is_reported() {
    check(
        "fn f(#[dims(2, 3)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> { let y = x.sum(2); let z = x.reshape([4, 2]); z.softmax(-3) }",
        expect![[r#"
            `sum`: axis 2 is out of range for `x` of rank 2
            help: an axis is one of -2..=1
            `reshape` keeps the number of elements: `x` is [2, 3], 6 elements; [4, 2] has 8
            help: the new extents must multiply to 6"#]],
    );
}

#[test]
fn dims_of_another_rank_are_refused() {
    check(
        "fn f(#[dims(B)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> { x.exp() }",
        expect![[r#"
            `#[dims]` names 1 extent, but `x` has rank 2
            help: name one extent for each dimension"#]],
    );
}

#[test]
fn dims_that_cannot_be_told_are_refused() {
    check(
        "fn f(#[dims(B * D)] x: &Tensor<f32, 1>) -> Tensor<f32, 1> { x.exp() }",
        expect![[r#"
            the dims in `B * D` cannot be told from the extents
            help: use each name alone for one extent at least"#]],
    );
}

#[test]
fn what_rustc_rejects_is_left_to_rustc() {
    check("fn f(x: &Tensor<f32, 2>, y: &Tensor<f64, 2>) -> Tensor<f32, 2> { x + y }", expect!["silent"]);
}

#[test]
fn a_generic_rank_runs_eager_and_says_so() {
    check(
        "fn f<const R: usize>(x: &Tensor<f32, R>) -> Tensor<f32, R> { x.exp() }",
        expect![[r#"
            eager
            break B017 at 1:25: a tensor's rank or element type is not written out, so the function runs op by op
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

#[test]
fn a_constructor_of_unknown_type_is_named() {
    check(
        "fn f(x: &Tensor<f32, 1>, d: &Device) -> Tensor<f32, 1> { let z = Tensor::zeros([3], d); x + z }",
        expect![[r#"
            the element type and rank of `z` are not known here
            help: write its type where it is bound, or bind it again: `let z: Tensor<f32, 1> = z;`"#]],
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
fn a_mistake_in_an_unrolled_loop_is_reported_once() {
    check(
        r#"fn f(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(H)] b: &Tensor<f32, 1>) -> Tensor<f32, 2> {
            let mut y = x.clone();
            for _ in 0..3 { y = y.relu() + b; }
            y
        }"#,
        expect![[r#"
            operands of `+` do not broadcast: `y.relu()` is [B, D], `b` is [H]
            help: extents must be equal or 1, counted from the last axis; `D` is from `x: #[dims(B, D)]`, `H` is from `b: #[dims(H)]`; extents that must be equal have one name"#]],
    );
}

#[test]
fn a_mistake_beside_a_tensor_is_reported_once() {
    check(
        r#"fn f(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(H)] b: &Tensor<f32, 1>) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
            let pair = (x + b, x.exp());
            println!("{:?}", pair.1);
            pair
        }"#,
        expect![[r#"
            operands of `+` do not broadcast: `x` is [B, D], `b` is [H]
            help: extents must be equal or 1, counted from the last axis; `D` is from `x: #[dims(B, D)]`, `H` is from `b: #[dims(H)]`; extents that must be equal have one name"#]],
    );
}
