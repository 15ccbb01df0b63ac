//! Positions out of range, repeated positions, tensors that 32-bit indices do not reach.

use crate::cases::*;

traps! {
    fn embedding(w: f32 2, index: i64 1) -> Tensor<f32, 2> {
        w.embedding(index)
    }
    fn select(w: f32 2, index: i64 1) -> Tensor<f32, 2> {
        w.index_select(0, index) * 1.0
    }
    fn gather(w: f32 2, index: i64 2) -> Tensor<f32, 2> {
        w.gather(0, index) + 0.0
    }
    fn add(w: f32 2, index: i64 1, source: f32 2) -> Tensor<f32, 2> {
        w.index_add(0, index, source)
    }
    fn scatter(x: f32 1, index: i64 1, source: f32 1) -> Tensor<f32, 1> {
        x.scatter_add(0, index, source)
    }
    fn scatter_half(x: f16 1, index: i64 1, source: f16 1) -> Tensor<f16, 1> {
        x.scatter_add(0, index, source)
    }
}

#[compile]
fn increment(x: &Tensor<u8, 1>) -> Tensor<u8, 1> {
    x + 1
}

fn weight() -> Tensor<f32, 2> {
    Tensor::from([[1.0f32, -1.0], [2.0, -2.0], [3.0, -3.0], [4.0, -4.0]])
}

#[test]
fn case_089_indices_out_of_range() {
    alone("cases::indices::case_089_indices_out_of_range", indices_out_of_range);
}

fn indices_out_of_range() {
    let kind = ErrorKind::Index;
    for wrong in [vec![1i64, -3, 3], vec![4]] {
        let index = Tensor::from(wrong);
        let source = Tensor::ones([index.numel(), 2], Device::cpu());
        embedding::trap().refuses((weight(), index.clone()), kind);
        select::trap().refuses((weight(), index.clone()), kind);
        gather::trap().refuses((weight(), index.unsqueeze(1)), kind);
        add::trap().refuses((weight(), index, source), kind);
    }
    let (index, want) = (Tensor::from([0i64, 3]), Tensor::from([[1.0f32, -1.0], [4.0, -4.0]]));
    embedding::trap().exactly((weight(), index.clone()), want.clone());
    select::trap().exactly((weight(), index.clone()), want);
    gather::trap().exactly((weight(), index.unsqueeze(1)), Tensor::from([[1.0f32], [4.0]]));
}

#[test]
fn case_090_repeated_indices_add_up() {
    let n = 100_000;
    let (index, ones) = (tensor((0..n).map(|_| 0i64), [n]), tensor((0..n).map(|_| 1.0f32), [n]));
    scatter::trap().exactly((Tensor::from([0.0f32]), index, ones), Tensor::from([n as f32]));
    let (index, ones) = (tensor((0..4096).map(|_| 1i64), [4096]), tensor((0..4096).map(|_| f16::ONE), [4096]));
    scatter_half::trap().exactly((hf([0.0, 0.0]), index, ones), hf([0.0, 4096.0]));
    let index = Tensor::from([2i64, 0, 2, 2, 0]);
    let rows = Tensor::from([[1.0f32, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]]);
    let want = Tensor::from([[7.0f32, 70.0], [0.0, 0.0], [8.0, 80.0]]);
    add::trap().exactly((Tensor::from([[0.0f32; 2]; 3]), index, rows), want);
}

#[test]
fn case_087_more_than_2_to_the_31_elements() {
    if device().is_cpu() {
        println!("skipped: 4 GiB of data are for a GPU, set FUSE_DEVICE=cuda:0");
        return;
    }
    let n = (1usize << 31) + 17;
    let row = tensor((0..251).map(|k| k as u8), [1, 251]).to_device(device());
    let rows = n.div_ceil(251);
    let x = row.expand([rows, 251]).reshape([rows * 251]).narrow(0, 0, n);
    let y = increment(&x);
    let at = |k: usize| y.narrow(0, k, 1).item();
    assert_eq!([at(0), at((1 << 31) - 1), at(1 << 31), at(n - 1)], [1, 187, 188, 204]);
    assert_eq!(x.narrow(0, n - 17, 17).sum_all().item(), 3315);
}
