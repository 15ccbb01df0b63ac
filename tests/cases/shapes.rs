//! Broadcasting, empty and rank-0 tensors, sizes that change from call to call.

use crate::cases::*;

traps! {
    fn zero_by_one(a: f32 2, b: f32 2, c: f32 0) -> (Tensor<f32, 2>, Tensor<f32, 2>, Tensor<f32, 0>) {
        (a + b, a * c, (a + b).sum_all())
    }
    fn sum_of_two(a: f32 2, b: f32 2) -> Tensor<f32, 2> {
        a + b
    }
    fn rank_0(x: f32 0, m: f32 2) -> ([Tensor<f32, 0>; 5], Tensor<i64, 0>) {
        ([x.sum_all(), x.mean_all(), x.max_all(), 5.0 + x, (m * x).sum_all()], x.argmax_all())
    }
    fn reduced_scalar(x: f32 0) -> [Tensor<f32, 0>; 8] {
        [x.sum(0), x.mean(-1), x.max(0), x.min(-1), x.prod(0), x.norm(-1), x.var_correction(0, 0), x.logsumexp(0)]
    }
    fn kept_scalar(x: f32 0) -> ([Tensor<f32, 0>; 4], [Tensor<i64, 0>; 4]) {
        let places = [x.argmax(0), x.argmin(-1), x.argmax_keepdim(0), x.gt(1.0).sum(0)];
        ([x.sum_keepdim(0), x.mean_keepdim(-1), x.max_keepdim(0), x.std_correction(-1, 0)], places)
    }
    fn scalar_along(x: f32 0) -> [Tensor<f32, 0>; 7] {
        let y = x * 1.0;
        [y.softmax(0), y.log_softmax(-1), y.cumsum(0), y.flip([0]), y.transpose(0, -1), y.squeeze(0), y.unsqueeze(0).squeeze(-1)]
    }
    fn scalar_at(x: f32 0, at: i64 0, list: i64 1) -> [Tensor<f32, 0>; 5] {
        [
            x.gather(0, at),
            x.index_select(-1, list),
            x.scatter_add(0, at, x),
            x.index_add(-1, list, x),
            x.index_copy(0, list, &(x + 1.0)),
        ]
    }
    fn variance_of_one(x: f32 0) -> [Tensor<f32, 0>; 2] {
        [x.var(0), x.std(-1)]
    }
    fn empty_axis(x: f32 2, y: i32 2) -> (Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>, Tensor<i64, 1>) {
        (x.sum(1), x.prod(1), x.mean(1), x.var(1), x.logsumexp(1), y.sum(1))
    }
    fn empty_softmax(x: f32 2) -> Tensor<f32, 2> {
        x.softmax(1)
    }
    fn largest(x: f32 2) -> Tensor<f32, 1> {
        x.max(1)
    }
    fn where_largest(x: f32 2) -> Tensor<i64, 1> {
        x.argmin(1)
    }
    fn run_time_one(a: f32 1, b: f32 1) -> Tensor<f32, 2> {
        let ([n], [m]) = (a.dims(), b.dims());
        a.reshape([n / 4, 4]) * b.reshape([m / 4, 4])
    }
    fn long_rows(x: f32 2) -> (Tensor<f32, 1>, Tensor<f32, 2>, Tensor<f32, 2>) {
        (x.sum(1), x.softmax(1), x.t() + 1.0)
    }
    fn long_columns(y: f32 3) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
        (y.sum(2), y.sum(1))
    }
    fn nothing(e: f32 2) -> (Tensor<f32, 2>, Tensor<f32, 1>, Tensor<f32, 1>) {
        (e * 2.0, e.sum(1), e.sum(0))
    }
    fn any_size(x: f32 2, w: f32 1) -> Tensor<f32, 1> {
        (x * w).sum(1) + x.mean_all()
    }
    fn running_sums(x: f32 2) -> Tensor<f32, 2> {
        x.cumsum(1) + x
    }
    fn running_sums_f64(x: f64 2) -> Tensor<f64, 2> {
        x.cumsum(1) + x
    }
}

fn empty(rows: usize, columns: usize) -> Tensor<f32, 2> {
    tensor([], [rows, columns])
}

#[test]
fn case_050_size_0_against_size_1() {
    let inputs = (empty(2, 0), Tensor::from([[1.0f32], [2.0]]), scalar(3.0f32));
    zero_by_one::trap().exactly(inputs, (empty(2, 0), empty(2, 0), scalar(0.0f32)));
    sum_of_two::trap().refuses((empty(2, 0), Tensor::from([[1.0f32, 2.0], [3.0, 4.0]])), ErrorKind::Shape);
}

#[test]
fn case_052_rank_0_acts_as_one_element() {
    let m = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    rank_0::trap().exactly((scalar(3.0f32), m), ([3.0f32, 3.0, 3.0, 8.0, 30.0].map(scalar), scalar(0i64)));
}

#[test]
fn a_scalar_along_an_axis_is_one_element() {
    let x = || scalar(3.0f32);
    reduced_scalar::trap().nearly((x(),), [3.0f32, 3.0, 3.0, 3.0, 3.0, 3.0, 0.0, 3.0].map(scalar));
    kept_scalar::trap().exactly((x(),), ([3.0f32, 3.0, 3.0, 0.0].map(scalar), [0i64, 0, 0, 1].map(scalar)));
    scalar_along::trap().exactly((x(),), [1.0f32, 0.0, 3.0, 3.0, 3.0, 3.0, 3.0].map(scalar));
    variance_of_one::trap().exactly((x(),), [f32::NAN; 2].map(scalar));
    let want = [3.0f32, 3.0, 6.0, 6.0, 4.0].map(scalar);
    scalar_at::trap().exactly((x(), scalar(0i64), Tensor::from([0i64])), want);
    scalar_at::trap().refuses((x(), scalar(0i64), Tensor::from([0i64, 0])), ErrorKind::Shape);
}

#[test]
fn a_scalar_has_one_position() {
    alone("cases::shapes::a_scalar_has_one_position", || {
        let inputs = (scalar(3.0f32), scalar(1i64), Tensor::from([0i64]));
        scalar_at::trap().refuses(inputs, ErrorKind::Index);
    });
}

/// What has no meaning without an axis is refused, as in PyTorch.
#[test]
fn a_scalar_has_no_parts() {
    let x = scalar(3.0f32).to_device(device());
    let kind = |run: &dyn Fn() -> usize| fuse_runtime::error::catch(run).map_err(|error| error.kind());
    assert_eq!(kind(&|| x.narrow(0, 0, 1).numel()), Err(ErrorKind::Shape));
    assert_eq!(kind(&|| x.slice(0, 0, 1).numel()), Err(ErrorKind::Shape));
    assert_eq!(kind(&|| x.chunk::<1>(0).len()), Err(ErrorKind::Shape));
    assert_eq!(kind(&|| x.unbind(0).len()), Err(ErrorKind::Shape));
    assert_eq!(kind(&|| x.cumsum(1).numel()), Err(ErrorKind::Shape));
}

#[test]
fn case_053_reductions_over_an_empty_axis() {
    let two = |x: f32| Tensor::from([x, x]);
    let want = (two(0.0), two(1.0), two(f32::NAN), two(f32::NAN), two(f32::NEG_INFINITY), Tensor::from([0i64, 0]));
    empty_axis::trap().exactly((empty(2, 0), tensor([], [2, 0])), want);
    empty_softmax::trap().exactly((empty(2, 0),), empty(2, 0));
    largest::trap().refuses((empty(2, 0),), ErrorKind::Shape);
    where_largest::trap().refuses((empty(2, 0),), ErrorKind::Shape);
    largest::trap().exactly((empty(0, 2),), tensor::<f32, 1>([], [0]));
}

#[test]
fn case_055_an_extent_is_1_only_at_run_time() {
    let a = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
    let b = Tensor::from([10.0f32, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]);
    let want = Tensor::from([[10.0f32, 40.0, 90.0, 160.0], [50.0, 120.0, 210.0, 320.0]]);
    run_time_one::trap().exactly((a.clone(), b.clone()), want.clone());
    run_time_one::trap().exactly((b.clone(), a), want);
    let squares = tensor((1..=8).map(|k| (100 * k * k) as f32), [2, 4]);
    run_time_one::trap().exactly((b.clone(), b), squares);
}

#[test]
fn case_092_long_axes_and_no_elements() {
    let x = tensor((0..210_000).map(|i| (i / 3) as f32), [70_000, 3]);
    let want = (
        tensor((0..70_000).map(|i| 3.0 * i as f32), [70_000]),
        tensor((0..210_000).map(|_| 1.0f32 / 3.0), [70_000, 3]),
        tensor((0..210_000).map(|i| (i % 70_000) as f32 + 1.0), [3, 70_000]),
    );
    long_rows::trap().nearly((x,), want);
    let y = tensor((0..420_000).map(|i| (i % 2) as f32), [3, 70_000, 2]);
    let want = (tensor((0..210_000).map(|_| 1.0f32), [3, 70_000]), Tensor::from([[0.0f32, 70_000.0]; 3]));
    long_columns::trap().exactly((y,), want);
    nothing::trap().exactly((empty(0, 5),), (empty(0, 5), tensor::<f32, 1>([], [0]), Tensor::from([0.0f32; 5])));
}

#[test]
fn case_117_sizes_0_and_1_in_any_order() {
    let w = Tensor::from([1.0f32, 10.0, 100.0]);
    for n in [1usize, 2, 7, 0, 1, 2, 500] {
        let x = tensor((0..3 * n).map(|i| (i / 3 + 1) as f32), [n, 3]);
        let mean = (n as f32 + 1.0) / 2.0;
        any_size::trap().nearly((x, w.clone()), tensor((0..n).map(|i| 111.0 * (i + 1) as f32 + mean), [n]));
    }
}

#[test]
fn case_119_the_same_extents_in_other_layouts_and_types() {
    let x = tensor((0..16).map(|i| i as f32), [4, 4]).to_device(device());
    let views = [x.clone(), x.t(), x.slice(1, 0, 2), x.slice(1, 1, 2).expand([4, 4])];
    for view in &views {
        let copy = Tensor::from_vec(view.to_vec(), view.dims(), device());
        assert_eq!(running_sums::alone(view).to_vec2(), running_sums::alone::eager(&copy).to_vec2());
    }
    assert_eq!(running_sums::alone(&views[1]).to_vec2()[0], [0.0, 8.0, 20.0, 36.0]);
    let wide = x.cast::<f64>();
    assert_eq!(running_sums_f64::alone(&wide).to_vec(), running_sums_f64::alone::eager(&wide).to_vec());
}
