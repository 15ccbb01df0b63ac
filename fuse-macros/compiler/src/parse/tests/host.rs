//! What the host does between ops, and when.

use super::check;
use expect_test::expect;

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
