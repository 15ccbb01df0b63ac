//! The transformer block of the example: how many launches it is, and that it computes what it says.

#[path = "../examples/support/block.rs"]
mod block;

use block::Block;
use fuse_runtime::prelude::*;

#[test]
fn the_block_is_eleven_launches_in_one_graph() {
    let report = Block::<f32>::forward_explain();
    assert!(report.breaks().is_empty() && report.graphs().len() == 1, "{report}");
    assert!(report.launches() <= 11, "{report}");
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
