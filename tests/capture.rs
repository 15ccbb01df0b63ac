//! Functions with every kind of statement that capture knows: compiled gives what the original gives.

mod common;

use common::device;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use std::future::Future;

fn row(values: &[f32]) -> Tensor<f32, 1> {
    Tensor::from_slice(values, [values.len()], device())
}

fn matrix<const N: usize>(rows: usize, values: [f32; N]) -> Tensor<f32, 2> {
    Tensor::from_slice(&values, [rows, N / rows], device())
}

/// The bits of a tensor.
fn bits<const R: usize>(tensor: &Tensor<f32, R>) -> (Vec<usize>, Vec<u32>) {
    (tensor.dims().to_vec(), tensor.to_vec().iter().map(|x| x.to_bits()).collect())
}

#[track_caller]
fn same<const R: usize>(compiled: &Tensor<f32, R>, eager: &Tensor<f32, R>) {
    assert_eq!(bits(compiled), bits(eager), "compiled {:?}, eager {:?}", compiled.to_vec(), eager.to_vec());
}

#[compile]
fn feed_forward(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(D, H)] w: &Tensor<f32, 2>,
    #[dims(H)] b: &Tensor<f32, 1>,
) -> Tensor<f32, 2> {
    let h = (x.matmul(w) + b).gelu();
    h * 2.0 - 0.5
}

#[test]
fn straight_line_ops_are_captured() {
    let x = matrix(2, [1.0, -2.0, 0.5, 3.0, 0.25, -1.0]);
    let w = matrix(3, [0.5, -1.0, 2.0, 1.5, -0.75, 0.1]);
    let b = row(&[0.1, -0.2]);
    same(&feed_forward(&x, &w, &b), &feed_forward::eager(&x, &w, &b));
    assert!(feed_forward::CUDA.contains("__global__"));
}

#[compile]
fn host_scalars(x: &Tensor<f32, 1>, lr: f32) -> Tensor<f32, 1> {
    let mut k = 2.0;
    let y = x * k + lr;
    k = 10.0;
    let lr = lr * 0.5;
    y - k * x * lr + (1.0 - x)
}

#[test]
fn host_scalars_are_read_where_the_op_stands() {
    let x = row(&[1.0, -2.0, 3.5]);
    same(&host_scalars(&x, 0.3), &host_scalars::eager(&x, 0.3));
}

#[compile]
fn heads(x: &Tensor<f32, 3>, heads: usize) -> Tensor<f32, 4> {
    let [b, s, d] = x.dims();
    let width = d / heads;
    let y = x.relu().reshape([b, s, heads, width]).permute([0, 2, 1, 3]);
    let rows = y.size(2);
    println!("{rows} rows of {width}");
    y * rows as f32
}

#[test]
fn shape_values_are_part_of_the_graph() {
    let x = Tensor::from_vec((0..24).map(|i| i as f32 - 9.0).collect(), [2, 3, 4], device());
    same(&heads(&x, 2), &heads::eager(&x, 2));
}

#[compile(fullgraph)]
fn unrolled(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for i in 0..3 {
        if i == 1 {
            continue;
        }
        y = y.relu() + i as f32;
    }
    for (k, t) in [x, w].iter().enumerate() {
        y += *t * k as f32;
        if k == 5 {
            break;
        }
    }
    y
}

#[test]
fn constant_loops_are_unrolled() {
    let (x, w) = (row(&[1.0, -2.0, 3.5]), row(&[0.5, 0.25, -1.0]));
    same(&unrolled(&x, &w), &unrolled::eager(&x, &w));
}

enum Activation {
    Relu,
    Gelu,
    Scaled { by: f32 },
}

#[compile(fullgraph)]
fn branches(x: &Tensor<f32, 1>, act: Activation, training: bool, bias: Option<&Tensor<f32, 1>>) -> Tensor<f32, 1> {
    let mut y = match act {
        Activation::Relu => x.relu(),
        Activation::Gelu => x.gelu(),
        Activation::Scaled { by } if by > 0.0 => x * by,
        Activation::Scaled { by } => x - by,
    };
    if training {
        y = y * 2.0;
    }
    if let Some(b) = bias {
        y = y + b;
    }
    y.exp()
}

#[test]
fn host_branches_are_paths() {
    let (x, b) = (row(&[1.0, -2.0, 3.5]), row(&[0.1, 0.2, 0.3]));
    let acts = || [Activation::Relu, Activation::Gelu, Activation::Scaled { by: 2.5 }, Activation::Scaled { by: -1.0 }];
    for training in [false, true] {
        for bias in [None, Some(&b)] {
            for (left, right) in acts().into_iter().zip(acts()) {
                same(&branches(&x, left, training, bias), &branches::eager(&x, right, training, bias));
            }
        }
    }
}

#[compile]
fn many_paths(x: &Tensor<f32, 1>, flags: [bool; 6]) -> Tensor<f32, 1> {
    let mut y = x + 0.0;
    if flags[0] {
        y = y + 1.0;
    }
    if flags[1] {
        y = y * 3.0;
    }
    if flags[2] {
        y = y.relu();
    }
    if flags[3] {
        y = y - x;
    }
    if flags[4] {
        y = &y * &y;
    }
    if flags[5] {
        y = -y;
    }
    y
}

#[test]
fn more_than_sixteen_paths_become_host_branches() {
    let x = row(&[1.0, -2.0, 3.5]);
    for mask in 0..64 {
        let flags = std::array::from_fn(|k| mask >> k & 1 == 1);
        same(&many_paths(&x, flags), &many_paths::eager(&x, flags));
    }
}

#[compile]
fn data_branch(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = x * 2.0;
    let scale = y.abs().max_all().item();
    if y.mean_all().item() > 0.2 { y.relu() / scale } else { y.exp() * (scale + 1.0) }
}

#[test]
fn data_decides_on_the_host() {
    for values in [[1.0, 2.0], [-1.0, -2.0]] {
        let x = row(&values);
        same(&data_branch(&x), &data_branch::eager(&x));
    }
}

#[compile]
fn run_time_loops(x: &Tensor<f32, 2>, layers: &[Tensor<f32, 2>], n: usize) -> Tensor<f32, 2> {
    let mut h = x.relu();
    let mut total = x.clone();
    for (k, w) in layers.iter().enumerate() {
        h = h.matmul(w).relu();
        if k == n {
            break;
        }
        if k == 1 {
            continue;
        }
        total = total + &h * 0.5;
    }
    while h.max_all().item() > 1.0 {
        h = h * 0.5;
    }
    let last = loop {
        h = h + 1.0;
        if h.sum_all().item() > 100.0 {
            break h.clone() * 2.0;
        }
    };
    h + total - last
}

#[test]
fn run_time_loops_stay_loops() {
    let x = matrix(2, [1.0, -2.0, 0.5, 3.0]);
    let layers = [matrix(2, [1.0, 2.0, -0.5, 1.0]), matrix(2, [0.5, 0.25, 1.5, 1.0]), matrix(2, [0.1, 2.0, -0.5, 4.0])];
    for n in 0..4 {
        same(&run_time_loops(&x, &layers, n), &run_time_loops::eager(&x, &layers, n));
    }
}

fn helper(x: &Tensor<f32, 1>, fail: bool) -> Result<Tensor<f32, 1>, Error> {
    if fail { Err(Error::shape("helper", "told to fail")) } else { Ok(x * 3.0) }
}

#[compile]
fn fallible(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>, fail: bool) -> Result<(Tensor<f32, 1>, f32), Error> {
    let a = x * 2.0;
    let b: Tensor<f32, 1> = helper(&a.relu(), fail)?;
    if a.size(0) == 1 {
        return Ok((a, 1.0));
    }
    Ok((b + &a * y, a.sum_all().item()))
}

#[test]
fn errors_of_calls_and_ops_are_returned() {
    let (x, y, z) = (row(&[1.0, -2.0, 3.0]), row(&[1.0, 2.0, 4.0]), row(&[1.0, 2.0]));
    let (compiled, eager) = (fallible(&x, &y, false).unwrap(), fallible::eager(&x, &y, false).unwrap());
    same(&compiled.0, &eager.0);
    assert_eq!(compiled.1, eager.1);
    assert_eq!(fallible(&x, &y, true).unwrap_err().to_string(), "`helper`: told to fail");
    assert_eq!(fallible(&x, &z, false).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(fallible(&row(&[4.0]), &z, false).unwrap().1, 1.0);
}

#[compile]
fn dims_on_entry(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(B, 3 * D)] y: &Tensor<f32, 2>,
) -> Result<Tensor<f32, 2>, Error> {
    let [a, b, c] = y.chunk(1);
    Ok(x + a * b - c)
}

#[compile(backend = "eager")]
fn dims_op_by_op(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(B, 3 * D)] mut y: Tensor<f32, 2>,
) -> Result<Tensor<f32, 2>, Error> {
    y += 1.0;
    Ok(x + y.sum_all())
}

#[compile]
fn dims_between_breaks(#[dims(N)] x: &Tensor<f32, 1>, #[dims(2 * N)] y: &Tensor<f32, 1>) -> f32 {
    x.to_vec()[0] + y.to_vec()[0]
}

#[compile]
async fn dims_in_a_future(#[dims(N)] x: &Tensor<f32, 1>, #[dims(N)] y: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x + y.sum_all()
}

#[test]
fn named_dims_are_checked_on_entry() {
    let x = matrix(1, [1.0, 2.0]);
    let good = matrix(1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    same(&dims_on_entry(&x, &good).unwrap(), &dims_on_entry::eager(&x, &good).unwrap());
    let error = dims_on_entry(&x, &matrix(1, [1.0, 2.0, 3.0])).unwrap_err();
    assert_eq!(error.to_string(), "`dims_on_entry`: axis 1 of `y` is 3, but `3 * D` is 6");
}

#[compile]
fn dims_of_options(
    #[dims(N)] x: &Tensor<f32, 1>,
    #[dims(N)] bias: Option<&Tensor<f32, 1>>,
    #[dims(2 * N)] scale: &Option<Tensor<f32, 1>>,
) -> Result<Tensor<f32, 1>, Error> {
    let y = if let Some(bias) = bias { x + bias } else { x.exp() };
    Ok(match scale {
        Some(scale) => y * scale.sum_all(),
        None => y,
    })
}

#[test]
fn named_dims_of_an_option_are_checked_where_it_is_there() {
    let (x, y) = (row(&[1.0, 2.0]), row(&[1.0, 2.0, 3.0, 4.0]));
    for (bias, scale) in [(None, None), (Some(&x), None), (None, Some(y.clone())), (Some(&x), Some(y.clone()))] {
        let (compiled, eager) = (dims_of_options(&x, bias, &scale), dims_of_options::eager(&x, bias, &scale));
        same(&compiled.unwrap(), &eager.unwrap());
    }
    let error = dims_of_options(&x, Some(&y), &None).unwrap_err();
    assert_eq!(error.to_string(), "`dims_of_options`: axis 0 of `bias` is 4, but `N` is 2");
    let error = dims_of_options(&x, None, &Some(x.clone())).unwrap_err();
    assert_eq!(error.to_string(), "`dims_of_options`: axis 0 of `scale` is 2, but `2 * N` is 4");
}

type Fallible<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[compile]
fn result_of_another_name(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>, n: usize) -> Fallible<Tensor<f32, 1>> {
    let z = x + y;
    match n {
        0 => Err("no n".into()),
        n => Ok(z * n as f32),
    }
}

#[compile(backend = "eager")]
fn result_of_another_name_returned_early(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>, n: usize) -> Fallible<f32> {
    if n > 0 {
        return Ok((x + y).sum_all().item());
    }
    "1.5".parse::<f32>().map_err(Into::into)
}

#[test]
fn a_result_of_another_name_is_one() {
    let (x, y) = (row(&[1.0, 2.0]), row(&[1.0, 2.0, 3.0]));
    same(&result_of_another_name(&x, &x, 2).unwrap(), &result_of_another_name::eager(&x, &x, 2).unwrap());
    assert_eq!(result_of_another_name(&x, &x, 0).unwrap_err().to_string(), "no n");
    let error = result_of_another_name(&x, &y, 1).unwrap_err();
    assert_eq!(error.downcast_ref::<Error>().map(Error::kind), Some(ErrorKind::Shape));
    let error = result_of_another_name_returned_early(&x, &y, 1).unwrap_err();
    assert_eq!(error.downcast_ref::<Error>().map(Error::kind), Some(ErrorKind::Shape));
    assert_eq!(result_of_another_name_returned_early(&x, &y, 0).unwrap(), 1.5);
}

#[test]
fn named_dims_are_checked_where_a_function_runs_op_by_op() {
    let (x, y) = (matrix(1, [1.0, 2.0]), matrix(1, [1.0, 2.0, 3.0]));
    let error = dims_op_by_op(&x, y.clone()).unwrap_err();
    assert_eq!(error.to_string(), "`dims_op_by_op`: axis 1 of `y` is 3, but `3 * D` is 6");
    assert!(dims_op_by_op(&x, matrix(1, [0.0; 6])).is_ok());
    let error = catch(|| dims_between_breaks(&row(&[1.0]), &row(&[1.0]))).unwrap_err();
    assert_eq!(error.to_string(), "`dims_between_breaks`: axis 0 of `y` is 1, but `2 * N` is 2");
    let (x, y) = (x.reshape([2]), y.reshape([3]));
    let mut future = Box::pin(dims_in_a_future(&x, &y));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let error = catch(|| drop(future.as_mut().poll(&mut context))).unwrap_err();
    assert_eq!(error.to_string(), "`dims_in_a_future`: axis 0 of `y` is 3, but `N` is 2");
}

#[compile]
fn generic<T: Float>(x: &Tensor<T, 2>, scale: T) -> Tensor<T, 2> {
    let y = (x * T::from_f64(2.0)).softmax(-1);
    y * scale
}

#[test]
fn generic_element_types_are_one_function() {
    let x = matrix(2, [1.0, -2.0, 0.5, 3.0]);
    same(&generic(&x, 0.5), &generic::eager(&x, 0.5));
    let wide = x.cast::<f64>();
    assert_eq!(generic(&wide, 0.5).to_vec(), generic::eager(&wide, 0.5).to_vec());
    let half = x.cast::<bf16>();
    let scale = bf16::from_f32(0.5);
    assert_eq!(generic(&half, scale).to_vec(), generic::eager(&half, scale).to_vec());
}

struct Layer {
    w: Tensor<f32, 2>,
    b: Tensor<f32, 1>,
    scale: f32,
}

#[compile]
impl Layer {
    /// Applies the layer.
    pub fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        let w: &Tensor<f32, 2> = &self.w;
        let b: &Tensor<f32, 1> = &self.b;
        x.linear(w, b).relu() * self.scale
    }

    fn set_scale(&mut self, scale: f32) {
        self.scale = scale;
    }
}

#[test]
fn fields_are_run_time_inputs() {
    let mut layer = Layer { w: matrix(2, [1.0, 2.0, 3.0, 4.0]), b: row(&[0.5, -0.5]), scale: 3.0 };
    let x = matrix(2, [1.0, -1.0, 2.0, 0.5]);
    same(&layer.forward(&x), &layer.forward_eager(&x));
    layer.set_scale(7.0);
    layer.w = matrix(2, [0.5, 0.25, -1.0, 2.0]);
    same(&layer.forward(&x), &layer.forward_eager(&x));
    assert!(Layer::FORWARD_CUDA.contains("__global__"));
}

#[compile]
fn blocks_and_shadowing(x: &Tensor<f32, 1>, k: f32) -> (Tensor<f32, 1>, [Tensor<f32, 1>; 2]) {
    let mut y = x.exp();
    {
        let k = format!("{k}").parse::<f32>().unwrap() + 1.0;
        y = y * k;
    }
    let x = {
        let x = x * 2.0;
        x + &y
    };
    let add = |t: &Tensor<f32, 1>| t + &y;
    let z: Tensor<f32, 1> = add(&x);
    let late;
    if k > 0.0 {
        late = z.relu();
    } else {
        late = z * k;
    }
    (late, [x, y * k])
}

#[test]
fn blocks_closures_and_late_bindings_behave() {
    let x = row(&[1.0, -2.0, 0.5]);
    for k in [2.0, -3.0] {
        let (compiled, eager) = (blocks_and_shadowing(&x, k), blocks_and_shadowing::eager(&x, k));
        same(&compiled.0, &eager.0);
        same(&compiled.1[0], &eager.1[0]);
        same(&compiled.1[1], &eager.1[1]);
    }
}

/// Case 110: a container that changes across breaks.
#[compile]
fn container(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, usize) {
    let mut v = vec![];
    let y = x * 3.0;
    v.push(y.clone());
    v.push(y + 1.0);
    let r: Tensor<f32, 1> = v.pop().unwrap();
    (r + v.len() as f32, v.len())
}

#[test]
fn host_containers_keep_their_changes() {
    let x = row(&[7.0]);
    let (r, len) = container(&x);
    assert_eq!((r.to_vec(), len), (vec![23.0], 1));
}

std::thread_local! {
    static LOG: std::cell::RefCell<Vec<&'static str>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn log(line: &'static str) {
    LOG.with_borrow_mut(|log| log.push(line));
}

fn noisy(_: &Tensor<f32, 1>) -> bool {
    log("noisy");
    true
}

/// Case 112: only the side that is taken runs.
#[compile]
fn short_circuit(a: &Tensor<f32, 1>, b: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let x = a * 0.5 + 1.0;
    let b2 = if b.sum_all().item() < 0.0 {
        log("neg");
        -b
    } else {
        b.clone()
    };
    let ok = b.max_all().item() > 9.0 && noisy(b);
    if ok { x } else { x * b2 }
}

#[test]
fn only_the_taken_side_runs() {
    let a = row(&[1.0, -3.0]);
    assert_eq!(short_circuit(&a, &row(&[1.0, 2.0])).to_vec(), [1.5, -1.0]);
    assert!(LOG.take().is_empty());
    assert_eq!(short_circuit(&a, &row(&[-5.0, 2.0])).to_vec(), [7.5, 1.0]);
    assert_eq!(LOG.take(), ["neg"]);
}

static FACTOR: std::sync::RwLock<f32> = std::sync::RwLock::new(2.0);

/// Case 114: globals are read at every call.
#[compile]
fn globals(x: &Tensor<f32, 1>, k: &[f32; 1]) -> Tensor<f32, 1> {
    x * *FACTOR.read().unwrap() + k[0]
}

#[test]
fn globals_are_read_at_every_call() {
    let x = row(&[1.0]);
    assert_eq!(globals(&x, &[3.0]).to_vec(), [5.0]);
    *FACTOR.write().unwrap() = 5.0;
    assert_eq!(globals(&x, &[7.0]).to_vec(), [12.0]);
}

/// Case 115: every read on the host has its value.
#[compile]
fn reads(x: &Tensor<f32, 1>) -> f32 {
    let mut worst = 0.0f32;
    for i in 0..200usize {
        let k = i as f32;
        let y = x * 3.0 + k;
        let v = y.narrow(0, 999, 1).sum_all().item();
        worst = worst.max((v - (3.0 + k)).abs());
    }
    worst
}

#[test]
fn every_read_waits_for_its_value() {
    assert_eq!(reads(&Tensor::ones([1000], device())), 0.0);
}

#[compile(fullgraph)]
fn device_select(x: &Tensor<f32, 1>, k: f32) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let mut z = x * 3.0;
    let y = if x.sum_all().item() >= k {
        z = z + 1.0;
        x.relu()
    } else {
        let t = x * k;
        t - 0.5
    };
    let w = if z.max_all().item() == z.min_all().item() { y.clone() } else { &y + &z };
    (w, z)
}

#[test]
fn cheap_branches_on_data_are_selects() {
    for values in [[1.0, 2.0, 0.5], [-3.0, 1.0, -0.0], [f32::NAN, 1.0, 2.0], [2.0, 2.0, 2.0]] {
        let x = row(&values);
        let (compiled, eager) = (device_select(&x, 0.25), device_select::eager(&x, 0.25));
        same(&compiled.0, &eager.0);
        same(&compiled.1, &eager.1);
    }
    assert!(device_select::explain().breaks().is_empty());
}
