//! What is reported, and what is left to rustc.

use super::check;
use expect_test::expect;

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
fn a_constructor_of_unknown_type_is_named() {
    check(
        "fn f(x: &Tensor<f32, 1>, d: &Device) -> Tensor<f32, 1> { let z = Tensor::zeros([3], d); x + z }",
        expect![[r#"
            the element type and rank of `z` are not known here
            help: write its type where it is bound, or bind it again: `let z: Tensor<f32, 1> = z;`"#]],
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
