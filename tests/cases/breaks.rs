//! Host code between graphs.

use crate::cases::*;
use std::cell::{Cell, RefCell};

thread_local! {
    /// What the functions under test have printed, in order.
    static PRINTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static SCALE: Cell<f32> = const { Cell::new(2.0) };
}

fn print(text: &str) {
    PRINTED.with_borrow_mut(|lines| lines.push(text.to_owned()));
}

fn printed() -> Vec<String> {
    PRINTED.take()
}

#[compile]
fn container(x: &Tensor<f32, 1>, v: &mut Vec<Tensor<f32, 1>>) -> Tensor<f32, 1> {
    let y: Tensor<f32, 1> = x * 3.0;
    v.push(y.clone());
    print("a");
    v.push(&y + 1.0);
    let r: Tensor<f32, 1> = v.pop().unwrap();
    print("b");
    let count = v.len() as f32;
    r + count
}

fn noisy(_: &Tensor<f32, 1>) -> bool {
    print("noisy");
    true
}

#[compile]
fn branches(a: &Tensor<f32, 1>, b: &Tensor<f32, 1>) -> (Tensor<f32, 1>, bool) {
    let x = a * 0.5 + 1.0;
    let negative = b.sum_all().item() < 0.0;
    let b2: Tensor<f32, 1> = if negative {
        print("neg");
        -b
    } else {
        b.clone()
    };
    let ok = b.max_all().item() > 9.0 && noisy(b);
    (x * b2, ok)
}

struct Config {
    k: f32,
    w: Tensor<f32, 1>,
}

#[compile]
fn captured(x: &Tensor<f32, 1>, config: &Config) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let scale: f32 = SCALE.get();
    let k: f32 = config.k;
    let w: &Tensor<f32, 1> = &config.w;
    (x * scale + k, x * w)
}

#[compile]
fn triple_plus(x: &Tensor<f32, 1>, i: f32) -> Tensor<f32, 1> {
    x * 3.0 + i
}

macro_rules! both {
    ($function:ident, |$run:ident| $body:expr) => {{
        {
            let $run = $function;
            $body
        }
        {
            let $run = $function::eager;
            $body
        }
    }};
}

#[test]
fn case_110_a_container_changes_across_breaks() {
    both!(container, |run| {
        for _ in 0..3 {
            let mut v = vec![];
            assert_eq!(run(&Tensor::from([7.0f32]).to_device(device()), &mut v).to_vec(), [23.0]);
            assert_eq!(v.iter().map(Tensor::to_vec).collect::<Vec<_>>(), [[21.0]]);
            assert_eq!(printed(), ["a", "b"]);
        }
    });
}

#[test]
fn case_112_only_the_taken_side_runs() {
    let a = Tensor::from([1.0f32, -3.0]).to_device(device());
    both!(branches, |run| {
        let (y, ok) = run(&a, &Tensor::from([1.0f32, 2.0]).to_device(device()));
        assert_eq!((y.to_vec(), ok, printed()), (vec![1.5, -1.0], false, vec![]));
        let (y, ok) = run(&a, &Tensor::from([-5.0f32, 2.0]).to_device(device()));
        assert_eq!((y.to_vec(), ok, printed()), (vec![7.5, 1.0], false, vec!["neg".to_owned()]));
        let (_, ok) = run(&a, &Tensor::from([10.0f32, 2.0]).to_device(device()));
        assert_eq!((ok, printed()), (true, vec!["noisy".to_owned()]));
    });
}

#[test]
fn case_114_captured_values_do_not_go_stale() {
    let x = Tensor::from([1.0f32]).to_device(device());
    both!(captured, |run| {
        SCALE.set(2.0);
        let mut config = Config { k: 3.0, w: Tensor::from([10.0f32]).to_device(device()) };
        let (y, z) = run(&x, &config);
        assert_eq!((y.item(), z.item()), (5.0, 10.0));
        SCALE.set(5.0);
        (config.k, config.w) = (7.0, Tensor::from([20.0f32]).to_device(device()));
        let (y, z) = run(&x, &config);
        assert_eq!((y.item(), z.item()), (12.0, 20.0));
    });
}

#[test]
fn case_115_a_host_read_waits_for_its_value() {
    let n = 1_000_000;
    let x = Tensor::<f32, 1>::ones([n], device());
    for i in 0..50 {
        let y = triple_plus(&x, i as f32);
        assert_eq!(y.narrow(0, n - 1, 1).item(), 3.0 + i as f32);
    }
    let parts: Vec<f32> = (0..100).flat_map(|k| (&x * k as f32).narrow(0, k, 10).to_vec()).collect();
    assert!(parts.chunks(10).enumerate().all(|(k, part)| part.iter().all(|&v| v == k as f32)));
}
