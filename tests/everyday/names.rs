//! Names, bindings and scopes.

use super::*;

#[compile]
fn named_like_ops(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let relu = x.relu();
    let exp = relu.exp();
    let sum = exp.sum_all();
    let max = 2.0;
    let x = exp / &sum;
    let mean = x.mean_all();
    (x - mean) * max
}

#[compile]
fn nested_tuples(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, (Tensor<f32, 1>, f32)) {
    let ((a, b), k) = ((x + 1.0, x * 2.0), 3.0f32);
    let pair = (a.clone(), b);
    let (p, q) = &pair;
    (p + q, (a * k, k))
}

#[derive(Debug)]
struct Stats {
    mean: Tensor<f32, 0>,
    centred: Tensor<f32, 1>,
    count: usize,
}

#[compile]
fn struct_literals(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mean = x.mean_all();
    let stats = Stats { centred: x - &mean, count: x.numel(), mean };
    let c: &Tensor<f32, 1> = &stats.centred;
    let m: &Tensor<f32, 0> = &stats.mean;
    c * m / stats.count as f32
}

#[compile]
fn references_to_references(x: &&Tensor<f32, 1>, y: &mut &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let r = &x;
    let s = *x;
    (**r).clone() + s * *y
}

#[compile]
fn blocks_as_values(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = {
        let t = x.exp();
        let s = t.sum_all();
        t / s
    };
    let z = if y.numel() > 2 {
        let k = 2.0;
        y * k
    } else {
        y
    };
    let one = { 1.0 };
    z + one
}

#[compile]
fn shadowing_everywhere(x: &Tensor<f32, 1>, y: Option<Tensor<f32, 1>>) -> Tensor<f32, 1> {
    let x = x * 2.0;
    let x = match y {
        Some(x) => x.exp(),
        None => x,
    };
    for x in [1.0, 2.0] {
        log(format!("{x}"));
    }
    let x = &x;
    let x = x + x;
    x
}

#[compile]
fn parentheses_and_attributes(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    #[allow(unused_parens)]
    let y = ((x) + (1.0));
    #[allow(unused_variables)]
    let unused = &y;
    let z = &(&y * 2.0);
    return z + y;
}

#[compile]
fn assigned_in_branches(x: &Tensor<f32, 1>, flag: bool) -> Tensor<f32, 1> {
    let y;
    let k;
    if flag {
        y = x.exp();
        k = 2.0;
    } else {
        y = x.relu();
        k = 3.0;
    }
    y * k
}

#[compile]
fn shadowed_in_nested_blocks(x: Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let x = x;
    let y = {
        let x = x.exp();
        if n > 1 {
            let x = x.clone() * 2.0;
            x
        } else {
            x
        }
    };
    let mut x = x;
    x += y;
    x
}

#[compile]
fn reference_patterns(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let pair = (x.exp(), 2.0f32);
    let (ref a, k) = pair;
    let apply = |x: f32| x * k;
    a * apply(3.0) + x
}

#[compile]
fn used_after_a_conditional_move(x: Tensor<f32, 1>, flag: bool) -> (Tensor<f32, 1>, Option<Tensor<f32, 1>>) {
    let y = &x * 2.0;
    let kept = if flag { Some(y.clone()) } else { None };
    (x + y, kept)
}

#[compile]
fn unusual_identifiers(r#in: &Tensor<f32, 1>, alpha: f32) -> Tensor<f32, 1> {
    let r#type = r#in * alpha;
    let _unused = r#type.exp();
    let _ = r#type.relu();
    let ñ = &r#type + 1.0;
    ñ
}

#[compile]
fn reference_to_a_temporary(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = &mut x.clone();
    *y += 1.0;
    *y = &*y * 2.0;
    y.clone()
}

#[derive(Debug)]
struct Wrapper(Tensor<f32, 1>, usize);

#[compile]
fn tuple_structs(x: &Tensor<f32, 1>) -> Wrapper {
    let y = Some(x.exp()).map(|y| y + 1.0).unwrap();
    let w = Wrapper(y, 3);
    let inner: &Tensor<f32, 1> = &w.0;
    Wrapper(inner * 2.0, w.1 + 1)
}

#[compile]
fn inferred_annotations(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y: Tensor<_, 1> = x.exp();
    let z: Tensor<f32, _> = y.relu() + 1.0;
    let v: Vec<_> = vec![z.clone(), y];
    let n = v.len();
    z * n as f32
}

#[compile]
#[inline]
#[must_use]
pub(crate) fn attributes_and_patterns(#[allow(unused)] x: &Tensor<f32, 1>, Wrapper(w, n): &Wrapper) -> Tensor<f32, 1> {
    //! Inner docs.
    let y = x + w;
    y * *n as f32
}

#[compile]
fn moved_into_a_closure(x: &Tensor<f32, 1>, w: Tensor<f32, 1>) -> Tensor<f32, 1> {
    let moved = w;
    let again = moved.clone();
    let f = move |k: f32| moved * k;
    let y: Tensor<f32, 1> = f(2.0);
    y + again + x
}

#[compile]
fn parts_behind_references(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let list = [x.exp(), x.relu()];
    let by_ref = &list;
    let [a, b] = by_ref;
    let pair = (1.0f32, &list[0]);
    let p = &pair;
    a * b + p.1 * p.0
}

#[test]
fn variables_mean_what_they_meant() {
    let w = row(&[0.5, 1.5, -1.0]);
    for x in &rows() {
        same!(named_like_ops(x));
        same!(nested_tuples(x));
        same!(struct_literals(x));
        same!(blocks_as_values(x));
        same!(shadowing_everywhere(x, None));
        same!(shadowing_everywhere(x, Some(w.clone())));
        same!(parentheses_and_attributes(x));
        same!(assigned_in_branches(x, true));
        same!(assigned_in_branches(x, false));
        same!(shadowed_in_nested_blocks(x.clone(), 0));
        same!(shadowed_in_nested_blocks(x.clone(), 2));
        same!(references_to_references(&x, &mut &w));
        same!(reference_patterns(x));
        same!(used_after_a_conditional_move(x.clone(), true));
        same!(used_after_a_conditional_move(x.clone(), false));
        same!(unusual_identifiers(x, 0.5));
        same!(reference_to_a_temporary(x));
        same!(tuple_structs(x));
        same!(inferred_annotations(x));
        same!(attributes_and_patterns(x, &Wrapper(w.clone(), 2)));
        same!(moved_into_a_closure(x, w.clone()));
        same!(parts_behind_references(x));
    }
}
