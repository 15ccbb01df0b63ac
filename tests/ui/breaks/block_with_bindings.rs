use fuse_runtime::prelude::*;

struct Timer;

impl Drop for Timer {
    fn drop(&mut self) {
        println!("done");
    }
}

fn timer() -> Timer {
    Timer
}

#[compile(fullgraph)]
fn timed(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let y = {
        let _timer = timer();
        x.exp()
    };
    y * 2.0
}

fn main() {}
