//! Host code of every kind between tensor ops: order, mutation, scope and control flow are those of the original.

mod common;

use common::device;
use fuse_runtime::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn log(text: impl Into<String>) -> f32 {
    LOG.with_borrow_mut(|log| log.push(text.into()));
    1.0
}

fn row(values: &[f32]) -> Tensor<f32, 1> {
    Tensor::from_slice(values, [values.len()], device())
}

/// Runs the compiled function and the original: values and what they logged must be the same.
macro_rules! same {
    ($function:ident($($arg:expr),*)) => {{
        let compiled = format!("{:?}", $function($($arg),*));
        let compiled_log = LOG.take();
        let eager = format!("{:?}", $function::eager($($arg),*));
        assert_eq!((compiled, compiled_log), (eager, LOG.take()), stringify!($function));
    }};
}

#[compile]
fn mutated_scalars(x: &Tensor<f32, 1>, cell: &Cell<f32>) -> Tensor<f32, 1> {
    cell.set(2.0);
    let y = x * cell.get();
    cell.set(10.0);
    let mut k = 1.0;
    let mut bump = || {
        k += 1.0;
        k
    };
    let z = y * bump();
    let w = &z + bump();
    w * k
}

#[test]
fn scalars_are_read_in_order() {
    let x = row(&[1.0, 2.0]);
    same!(mutated_scalars(&x, &Cell::new(0.0)));
}

#[compile]
fn order(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = (x * log("a") + log("b")) * (x - log("c"));
    log("d");
    let parts = (log("e"), y.relu(), log(format!("{}", 6)));
    parts.1 * parts.0 + parts.2
}

#[test]
fn arguments_are_evaluated_in_order() {
    same!(order(&row(&[1.0, -2.0])));
}

#[compile]
fn labels(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    let mut y = x.clone();
    'outer: for i in 0..n {
        let mut j = 0;
        while j < 5 {
            j += 1;
            if i == 2 && j == 3 {
                y = y + 100.0;
                break 'outer;
            }
            if j == 2 {
                y = y * 2.0;
                continue 'outer;
            }
            y = y + j as f32;
        }
    }
    y - 1.0
}

#[test]
fn labelled_jumps_carry_values() {
    for n in 0..4 {
        same!(labels(&row(&[1.0, -2.0]), n));
    }
}

#[compile]
fn early(x: &Tensor<f32, 1>, n: usize) -> Option<Tensor<f32, 1>> {
    let y = x * 3.0;
    let first = [1, 2, 3].get(n)?;
    log("got");
    let Some(second) = [4.0f32, 5.0].get(n) else {
        log("none");
        return Some(y);
    };
    let z = if n == 7 { return None } else { y + *first as f32 };
    Some(z * *second)
}

#[test]
fn early_exits_leave_where_the_original_does() {
    for n in 0..4 {
        same!(early(&row(&[1.0, -2.0]), n));
    }
}

#[compile]
fn shadows(x: &Tensor<f32, 1>, flag: bool) -> (Tensor<f32, 1>, usize) {
    let n = x.size(0);
    let y = x + n as f32;
    let x = 3.0f32;
    let y = {
        let n = 7.0;
        y * n
    } * x;
    let n = n + 1;
    let flag_of_before = flag;
    let flag = !flag;
    let y = if flag { y + 1.0 } else { y - 1.0 };
    let y = if flag_of_before { y.relu() } else { y };
    (y, n)
}

#[test]
fn shadowed_names_mean_what_they_meant() {
    for flag in [false, true] {
        same!(shadows(&row(&[1.0, -2.0]), flag));
    }
}

struct Noisy(&'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        log(self.0);
    }
}

#[compile]
fn drops(x: &Tensor<f32, 1>, flag: bool) -> Tensor<f32, 1> {
    let _a = Noisy("a");
    let mut y = x * 2.0;
    {
        let _b = Noisy("b");
        y = y + 1.0;
    }
    log("after b");
    if flag {
        let _c = Noisy("c");
        y = y.relu();
    }
    log("after c");
    for _ in 0..2 {
        let _d = Noisy("d");
        y = y * 3.0;
    }
    y
}

#[test]
fn values_are_dropped_where_the_original_drops_them() {
    for flag in [false, true] {
        same!(drops(&row(&[1.0, -2.0]), flag));
    }
}

macro_rules! twice {
    ($y:ident) => {
        &$y + &$y
    };
}

#[compile]
fn macros(x: &Tensor<f32, 1>) -> String {
    let y = x * 2.0;
    let width = 3;
    let z: Tensor<f32, 1> = twice!(y);
    assert!(z.size(0) == 2, "{z:?}");
    assert_eq!(y.dims(), [2]);
    let text = format!("{:>width$} {} {y:?} {named:?}", 1, z.sum_all().item(), named = (&z * 2.0).to_vec());
    let q = z.exp();
    text + &format!("{:?}", q.dims())
}

#[test]
fn format_macros_see_what_they_name() {
    same!(macros(&row(&[1.0, -2.0])));
}

#[compile]
fn swaps(x: &Tensor<f32, 1>, y: Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let mut a = x + 1.0;
    let mut b = y.exp();
    std::mem::swap(&mut a, &mut b);
    let (mut a, mut b) = (b * 2.0, a);
    (a, b) = (b.relu(), a);
    let c = a.clone();
    a = c + &b;
    (a, b)
}

#[test]
fn swaps_and_destructuring_assignments_work() {
    same!(swaps(&row(&[1.0, -2.0]), row(&[0.5, 0.25])));
}

#[compile]
fn nested(x: &Tensor<f32, 2>, ws: &[(Tensor<f32, 2>, Option<Tensor<f32, 1>>)], scales: [f32; 2]) -> Tensor<f32, 2> {
    let mut h = x.clone();
    for (k, (w, b)) in ws.iter().enumerate() {
        let next = h.matmul(w) * scales[k];
        h = match b {
            Some(b) if k > 0 => next + b,
            Some(b) => next - b,
            None => next,
        };
    }
    for s in scales {
        h = h * s;
    }
    h
}

#[test]
fn typed_lists_and_options_are_seen_through() {
    let m = |v: [f32; 4]| Tensor::from_slice(&v, [2, 2], device());
    let ws = [(m([1.0, 2.0, 3.0, 4.0]), Some(row(&[0.5, -0.5]))), (m([0.1, 0.2, -0.3, 0.4]), Some(row(&[1.5, 2.5])))];
    same!(nested(&m([1.0, -1.0, 0.5, 2.0]), &ws, [2.0, 0.5]));
}

#[compile]
fn recursive(x: &Tensor<f32, 1>, n: usize) -> Tensor<f32, 1> {
    if n == 0 {
        return x * 1.0;
    }
    let y: Tensor<f32, 1> = recursive(&(x + 1.0), n - 1);
    y * 2.0
}

#[test]
fn recursion_calls_the_compiled_function() {
    same!(recursive(&row(&[1.0, -2.0]), 3));
}

#[compile]
fn faults_in_order(x: &Tensor<f32, 1>, index: &Tensor<i64, 1>) -> Result<Tensor<f32, 1>, Error> {
    log("before");
    let y = x.index_select(0, index);
    log("after");
    Ok(y * 2.0)
}

#[test]
fn a_failing_op_stops_what_comes_after() {
    let good = Tensor::from_slice(&[1i64, 0], [2], device());
    let bad = Tensor::from_slice(&[1i64, 5], [2], device());
    same!(faults_in_order(&row(&[1.0, -2.0]), &good));
    if !device().is_cpu() {
        // A GPU is told of the fault when it is read from.
        return;
    }
    assert_eq!(faults_in_order(&row(&[1.0, -2.0]), &bad).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(LOG.take(), ["before"]);
}

macro_rules! hygienic {
    ($name:ident, $x:ident) => {
        #[compile]
        fn $name($x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, usize) {
            let x = $x * 2.0;
            let text = format!("{x:?}");
            let y = $x + &x;
            log(format!("{text} {:?}", $x));
            (y - x, text.len())
        }
    };
}
hygienic!(two_variables_of_one_spelling, x);

#[test]
fn names_of_macros_and_callers_do_not_meet() {
    same!(two_variables_of_one_spelling(&row(&[1.0, -2.0])));
}

#[compile]
fn softmax_of_rank<const R: usize>(
    x: &Tensor<f32, R>,
    y: Tensor<f32, R>,
    scale: f32,
) -> (Tensor<f32, R>, Tensor<f32, R>) {
    let sum = x * scale + y;
    println!("{}", sum.sum_all().item());
    (sum.softmax(-1), sum)
}

fn check_rank<const R: usize>(dims: [usize; R]) {
    let (x, y) = (Tensor::randn(dims, Device::cpu()), Tensor::randn(dims.map(|extent| extent.min(2)), Device::cpu()));
    let y = if R > 1 { y.narrow(-1, 0, 1) } else { Tensor::ones(dims, Device::cpu()) };
    let ((soft, sum), (wanted, wanted_sum)) = (softmax_of_rank(&x, y.clone(), 0.5), softmax_of_rank::eager(&x, y, 0.5));
    assert_eq!((soft.dims(), soft.to_vec()), (wanted.dims(), wanted.to_vec()));
    assert_eq!(sum.to_vec(), wanted_sum.to_vec());
}

#[test]
fn a_function_of_any_rank_is_captured() {
    assert_eq!(
        softmax_of_rank::explain().breaks().iter().map(|found| found.code.as_str()).collect::<Vec<_>>(),
        ["B004"]
    );
    check_rank([]);
    check_rank([5]);
    check_rank([2, 3]);
    check_rank([2, 1, 4]);
    check_rank([1, 2, 1, 2, 2, 3]);
    // More than it was captured for: op by op.
    check_rank([1, 2, 1, 2, 2, 1, 3]);
}

#[compile]
fn doubled_of_rank<T: Float, const R: usize>(x: &mut Tensor<T, R>, flag: bool) {
    *x = if flag { x.relu() * T::from_f64(2.0) } else { x.tril(0).detach() };
}

#[test]
fn a_function_of_any_rank_and_type_writes_to_its_tensor() {
    use half::bf16;
    for flag in [true, false] {
        let mut x = Tensor::<bf16, 3>::randn([2, 3, 3], Device::cpu());
        let mut y = x.clone();
        doubled_of_rank(&mut x, flag);
        doubled_of_rank::eager(&mut y, flag);
        assert_eq!(x.to_vec(), y.to_vec());
    }
    assert!(doubled_of_rank::explain().breaks().is_empty());
}

#[compile]
fn first_axis_of_rank<const R: usize>(x: &Tensor<f32, R>) -> Tensor<f32, R> {
    x.softmax(0)
}

#[test]
fn a_function_that_depends_on_its_rank_runs_eager_and_says_so() {
    same!(first_axis_of_rank(&row(&[1.0, -2.0])));
    let breaks = first_axis_of_rank::explain().breaks();
    assert_eq!(breaks[0].code, "B017");
    assert_eq!(breaks[0].reason, "`softmax` counts an axis from the front, so the function runs op by op");
}

#[compile]
fn opaque_result(x: &Tensor<f32, 1>) -> impl std::fmt::Debug {
    x.exp()
}

#[test]
fn a_function_with_an_opaque_result_runs_eager_and_says_so() {
    same!(opaque_result(&row(&[1.0, -2.0])));
    assert_eq!(opaque_result::explain().breaks()[0].code, "B017");
}

#[compile(backend = "eager")]
fn always_eager(mut x: Tensor<f32, 1>, (y, k): (&Tensor<f32, 1>, f32)) -> Tensor<f32, 1> {
    x += y;
    x * k
}

#[compile(companion = beside)]
fn patterns(mut x: Tensor<f32, 1>, (y, k): (&Tensor<f32, 1>, f32), _: usize) -> Tensor<f32, 1> {
    x += y;
    x * k
}

#[test]
fn parameters_may_be_patterns() {
    let (x, y) = (row(&[1.0, -2.0]), row(&[0.5, 0.25]));
    let want = [4.5, -5.25];
    assert_eq!(always_eager(x.clone(), (&y, 3.0)).to_vec(), want);
    assert_eq!(patterns(x.clone(), (&y, 3.0), 1).to_vec(), want);
    assert_eq!(beside::eager(x, (&y, 3.0), 1).to_vec(), want);
    assert!(beside::explain().breaks().is_empty());
}

#[compile]
fn compared_sizes(x: &Tensor<f32, 1>, n: usize, lists: &[Vec<Tensor<f32, 1>>]) -> Tensor<f32, 2> {
    if n == 0 {
        return x.unsqueeze(0);
    }
    let mut y = x.clone();
    let k = n - 1;
    for t in lists[k].iter() {
        y = y + t;
    }
    if k == 1 && n < x.size(0) {
        y = y * n as f32;
    }
    y.reshape([n, x.size(0) / n])
}

#[test]
fn a_size_may_be_compared_before_it_shapes_a_tensor() {
    let lists = [vec![row(&[1.0, 2.0, 3.0, 4.0])], vec![row(&[0.5, 0.5, 0.5, 0.5]), row(&[2.0, 1.0, 0.0, -1.0])]];
    for n in 0..3 {
        same!(compared_sizes(&row(&[1.0, -2.0, 3.0, 0.5]), n, &lists));
    }
}

fn table(n: usize) -> Tensor<f32, 1> {
    Tensor::full([n], 0.5, device())
}

fn rate(n: usize) -> f32 {
    n as f32 * 0.25
}

#[compile]
fn unseen_receiver(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let s = table(3);
    let y: Tensor<f32, 1> = x.exp() + s.gelu();
    let z: Tensor<f32, 1> = s.abs().tanh().gelu() - y;
    z * rate(3)
}

#[compile]
fn unseen_operand(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let (s, k) = (table(3), rate(2));
    let t = s.sigmoid();
    let y: Tensor<f32, 1> = x.exp() * k + s;
    let z: Tensor<f32, 1> = t + y.relu();
    let late;
    late = rate(7);
    z.maximum(&table(3)) * late
}

#[compile]
fn unseen_parts(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let pair = (table(3), x.exp());
    let list = [table(3), table(3)];
    let y: Tensor<f32, 1> = pair.1 + pair.0.gelu();
    let z: Tensor<f32, 1> = y + list[1].gelu();
    let [a, _] = list;
    let w: Tensor<f32, 1> = a.silu() * z.where_cond_or(&a);
    let made = |n: usize| table(n).exp();
    let v: Tensor<f32, 1> = w + made(3).gelu();
    v
}

trait WhereCondOr {
    fn where_cond_or(&self, other: &Self) -> Self;
}

impl WhereCondOr for Tensor<f32, 1> {
    fn where_cond_or(&self, other: &Self) -> Self {
        self.gt(0.0).where_cond(self, other)
    }
}

#[test]
fn values_of_unseen_calls_may_be_tensors() {
    let x = row(&[1.0, -2.0, 0.5]);
    same!(unseen_receiver(&x));
    same!(unseen_operand(&x));
    same!(unseen_parts(&x));
}
