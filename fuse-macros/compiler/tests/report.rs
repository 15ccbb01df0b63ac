//! What `explain()` says about small programs.

mod programs;

use expect_test::expect;
use fuse_compiler::diag::Break;
use fuse_compiler::report::Explanation;

fn explain(name: &str, breaks: Vec<Break>) -> Explanation {
    let plan = programs::all().into_iter().find(|(n, _)| *n == name).expect("the program is in the list").1;
    Explanation::new(name, &[plan], breaks)
}

#[test]
fn a_kernel_is_told_with_its_ops_and_bytes() {
    expect![[r#"
        bias_gelu: 1 graph, 1 kernel, 1 launch, 0 breaks

        graph bias_gelu: 1 launch
          k0_add_gelu  map[x.0, broadcast(x.1, b.0)]
            src/lib.rs:2  add(..)
            src/lib.rs:3  gelu(..)
            reads 2*x.0*x.1 + 2*b.0 bytes, writes 2*x.0*broadcast(x.1, b.0) bytes
          fusion saved 4*x.0*broadcast(x.1, b.0) bytes of writes and reads
          at most 11 variants of a kernel for each GPU, whatever sizes there are
    "#]]
    .assert_eq(&explain("bias_gelu", vec![]).to_string());
}

#[test]
fn a_product_is_told_with_its_launches() {
    expect![[r#"
        linear_relu: 1 graph, 2 kernels, 2 launches, 0 breaks

        graph linear_relu: 2 launches
          k0_matmul  matmul[x.0, w.1, x.1]
            src/lib.rs:2  matmul(..)
            reads 2*x.0*x.1 + 2*x.1*w.1 bytes, writes 2*x.0*w.1 bytes
          k1_add_relu  map[x.0, broadcast(w.1, b.0)]
            src/lib.rs:3  add(..)
            src/lib.rs:4  relu(..)
            reads 2*x.0*w.1 + 2*b.0 bytes, writes 2*x.0*broadcast(w.1, b.0) bytes
          fusion saved 4*x.0*broadcast(w.1, b.0) bytes of writes and reads
          at most 38 variants of a kernel for each GPU, whatever sizes there are
          not fused: `add(..)` may run over other extents than `matmul(..)`, unless `#[dims]` say that they are equal (src/lib.rs:3  add(..))
    "#]]
    .assert_eq(&explain("linear_relu", vec![]).to_string());
}

#[test]
fn what_is_not_fused_is_told_with_the_reason() {
    let reasons = |name: &str| {
        let text = explain(name, vec![]).to_string();
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix("not fused: "));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    expect![[""]].assert_eq(&reasons("softmax"));
    expect![[r#"
        `softmax(..)` wants whole rows, and `matmul(..)` makes its result in tiles (src/lib.rs:4  softmax(..))
        `matmul(..)` reads its operands many times, so what `softmax(..)` gives is stored first (src/lib.rs:5  matmul(..))
    "#]].assert_eq(&reasons("attention"));
    expect![[""]].assert_eq(&reasons("counting"));
    expect![[""]].assert_eq(&reasons("embedding"));
}

#[test]
fn breaks_come_with_place_and_help() {
    let item = Break {
        code: "B001".into(),
        reason: "`item()` reads a value on the host".into(),
        file: "src/lib.rs".into(),
        line: 7,
        column: 13,
        hint: "keep the value as a rank-0 tensor".into(),
    };
    let explanation = explain("sum_all", vec![item]);
    assert_eq!((explanation.graphs().len(), explanation.breaks().len()), (1, 1));
    assert_eq!(explanation.launches(), explanation.kernels().len());
    expect![[r#"
        sum_all: 1 graph, 1 kernel, 1 launch, 1 break

        graph sum_all: 1 launch
          k0_mul_sum  row[ | x.0, x.1, x.2]
            src/lib.rs:2  mul(..)
            src/lib.rs:3  sum_all(..)
            reads 4*x.0*x.1*x.2 bytes, writes 4 bytes
          fusion saved 8*x.0*x.1*x.2 bytes of writes and reads
          at most 14 variants of a kernel for each GPU, whatever sizes there are

        break B001 at src/lib.rs:7:13: `item()` reads a value on the host
          help: keep the value as a rank-0 tensor
    "#]]
    .assert_eq(&explanation.to_string());
}

#[test]
fn generic_types_have_their_size_in_the_formula() {
    let explanation = explain("pointwise_generic", vec![]);
    assert!(explanation.kernels()[0].read.starts_with("size_of(T0)*("), "{explanation}");
}

#[test]
fn a_report_survives_being_written_and_read() {
    let explanation = explain("attention", vec![]);
    assert_eq!(Explanation::from_text(&explanation.to_text()), explanation);
}

#[test]
fn a_page_escapes_what_users_write() {
    let page = explain("softmax", vec![]).to_html();
    assert!(page.contains("<article>") && !page.contains("<softmax"), "{page}");
}
