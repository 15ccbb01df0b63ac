//! fp8: its values, what moves them, and products with a scale for each operand, eager and compiled.

mod common;

use common::device;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use fuse_runtime::safetensors;

/// Extents m, n and k: single elements, ragged tiles, whole ones, several stages, nothing to add, nothing at all.
const SIZES: [[usize; 3]; 10] = [
    [1, 1, 1],
    [17, 3, 257],
    [128, 128, 128],
    [129, 130, 33],
    [128, 256, 512],
    [300, 264, 656],
    [1, 1025, 64],
    [5, 7, 0],
    [0, 3, 16],
    [3, 0, 16],
];

fn all_values() -> Vec<f8e4m3> {
    (0..=255).map(f8e4m3::from_bits).collect()
}

/// The bits of every element, with one pattern for NaN.
fn bits<const R: usize>(x: &Tensor<f8e4m3, R>) -> Vec<u8> {
    x.to_vec().into_iter().map(|x| if x.is_nan() { 0x7F } else { x.to_bits() }).collect()
}

/// Numbers between -1 and 1, the same in every run.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

#[compile]
fn widened(x: &Tensor<f8e4m3, 1>) -> (Tensor<f32, 1>, Tensor<f16, 1>, Tensor<f64, 1>, Tensor<i64, 1>) {
    (x.cast::<f32>(), x.cast::<f16>(), x.cast::<f64>(), x.cast::<i64>())
}

#[test]
fn every_value_is_the_same_in_wider_types() {
    let x = Tensor::from(all_values()).to_device(device());
    for (single, half, double, whole) in [widened(&x), widened::eager(&x)] {
        let wide = (single.to_vec(), half.to_vec(), double.to_vec(), whole.to_vec());
        for (n, want) in all_values().into_iter().map(f8e4m3::to_f32).enumerate() {
            let same = |got: f64| got == f64::from(want) && got.is_sign_negative() == want.is_sign_negative();
            let found = [wide.0[n].into(), wide.1[n].to_f64(), wide.2[n]];
            assert!(found.iter().all(|&got| same(got) || got.is_nan() && want.is_nan()), "{n}: {found:?}, {want}");
            assert_eq!(wide.3[n], want as i64);
        }
        assert_eq!(bits(&single.cast()), bits(&x));
    }
}

#[compile]
fn narrowed(x: &Tensor<f32, 1>) -> (Tensor<f8e4m3, 1>, Tensor<f32, 1>) {
    let narrow = x.cast::<f8e4m3>();
    let back = narrow.cast::<f32>() * 1.0;
    (narrow, back)
}

#[compile]
fn from_others(
    h: &Tensor<f16, 1>,
    b: &Tensor<bf16, 1>,
    n: &Tensor<i64, 1>,
) -> (Tensor<f8e4m3, 1>, Tensor<f8e4m3, 1>, Tensor<f8e4m3, 1>) {
    (h.cast::<f8e4m3>(), b.cast::<f8e4m3>(), n.cast::<f8e4m3>())
}

#[test]
fn casts_round_to_nearest_and_to_even_and_beyond_the_range_to_nan() {
    let values: Vec<f32> = all_values().into_iter().map(f8e4m3::to_f32).filter(|x| x.is_finite()).collect();
    let mut inputs: Vec<f32> = vec![480.0, 1e30, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-30, -0.0, 464.0];
    for pair in values.windows(2) {
        let tie = (pair[0] + pair[1]) / 2.0;
        inputs.extend([tie, tie.next_up(), tie.next_down()]);
    }
    let want: Vec<f8e4m3> = inputs.iter().map(|&x| f8e4m3::from_f32(x)).collect();
    let want = Tensor::from(want);
    let x = Tensor::from(inputs.clone()).to_device(device());
    for (narrow, back) in [narrowed(&x), narrowed::eager(&x)] {
        assert_eq!(bits(&narrow), bits(&want));
        assert_eq!(bits(&back.cast()), bits(&want));
    }

    let (half, brain) = (x.cast::<f16>(), x.cast::<bf16>());
    let whole = Tensor::arange(-500i64, 500, device());
    for (of_half, of_brain, of_whole) in [from_others(&half, &brain, &whole), from_others::eager(&half, &brain, &whole)]
    {
        let rounded = |wide: Vec<f64>| bits(&Tensor::from(wide.into_iter().map(f8e4m3::from_f64).collect::<Vec<_>>()));
        assert_eq!(bits(&of_half), rounded(half.to_vec().into_iter().map(f64::from).collect()));
        assert_eq!(bits(&of_brain), rounded(brain.to_vec().into_iter().map(f64::from).collect()));
        assert_eq!(bits(&of_whole), rounded((-500..500).map(f64::from).collect()));
    }
}

#[compile]
fn moved<T: Float>(
    x: &Tensor<f8e4m3, 2>,
    wide: &Tensor<T, 2>,
    rows: &Tensor<i64, 1>,
    mask: &Tensor<bool, 2>,
) -> (Tensor<f8e4m3, 2>, Tensor<f8e4m3, 3>, Tensor<f8e4m3, 2>, Tensor<bool, 2>) {
    let y = wide.cast::<f8e4m3>();
    let chosen = mask.where_cond(x, &y).index_select(0, rows);
    let turned = Tensor::cat([x.flip([1]), y.slice(0, 1, -1)], 0).t();
    (turned, Tensor::stack([x, &y], 1), chosen, x.gt(&y))
}

#[test]
fn values_are_moved_as_they_are() {
    let x = Tensor::from(noise(60, 1)).cast::<f8e4m3>().reshape([5, 12]).to_device(device());
    let wide = (Tensor::from(noise(60, 2)) * 300.0).reshape([12, 5]).t().to_device(device());
    let rows = Tensor::from([4i64, 0, 4]).to_device(device());
    let mask = wide.gt(0.0);
    let (compiled, eager) = (moved(&x, &wide, &rows, &mask), moved::eager(&x, &wide, &rows, &mask));
    for (turned, stacked, chosen, above) in [compiled, eager] {
        let (x, y) = (x.cast::<f32>(), wide.cast::<f8e4m3>().cast::<f32>());
        let narrow = |x: Tensor<f32, 2>| bits(&x.cast());
        assert_eq!(bits(&turned), narrow(Tensor::cat([x.flip([1]), y.slice(0, 1, -1)], 0).t()));
        assert_eq!(bits(&stacked), bits(&Tensor::stack([&x, &y], 1).cast()));
        assert_eq!(bits(&chosen), narrow(mask.where_cond(&x, &y).index_select(0, &rows)));
        assert_eq!(above.to_vec(), x.gt(&y).to_vec());
    }
}

#[test]
fn a_file_keeps_them() {
    let path = std::env::temp_dir().join(format!("fuse-fp8-{}.safetensors", std::process::id()));
    let x = Tensor::from(all_values()).reshape([16, 16]).to_device(device()).t();
    safetensors::save(&path, [("x", &x)]).unwrap();
    let read = safetensors::load(&path, device()).unwrap().get::<f8e4m3, 2>("x").unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(bits(&read), bits(&x));
}

#[test]
fn sums_are_in_floats_and_extremes_are_elements() {
    let x = Tensor::from(noise(3000, 3)).cast::<f8e4m3>().to_device(device());
    let wide = x.cast::<f32>();
    assert_eq!(x.sum_all().item(), wide.sum_all().item());
    assert_eq!(f32::from(x.max_all().item()), wide.max_all().item());
    assert_eq!(x.argmin_all().item(), wide.argmin_all().item());
    let (grown, want) = (x.reshape([30, 100]).cumsum(1), wide.reshape([30, 100]).cumsum(1));
    assert_eq!(grown.to_vec(), want.to_vec());
}

#[compile]
fn product<Out: Float>(
    a: &Tensor<f8e4m3, 2>,
    b: &Tensor<f8e4m3, 2>,
    s: &Tensor<f32, 0>,
    t: &Tensor<f32, 0>,
) -> Tensor<Out, 2> {
    a.scaled_matmul::<Out>(b, s, t)
}

#[compile]
fn layer(
    a: &Tensor<f8e4m3, 2>,
    b: &Tensor<f8e4m3, 2>,
    s: &Tensor<f32, 0>,
    t: &Tensor<f32, 0>,
    bias: &Tensor<f32, 1>,
) -> (Tensor<bf16, 2>, Tensor<f8e4m3, 2>) {
    let y = (a.scaled_matmul::<f32>(b, s, t) + bias).relu();
    (y.cast::<bf16>(), (y * 0.5).cast::<f8e4m3>())
}

#[compile]
fn batches(a: &Tensor<f8e4m3, 4>, b: &Tensor<f8e4m3, 4>, s: &Tensor<f32, 0>, t: &Tensor<f32, 0>) -> Tensor<f32, 4> {
    a.scaled_matmul::<f32>(b, s, t)
}

/// A matrix of fp8 on the device under test, in one of the ways it may lie in memory.
fn lay(way: usize, values: &[f32], [rows, columns]: [usize; 2]) -> Tensor<f8e4m3, 2> {
    let dense = Tensor::from_slice(values, [rows, columns], Device::cpu()).cast::<f8e4m3>().to_device(device());
    match way {
        0 => dense,
        1 => dense.t().contiguous().t(),
        2 => {
            let gap = Tensor::full([rows, 16], f8e4m3::NAN, device());
            Tensor::cat([&gap, &dense, &gap], 1).narrow(1, 16, columns)
        }
        3 => {
            let gap = Tensor::full([rows, 1], f8e4m3::NAN, device());
            Tensor::cat([&gap, &dense], 1).narrow(1, 1, columns)
        }
        _ => dense.flip([0, 1]).contiguous().flip([0, 1]),
    }
}

const WAYS: usize = 5;

fn scale(value: f32) -> Tensor<f32, 0> {
    Tensor::of_scalar(value).to_device(device())
}

/// The product in doubles, element by element.
fn reference(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let mut product = vec![0.0; m * n];
    for i in 0..m {
        for inner in 0..k {
            let left = f64::from(a[i * k + inner]);
            (0..n).for_each(|j| product[i * n + j] += left * f64::from(b[inner * n + j]));
        }
    }
    product
}

/// Small whole numbers, whose products and sums of as many as are added before they are rounded no device rounds.
fn whole_numbers(count: usize, seed: u64) -> Vec<f32> {
    noise(count, seed).into_iter().map(|x| (x * 3.0).round()).collect()
}

#[test]
fn products_of_whole_numbers_are_exact_however_operands_lie() {
    let (s, t) = (scale(0.5), scale(4.0));
    for size @ [m, n, k] in SIZES {
        let (a, b) = (whole_numbers(m * k, 5), whole_numbers(k * n, 6));
        let want: Vec<f64> = reference(&a, &b, size).into_iter().map(|x| 2.0 * x).collect();
        for way in 0..WAYS * WAYS {
            let (left, right) = (lay(way / WAYS, &a, [m, k]), lay(way % WAYS, &b, [k, n]));
            let compiled = product::<f32>(&left, &right, &s, &t).cast::<f64>().to_vec();
            assert_eq!(compiled, want, "{size:?}, layouts {way}");
            if way < WAYS {
                let eager = left.scaled_matmul::<f64>(&right, &s, &t).to_vec();
                assert_eq!(eager, want, "{size:?}, layouts {way}, eager");
            }
        }
    }
}

#[test]
fn sums_are_as_exact_as_they_are_said_to_be() {
    let (s, t) = (scale(0.25), scale(3.0));
    // On tensor cores of fp8; elsewhere sums are those of floats.
    let in_sum = |k: usize| if device().is_cpu() { (k + 4) as f64 * 2f64.powi(-24) } else { 2f64.powi(-9) };
    for size @ [m, n, k] in [[64, 48, 128], [130, 144, 1040], [16, 16, 8192]] {
        for positive in [false, true] {
            let values = |count, seed| -> Vec<f32> {
                let rounded = |x: f32| f8e4m3::from_f32(if positive { x.abs() } else { x }).to_f32();
                noise(count, seed).into_iter().map(rounded).collect()
            };
            let (a, b) = (values(m * k, 7), values(k * n, 8));
            let absolute = |values: &[f32]| values.iter().map(|x| x.abs()).collect::<Vec<_>>();
            let (want, sizes) = (reference(&a, &b, size), reference(&absolute(&a), &absolute(&b), size));
            let (left, right) = (lay(0, &a, [m, k]), lay(1, &b, [k, n]));
            let singles = product::<f32>(&left, &right, &s, &t).cast::<f64>().to_vec();
            let halves = product::<bf16>(&left, &right, &s, &t).cast::<f64>().to_vec();
            for i in 0..m * n {
                let (want, room) = (0.75 * want[i], 0.75 * (in_sum(k) + 2f64.powi(-22)) * sizes[i]);
                assert!((singles[i] - want).abs() <= room, "{size:?}: {} is not {want}", singles[i]);
                let room = room + want.abs() * 2f64.powi(-8);
                assert!((halves[i] - want).abs() <= room, "{size:?}: {} is not {want} in bf16", halves[i]);
            }
        }
    }
}

#[test]
fn nan_and_what_follows_a_product() {
    let size @ [m, n, k] = [40, 72, 64];
    let (mut a, b) = (whole_numbers(m * k, 9), whole_numbers(k * n, 10));
    let bias = Tensor::from(whole_numbers(n, 11)).to_device(device());
    let (s, t) = (scale(0.5), scale(0.5));
    let [left, right] = [lay(0, &a, [m, k]), lay(1, &b, [k, n])];
    let (compiled, eager) = (layer(&left, &right, &s, &t, &bias), layer::eager(&left, &right, &s, &t, &bias));
    assert_eq!((compiled.0.to_vec(), bits(&compiled.1)), (eager.0.to_vec(), bits(&eager.1)));
    let bias = bias.to_vec();
    for (i, (got, sum)) in compiled.0.to_vec().into_iter().zip(reference(&a, &b, size)).enumerate() {
        assert_eq!(got, bf16::from_f64((sum / 4.0 + f64::from(bias[i % n])).max(0.0)));
    }

    a[3 * k + 5] = f32::NAN;
    let got = product::<f32>(&lay(0, &a, [m, k]), &right, &s, &t).to_vec();
    assert!(got.iter().enumerate().all(|(i, x)| x.is_nan() == (i / n == 3)));
}

#[test]
fn batches_broadcast() {
    let (a, b) = (whole_numbers(2 * 3 * 20 * 48, 12), whole_numbers(3 * 48 * 24, 13));
    let left = Tensor::from_slice(&a, [2, 3, 20, 48], Device::cpu()).cast::<f8e4m3>().to_device(device());
    let right = Tensor::from_slice(&b, [1, 3, 24, 48], Device::cpu()).cast::<f8e4m3>().to_device(device());
    let (s, t) = (scale(1.0), scale(2.0));
    let got = batches(&left, &right.transpose(2, 3), &s, &t);
    let want = left.cast::<f32>().matmul(&right.cast::<f32>().transpose(2, 3)) * 2.0;
    assert_eq!(got.dims(), [2, 3, 20, 24]);
    assert_eq!(got.to_vec(), want.to_vec());
    // Heads of one projection have no single stride of a batch.
    let heads = left.permute([0, 2, 1, 3]).contiguous().permute([0, 2, 1, 3]);
    assert_eq!(batches(&heads, &right.transpose(2, 3), &s, &t).to_vec(), want.to_vec());
}

#[compile(grad(s))]
fn loss(a: &Tensor<f8e4m3, 2>, s: &Tensor<f32, 0>) -> Tensor<f32, 0> {
    a.scaled_matmul::<f32>(&a.t(), s, s).sum_all()
}

#[test]
fn scales_have_gradients_and_operands_are_constants() {
    let a = Tensor::from(whole_numbers(60, 14)).cast::<f8e4m3>().reshape([10, 6]).to_device(device());
    let sum = a.cast::<f32>().matmul(&a.cast::<f32>().t()).sum_all().item();
    let s = scale(0.5);
    let (value, gradient) = value_and_grad(&s, |s| a.scaled_matmul::<f32>(&a.t(), &s, &s).sum_all());
    assert_eq!((value.item(), gradient.item()), (0.25 * sum, sum));
    let (value, gradient) = value_and_grad(&s, |s| loss(&a, &s));
    assert_eq!((value.item(), gradient.item()), (0.25 * sum, sum));
}

#[test]
fn inner_extents_must_be_equal() {
    let a = Tensor::<f8e4m3, 2>::zeros([2, 3], device());
    let one = scale(1.0);
    let error = catch(|| a.scaled_matmul::<f32>(&a, &one, &one)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("inner dimensions of `scaled_matmul` differ"), "{error}");
}
