//! Many calls from many threads in several streams: the same and different functions, with extents that alternate, each call
//! with the right values, in memory that does not grow.
//!
//! ```text
//! FUSE_DEVICE=cuda:0 FUSE_STRESS_CALLS=100000 cargo test --release --test stress
//! ```

mod common;

use common::device;
use fuse_runtime::Stream;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use std::thread;
use std::time::Instant;

const THREADS: usize = 8;
const ROWS: [usize; 4] = [16, 1, 48, 33];

#[compile(mode = "reduce-overhead")]
fn layers(#[dims(B, N)] x: &Tensor<f32, 2>, #[dims(N, N)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let h = x.matmul(w).relu();
    (&h - &h.mean_keepdim(-1)).softmax(-1)
}

#[compile(mode = "reduce-overhead")]
fn chosen(x: &Tensor<f32, 2>, limit: f32) -> Tensor<f32, 2> {
    let y = x.abs();
    if y.max_all().item() > limit { y.softmax(1) } else { y.cumsum(1) }
}

/// The same decided by the host.
#[compile]
fn chosen_by_host(x: &Tensor<f32, 2>, limit: f32) -> Tensor<f32, 2> {
    let y = x.abs();
    if y.max_all().item() > limit { y.softmax(1) } else { y.cumsum(1) }
}

#[compile(mode = "reduce-overhead")]
fn stepped(x: &mut Tensor<f32, 2>, by: f32) -> Tensor<f32, 1> {
    *x += by;
    (&*x * 2.0).sum(1)
}

/// What a thread works on, and what is right for it.
struct Work {
    x: Tensor<f32, 2>,
    layers: Vec<f32>,
    chosen: [Vec<f32>; 2],
}

impl Work {
    fn new(rows: usize, seed: usize, w: &Tensor<f32, 2>) -> Work {
        let values = (0..rows * 64).map(|k| ((k * 7 + seed * 13) % 17) as f32 / 17.0 - 0.5).collect();
        let x = Tensor::from_vec(values, [rows, 64], device());
        let chosen = [0.0, 1.0].map(|limit| chosen::eager(&x, limit).to_vec());
        Work { layers: layers::eager(&x, w).to_vec(), chosen, x }
    }

    fn check(&self, call: usize, w: &Tensor<f32, 2>) {
        let limit = (call % 2) as f32;
        let (found, arm) = (layers(&self.x, w), chosen(&self.x, limit));
        let mut counted = Tensor::<f32, 2>::full([self.x.size(0), 4], call as f32, device());
        let sums = stepped(&mut counted, 1.0);
        // Most calls are not waited for, so that the threads meet on the device.
        if !call.is_multiple_of(16) || device() == recorder::device() {
            return;
        }
        let near = |(a, b): (f32, &f32)| (a - b).abs() <= 1e-5;
        assert!(found.to_vec().into_iter().zip(&self.layers).all(near), "call {call}");
        assert_eq!(arm.to_vec(), self.chosen[call % 2], "call {call}");
        assert_eq!(sums.to_vec(), vec![8.0 * (call + 1) as f32; self.x.size(0)], "call {call}");
    }
}

#[test]
fn many_calls_from_eight_threads_in_two_streams_take_constant_memory() {
    let calls: usize = std::env::var("FUSE_STRESS_CALLS").map_or(800, |text| text.parse().expect("a number of calls"));
    let w = Tensor::<f32, 2>::from_vec((0..64 * 64).map(|k| (k % 11) as f32 / 11.0).collect(), [64, 64], device());
    let streams = [(); 2].map(|()| Stream::new(device()).expect("there is room for a stream"));
    let round = |calls: usize| {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (stream, w) = (&streams[thread % 2], &w);
                scope.spawn(move || {
                    let works = ROWS.map(|rows| Work::new(rows, thread, w));
                    stream.scope(|| (0..calls).for_each(|call| works[call % ROWS.len()].check(call, w)));
                });
            }
        });
        device().synchronize().expect("no call has failed");
        device().memory_allocated().expect("the device counts its memory")
    };
    let before = round(64);
    let after = round(calls / THREADS);
    assert!(after <= before + (1 << 20), "{before} bytes of the device in use before, {after} after");
}

#[test]
#[ignore = "prints speeds: cargo test --release --test stress -- --ignored --nocapture"]
fn speed_of_a_branch() {
    let x = Tensor::<f32, 2>::full([256, 256], 0.5, device());
    type Way = fn(&Tensor<f32, 2>, f32) -> Tensor<f32, 2>;
    let ways: [(&str, Way); 3] =
        [("by the device", chosen), ("by the host", chosen_by_host), ("op by op", chosen::eager)];
    for (name, run) in ways {
        for limit in [0.0, 1.0] {
            (0..50).for_each(|_| drop(run(&x, limit)));
            device().synchronize().expect("no call has failed");
            let start = Instant::now();
            (0..2000).for_each(|_| drop(run(&x, limit)));
            device().synchronize().expect("no call has failed");
            println!("{name}, limit {limit}: {:.1} us", start.elapsed().as_secs_f64() * 1e6 / 2000.0);
        }
    }
}
