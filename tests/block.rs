//! The transformer block of the example: how many launches it is, and that it computes what it says.

#[path = "../examples/support/block.rs"]
mod block;

use block::Block;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use std::sync::{Mutex, PoisonError};

#[test]
fn the_block_is_eleven_launches_in_one_graph() {
    let report = Block::<f32>::forward_explain();
    assert!(report.breaks().is_empty() && report.graphs().len() == 1, "{report}");
    assert!(report.launches() <= 11, "{report}");
}

#[test]
fn a_call_of_the_block_is_at_most_eleven_launches() {
    let device = recorder::device();
    // Heads in one projection are no batch of one stride: the template takes their products. Of the others it takes all of floats,
    // and of halves the one that gelu follows; sums behind the other ones are left to kernels that read more.
    let by_library = [(launches_of_a_call::<f32>(device), 0), (launches_of_a_call::<bf16>(device), 3)];
    for (launches, count) in by_library {
        assert!(launches.len() <= 11, "{launches:#?}");
        assert_eq!(launches.iter().filter(|kernel| *kernel == "matmul").count(), count, "{launches:#?}");
    }
}

#[test]
fn attention_is_one_launch_on_hopper() {
    for launches in [launches_of_a_call::<bf16>(recorder::device()), launches_of_a_call::<f32>(recorder::device())] {
        let attention = launches.iter().filter(|kernel| kernel.ends_with("_attention")).count();
        // The two products of heads and the softmax between them are one.
        assert!(attention == 1 && launches.len() <= 9, "{launches:#?}");
    }
}

/// The kernels that a call of the benchmark's size launches. The recorder notes for the whole process, so calls take turns.
fn launches_of_a_call<T: Float>(device: Device) -> Vec<String> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let block = Block::<T>::random(768, 12, 3072, device);
    let x = Tensor::<T, 3>::randn([8, 512, 768], device);
    recorder::launches();
    drop(block.forward(&x));
    let unfold = |launch: recorder::Launch| if launch.inside.is_empty() { vec![launch] } else { launch.inside };
    recorder::launches().into_iter().flat_map(unfold).map(|launch| launch.kernel).collect()
}

#[test]
fn the_compiled_block_agrees_with_eager() {
    agree::<f32>(1e-5);
    agree::<f64>(1e-13);
    // Two roundings of values up to 8 to eight bits.
    agree::<bf16>(0.0625);
}

fn agree<T: Float>(tolerance: f64) {
    let device = Device::best();
    let block = Block::<T>::random(64, 4, 256, device);
    let x = Tensor::<T, 3>::randn([2, 17, 64], device);
    let (compiled, eager) = (block.forward(&x), block.forward_eager(&x));
    let largest = (compiled.cast::<f64>() - eager.cast::<f64>()).abs().max_all().item();
    assert!(largest <= tolerance, "{} differs by {largest:e}", T::DTYPE);
}
