//! Streams change when things happen, never what comes out.

mod common;

use common::device;
use fuse_runtime::Stream;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;

#[compile]
fn shifted(#[dims(N)] x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x + 1.0
}

#[compile]
fn doubled(#[dims(N)] x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x * 2.0
}

#[compile]
fn added_in_place(#[dims(N)] x: Tensor<f32, 1>, #[dims(N)] y: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x + y
}

/// Products with scratch memory, reductions with counters: what a stream must not share with another.
#[compile(mode = "reduce-overhead")]
fn layers(#[dims(N, N)] x: &Tensor<f32, 2>, #[dims(N, N)] w: &Tensor<f32, 2>) -> (Tensor<f32, 2>, Tensor<f32, 0>) {
    let h = x.matmul(w).tanh().matmul(w);
    let total = h.sum_all();
    (h.softmax(0), total)
}

/// What is read from the recorder is 0.
fn has_values() -> bool {
    device() != recorder::device()
}

fn small_or_large(small: usize, large: usize) -> usize {
    if device().is_cpu() || !has_values() { small } else { large }
}

#[test]
fn case_125_memory_is_not_given_out_before_its_last_use_on_any_stream() {
    let n = small_or_large(1 << 12, 1 << 24);
    let values: Vec<f32> = (0..n).map(|i| (i % 8) as f32).collect();
    let x = Tensor::from_vec(values, [n], device());
    let side = Stream::new(device()).expect("there is room for a stream");
    for _ in 0..small_or_large(20, 200) {
        let y = shifted(&x);
        let z = side.scope(|| doubled(&y));
        drop(y);
        let w = Tensor::<f32, 1>::full([n], -1.0, device());
        if has_values() {
            assert_eq!(z.sum_all().item(), 9.0 * n as f32);
            assert_eq!(w.max_all().item(), -1.0);
        }
    }
}

#[test]
fn a_result_is_the_same_in_whichever_stream() {
    let x = Tensor::<f32, 1>::arange(0.0, 1000.0, device());
    let (a, b) = (Stream::new(device()).unwrap(), Stream::new(device()).unwrap());
    let y = a.scope(|| shifted(&x));
    let z = b.scope(|| added_in_place(y, &x));
    let back = a.scope(|| doubled(&z));
    b.wait_stream(&a).unwrap();
    a.synchronize().unwrap();
    if has_values() {
        assert_eq!(back.to_vec(), doubled::eager(&(shifted::eager(&x) + &x)).to_vec());
    }
    assert_eq!((a.device(), b.device()), (device(), device()));
}

#[test]
fn eight_threads_in_two_streams_do_not_disturb_each_other() {
    let n = 64;
    let matrix = |seed: usize| {
        let values: Vec<f32> = (0..n * n).map(|i| ((i * 7 + seed * 13) % 17) as f32 / 17.0 - 0.5).collect();
        Tensor::from_vec(values, [n, n], device())
    };
    let w = matrix(0);
    let streams = [Stream::new(device()).unwrap(), Stream::new(device()).unwrap()];
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (stream, w, x) = (&streams[thread % 2], &w, matrix(thread + 1));
            scope.spawn(move || {
                let (expected, total) = layers::eager(&x, w);
                let (expected, total) = (expected.to_vec(), total.item());
                for _ in 0..50 {
                    let (found, sum) = stream.scope(|| layers(&x, w));
                    let row = Tensor::<f32, 1>::arange(0.0, 100.0 + thread as f32, device());
                    let both = stream.scope(|| doubled(&shifted(&row)));
                    if has_values() {
                        let near = |a: f32, b: f32| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
                        assert!(found.to_vec().iter().zip(&expected).all(|(a, b)| near(*a, *b)), "thread {thread}");
                        assert!(near(sum.item(), total), "thread {thread}");
                        assert_eq!(both.to_vec()[7], 16.0);
                    }
                }
            });
        }
    });
}
