//! Numbers and constructors whose types are written in the code, and items wherever they stand.

use super::*;

#[compile]
fn signed_differences(x: &Tensor<f32, 2>) -> (Tensor<f32, 2>, i64, isize, [i64; 2]) {
    let [rows, columns] = x.dims();
    let half = (rows as i64 - columns as i64) / 2;
    let other = (rows as isize - columns as isize) / 2;
    (x * half as f32, half, other, [rows as i64, half])
}

#[compile]
fn signed_size(x: &Tensor<f32, 2>) -> i64 {
    let y = x.relu();
    y.size(0) as i64 - 5
}

#[compile]
fn slice_by_signed_sizes(x: &Tensor<f32, 2>) -> (Tensor<f32, 2>, isize) {
    let columns = x.size(1) as isize;
    (x.slice(1, 0, columns - 1), columns)
}

#[compile]
fn typed_turns(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for k in 0..3i32 {
        y = y + (k - 1).abs() as f32;
    }
    for (i, k) in (1..4u8).enumerate() {
        y = y * f32::from(k) + i as f32;
    }
    for k in (0..2i16).rev() {
        y = y + f32::from(k);
    }
    y
}

#[compile]
fn typed_elements(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut y = x.clone();
    for k in [0.5f32, 0.25] {
        y = y * k.sqrt();
    }
    for (a, b) in [(1.0f32, 2usize), (-3.0, 4)] {
        y = y + a.max(b.pow(2) as f32);
    }
    y
}

#[compile]
fn constructors_with_suffixes(x: &Tensor<f32, 2>) -> (Tensor<f32, 2>, Tensor<i64, 1>) {
    let [rows, columns] = x.dims();
    let steps = Tensor::arange(0i64, columns as i64, x.device());
    let scale = (Tensor::arange(0.0f32, columns as f32, x.device()) * 0.5).exp();
    let shift = Tensor::full([rows, 1], 2.0f32, x.device());
    let angles = x * scale.unsqueeze(0) + shift;
    (Tensor::cat([angles.cos(), angles.sin()], -1), steps + 1)
}

#[compile]
fn constructors_of_other_places(x: &Tensor<f32, 1>, device: &Device, end: f32) -> Tensor<f32, 1> {
    let y = x * Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3], device) + Tensor::<f32, 1>::ones([3], device);
    let table = Tensor::arange(0.0, end, device);
    y + (Tensor::full([1], 0.5f32, device)).exp() + table.sum_all()
}

#[compile]
fn numbers_read_from_tensors(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let mean = x.mean_all().item();
    let deviation = (x - mean).powi(2).mean_all().item().sqrt();
    let scaled = if deviation > 0.0 { (x - mean) / deviation } else { x - mean };
    let bound = scaled.max_all().item().min(1.0) * 2.0;
    scaled.clamp(-bound, bound) * bound
}

#[compile]
fn elements_that_are_changed(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, f32) {
    let mut pair = (x.clone(), 1.0f32);
    pair.0 += 1.0;
    pair.1 += 2.0;
    let mut list = [x.clone(), x * 2.0];
    list[1] += &pair.0;
    list[0] = &list[1] + x;
    double(&mut list[0]);
    list[1].copy_(x);
    let (first, second): (&Tensor<f32, 1>, &Tensor<f32, 1>) = (&list[0], &list[1]);
    (first + second, pair.1)
}

fn double(x: &mut Tensor<f32, 1>) {
    *x *= 2.0;
}

#[compile]
fn groups_that_are_printed(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, f32) {
    #[derive(Debug)]
    struct Layer<'a> {
        a: &'a Tensor<f32, 1>,
        b: Tensor<f32, 1>,
        k: f32,
    }
    let layer = Layer { a: x, b: x * 2.0, k: 3.0 };
    let pair = (x + 1.0, 2.0f32);
    let both = (x - 1.0, x.exp());
    log(format!("{layer:?} {pair:?} {both:?} {:?}", layer.a));
    let Layer { b, k, .. } = layer;
    let b: Tensor<f32, 1> = b;
    let ((c, d), (e, f)) = (pair, both);
    let k: f32 = k;
    (b * k + c * d + e / f, k)
}

#[compile]
fn divided_extent(x: &Tensor<f32, 1>, parts: usize) -> Tensor<f32, 1> {
    let n = x.size(0);
    x.narrow(0, 0, n / parts) * 2.0
}

#[compile]
fn generic_constants<T: Float>(x: &Tensor<T, 1>) -> (Tensor<T, 1>, Tensor<T, 1>) {
    (x % T::from_f64(0.3) + x * T::from_f64(0.1), x * T::from_f64(-1.5) + T::from_f64(2.0))
}

#[compile]
fn uploaded_elements(x: &Tensor<f32, 2>, at: &[i64]) -> Tensor<f32, 2> {
    let index = Tensor::from_slice(&[*at.last().unwrap()], [1], x.device());
    let y: Tensor<f32, 2> = x.index_select(0, &index);
    y * 2.0
}

#[compile]
fn items_behind_their_use(x: &Tensor<f32, 1>, flag: bool) -> Tensor<f32, 1> {
    let y: Tensor<f32, 1> = shifted(x);
    let y = y * SCALE;
    let z = if flag { y.exp() } else { y };
    fn shifted(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x + SCALE
    }
    const SCALE: f32 = 3.0;
    z + SCALE
}

#[compile]
fn rows_of_unknown_number(x: &Tensor<f32, 2>) -> Vec<Tensor<f32, 1>> {
    let mut out = Vec::new();
    for row in x.unbind(0) {
        out.push(row.softmax(0));
    }
    let parts = x.unbind(1);
    out.push(parts[0].clone());
    out
}

#[compile]
fn draws_of_two_places(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let dropped = x.dropout(0.5, true);
    let noise: Tensor<f32, 1> = Tensor::randn([3], device());
    dropped + noise
}

#[test]
fn types_that_are_written_are_kept() {
    let wide = matrix(2, [1.0, -2.0, 0.5, 3.0, 0.25, -1.0, 2.0, 1.0, 0.0, 0.5]);
    for m in [&wide, &wide.t()] {
        same!(signed_differences(m));
        same!(signed_size(m));
        same!(slice_by_signed_sizes(m));
        same!(constructors_with_suffixes(m));
        same!(numbers_read_from_tensors(m));
        same!(rows_of_unknown_number(m));
        same!(uploaded_elements(m, &[0, 1]));
    }
    for x in &rows() {
        same!(typed_turns(x));
        same!(typed_elements(x));
        same!(constructors_of_other_places(x, &device(), 4.0));
        same!(elements_that_are_changed(x));
        same!(groups_that_are_printed(x));
        same!(items_behind_their_use(x, true));
        same!(items_behind_their_use(x, false));
        same!(divided_extent(x, 2));
        same!(generic_constants(x));
        same!(generic_constants(&x.cast::<f64>()));
        same!(generic_constants(&x.cast::<f16>()));
        same!(generic_constants(&x.cast::<bf16>()));
    }
}

#[test]
#[should_panic(expected = "attempt to divide by zero")]
fn an_extent_divided_by_zero_panics() {
    divided_extent(&row(&[1.0, 2.0]), 0);
}

#[test]
fn draws_keep_their_order() {
    use fuse_runtime::Generator;
    let x = row(&[1.0, -2.0, 0.5]);
    let compiled = Generator::new(5).scope(|| draws_of_two_places(&x).to_vec());
    assert_eq!(compiled, Generator::new(5).scope(|| draws_of_two_places::eager(&x).to_vec()));
}

#[compile(backend = "eager")]
fn fails_op_by_op(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> Result<Tensor<f32, 1>, Box<dyn std::error::Error>> {
    Ok(x + w)
}

#[compile]
fn fails_with_an_open_rank<const R: usize>(x: &Tensor<f32, R>, w: &Tensor<f32, R>) -> Result<Tensor<f32, R>, Error> {
    Ok(x + w)
}

#[compile]
const fn constant(n: usize) -> usize {
    n + 1
}

#[test]
fn failures_of_ops_become_results_op_by_op() {
    let (x, w) = (row(&[1.0, 2.0, 3.0]), row(&[1.0, 2.0]));
    let text = "`add`: extents 3 and 2 neither are equal nor is one of them 1";
    assert_eq!(fails_op_by_op(&x, &w).unwrap_err().to_string(), text);
    assert_eq!(fails_with_an_open_rank(&x, &w).unwrap_err().to_string(), text);
    assert_eq!(constant(2), 3);
}
