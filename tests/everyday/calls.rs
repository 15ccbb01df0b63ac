//! Closures, generics, macros and calls.

use super::*;

#[compile]
fn closures_in_closures(x: &Tensor<f32, 1>, k: f32) -> Tensor<f32, 1> {
    let scale = |t: &Tensor<f32, 1>| t * k;
    let twice = |t: &Tensor<f32, 1>| scale(&scale(t));
    let y: Tensor<f32, 1> = twice(x);
    y + 1.0
}

#[compile]
fn const_generic<const N: usize>(x: &Tensor<f32, 2>) -> Tensor<f32, 3> {
    let [b, d] = x.dims();
    let y = x.reshape([b, N, d / N]);
    y * N as f32
}

#[compile]
fn generic_with_where<T, F>(x: &Tensor<T, 1>, f: F) -> Tensor<T, 1>
where
    T: Float,
    F: Fn(f64) -> f64,
{
    let k = T::from_f64(f(2.0));
    x * k + x.relu()
}

#[compile]
fn lifetimes<'a>(x: &'a Tensor<f32, 1>, names: &'a [&'a str]) -> (&'a str, Tensor<f32, 1>) {
    let name = names.first().copied().unwrap_or("none");
    (name, x + name.len() as f32)
}

#[compile]
fn macros(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    assert!(x.numel() > 0, "empty {}", x.numel());
    assert_eq!(x.dims(), [3]);
    let n = dbg!(x.numel());
    let ks = vec![1.0, 2.0, n as f32];
    let y = x * ks[2] + ks[0];
    debug_assert!(y.numel() == n);
    let text = format!("{n} {:?}", y.dims());
    log(text);
    y
}

#[compile]
fn items_inside(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    const SCALE: f32 = 0.25;
    const N: usize = 3;
    fn bias(n: usize) -> f32 {
        n as f32
    }
    let mut y = x * SCALE;
    for _ in 0..N {
        y = y + bias(N);
    }
    y
}

#[compile]
fn updates_through_references(w: &mut Tensor<f32, 1>, g: &Tensor<f32, 1>, m: &mut Tensor<f32, 1>, lr: f32) {
    *m = &*m * 0.9 + g;
    *w = &*w - &*m * lr;
    log(format!("{lr}"));
    *w -= g;
}

fn run34(f: fn(&mut Row, &Row, &mut Row, f32)) -> (Row, Row) {
    let (mut w, mut m) = (row(&[1.0, 2.0]), row(&[0.5, 0.5]));
    f(&mut w, &row(&[0.1, 0.2]), &mut m, 0.1);
    (w, m)
}

#[compile]
fn schedule(x: &Tensor<f32, 1>, step: usize) -> Tensor<f32, 1> {
    let warmup = |s: usize| if s < 10 { s as f32 / 10.0 } else { 1.0 };
    let decay = |s: usize| 1.0 / (1.0 + s as f32);
    x * warmup(step) * decay(step)
}

#[derive(Debug, Clone, Copy, Default)]
struct Config {
    scale: f32,
    shift: Option<f32>,
    deep: bool,
}

#[compile]
fn struct_update(x: &Tensor<f32, 1>, config: &Config) -> Tensor<f32, 1> {
    let config = Config { scale: config.scale * 2.0, ..*config };
    let mut y = x * config.scale;
    if let Some(shift) = config.shift {
        y = y + shift;
    }
    if config.deep { y.tanh() } else { y }
}

#[compile]
fn no_result(x: &Tensor<f32, 1>) {
    let y = x.sum_all();
    log(format!("{:.2}", y.item()));
}

#[compile]
fn functions_as_values(
    x: &Tensor<f32, 1>,
    f: &dyn Fn(&Tensor<f32, 1>) -> Tensor<f32, 1>,
    g: fn(f32) -> f32,
) -> Tensor<f32, 1> {
    let y: Tensor<f32, 1> = f(&x.exp());
    y * g(2.0)
}

#[compile]
fn functions_of_the_type(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y: Tensor<f32, 1> = Tensor::relu(x);
    let z: Tensor<f32, 1> = Tensor::<f32, 1>::exp(&y);
    let w: Tensor<f32, 1> = Tensor::maximum(&z, x);
    w
}

macro_rules! double {
    ($x:expr) => {
        $x + $x
    };
}

#[compile]
fn closure_that_assigns(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut acc = x.clone();
    let mut add = |t: &Tensor<f32, 1>| acc = &acc + t;
    add(x);
    add(x);
    acc.relu()
}

#[compile]
fn alias_of_a_reference(x: &Row, w: &Tensor<f32, 1>, k: &f32) -> Row {
    let y: Tensor<f32, 1> = w.exp() + x;
    y * *k
}

#[compile]
fn own_macro(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y: Tensor<f32, 1> = double!(x);
    let z = double!(3.0);
    y * z
}

#[test]
fn calls_see_what_they_are_given() {
    let w = row(&[0.5, 1.5, -1.0]);
    let m = matrix(2, [1.0, -2.0, 0.5, 3.0, 0.25, -1.0, 2.0, 1.0]);
    for x in &rows() {
        same!(closures_in_closures(x, 1.5));
        same!(generic_with_where(x, |k| k * 2.0));
        same!(lifetimes(x, &["abc"]));
        same!(macros(x));
        same!(items_inside(x));
        same!(schedule(x, 3));
        same!(schedule(x, 30));
        same!(struct_update(x, &Config { scale: 1.0, shift: Some(2.0), deep: true }));
        same!(struct_update(x, &Config::default()));
        same!(no_result(x));
        same!(functions_as_values(x, &|t| t * 2.0, |k| k + 1.0));
        same!(functions_of_the_type(x));
        same!(closure_that_assigns(x));
        same!(alias_of_a_reference(x, &w, &2.0));
        same!(own_macro(x));
    }
    assert_eq!(format!("{:?}", const_generic::<2>(&m)), format!("{:?}", const_generic::eager::<2>(&m)));
    assert_eq!(
        format!("{:?}", run34(updates_through_references)),
        format!("{:?}", run34(updates_through_references::eager))
    );
}
