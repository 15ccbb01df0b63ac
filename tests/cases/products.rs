//! Matrix products, attention, losses.

use crate::cases::*;

traps! {
    fn product(a: f32 2, b: f32 2) -> Tensor<f32, 2> {
        a.matmul(b)
    }
    fn product_i64(a: i64 2, b: i64 2) -> Tensor<i64, 2> {
        a.matmul(b)
    }
    fn product_plus(a: f32 2, b: f32 2, c: f32 1) -> Tensor<f32, 2> {
        a.matmul(b) + c
    }
    fn batches(a: f32 3, b: f32 3) -> Tensor<f32, 3> {
        a.matmul(b)
    }
    fn batches_of_batches(a: f32 4, b: f32 4) -> Tensor<f32, 4> {
        a.matmul(b)
    }
    fn attention(q: f32 3, k: f32 3, v: f32 3, mask: bool 2) -> Tensor<f32, 3> {
        q.scaled_dot_product_attention(k, v, mask, false)
    }
    fn added_mask(q: f32 3, k: f32 3, v: f32 3, mask: f32 2) -> Tensor<f32, 3> {
        q.scaled_dot_product_attention(k, v, mask, false)
    }
    fn loss(x: f32 2, target: i64 1) -> Tensor<f32, 0> {
        x.cross_entropy(target)
    }
    fn losses(x: f32 2, target: i64 1) -> Tensor<f32, 1> {
        x.cross_entropy_with(target, Reduction::None, 255)
    }
    fn log_softmax(x: f32 2) -> Tensor<f32, 2> {
        x.log_softmax(1)
    }
}

#[test]
fn case_134_no_inner_elements() {
    let (a, b) = (tensor::<f32, 2>([], [2, 0]), tensor::<f32, 2>([], [0, 3]));
    product::trap().exactly((a.clone(), b.clone()), Tensor::from([[0.0f32; 3]; 2]));
    let c = [1.0f32, 2.0, 3.0];
    product_plus::trap().exactly((a.clone(), b, Tensor::from(c)), Tensor::from([c, c]));
    batches::trap().exactly((tensor([], [4, 2, 0]), tensor([], [4, 0, 3])), Tensor::from([[[0.0f32; 3]; 2]; 4]));
    product_i64::trap().exactly((tensor([], [2, 0]), tensor([], [0, 3])), Tensor::from([[0i64; 3]; 2]));
    product::trap().refuses((a, Tensor::from([[1.0f32; 3]])), ErrorKind::Shape);
    product::trap().exactly((tensor([], [0, 5]), Tensor::from([[1.0f32; 2]; 5])), tensor::<f32, 2>([], [0, 2]));
}

#[test]
fn case_135_broadcast_batches() {
    let a = Tensor::from([[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]]);
    let b = tensor((0..12).map(|k| k as f32), [2, 3, 2]);
    let want = Tensor::from([[[16.0f32, 22.0], [34.0, 49.0]], [[52.0, 58.0], [124.0, 139.0]]]);
    batches::trap().exactly((a.clone(), b.clone()), want.clone());
    let expanded = a.expand([2, 2, 3]).to_device(device());
    assert_eq!(batches::alone(&expanded, &b.to_device(device())).to_vec3(), want.to_vec3());
    let (left, right) = (Tensor::stack([&a, &(&a * 2.0)], 0), b.narrow(0, 0, 1).expand([3, 3, 2]).unsqueeze(0));
    let rows = want.narrow(0, 0, 1).unsqueeze(0);
    let block = Tensor::cat([&rows, &(&rows * 2.0)], 0);
    batches_of_batches::trap().exactly((left, right), block.expand([2, 3, 2, 2]));
}

#[test]
fn case_137_f32_products_are_in_f32() {
    let a = Tensor::full([16, 4096], 1.0f32 + 1.0 / 4096.0, Device::cpu());
    let b = Tensor::full([4096, 16], 1.0f32, Device::cpu());
    let want = Tensor::full([16, 16], 4097.0f32, Device::cpu());
    product::trap().within(1e-6, 0.0, (a.clone(), b.clone()), want.clone());
    product_plus::trap().within(1e-6, 0.0, (a, b, Tensor::from([0.0f32; 16])), want);
}

#[test]
fn case_139_a_fully_masked_row_is_zero() {
    let q = Tensor::from([[[1.0f32, 0.0], [0.0, 1.0]]]);
    let k = Tensor::from([[[1.0f32, 0.0], [0.0, 1.0], [1.0, 1.0]]]);
    let v = Tensor::from([[[1.0f32], [2.0], [4.0]]]);
    let mask = Tensor::from([[false, false, false], [true, false, true]]);
    let added = mask.where_cond(0.0f32, f32::NEG_INFINITY);
    let want = Tensor::from([[[0.0f32], [3.0092847]]]);
    attention::trap().nearly((q.clone(), k.clone(), v.clone(), mask), want.clone());
    added_mask::trap().nearly((q, k, v, added), want);
}

#[test]
fn case_143_ignored_targets_and_huge_logits() {
    let x = Tensor::from([[1000.0f32, 0.0]]);
    loss::trap().exactly((x.clone(), Tensor::from([1i64])), scalar(1000.0f32));
    loss::trap().exactly((x.clone(), Tensor::from([0i64])), scalar(0.0f32));
    log_softmax::trap().exactly((x,), Tensor::from([[0.0f32, -1000.0]]));
    let y = Tensor::from([[1.0f32, 2.0, 3.0]]);
    losses::trap().exactly((y, Tensor::from([255i64])), Tensor::from([0.0f32]));
}

#[test]
fn case_143_targets_out_of_range_are_refused() {
    alone("cases::products::case_143_targets_out_of_range_are_refused", || {
        for wrong in [-4i64, 3] {
            loss::trap().refuses((Tensor::from([[1.0f32, 2.0, 3.0]]), Tensor::from([wrong])), ErrorKind::Index);
        }
    });
}
