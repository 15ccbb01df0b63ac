//! What a process with a scenario does.

use super::child::SCENARIO;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;

/// The GPU that `FUSE_DEVICE` names, or the recorder, which then compiles as a GPU would.
pub fn device() -> Device {
    let named = std::env::var("FUSE_DEVICE").ok().map(|name| name.parse().expect("FUSE_DEVICE names a device"));
    named.filter(|device: &Device| !device.is_cpu()).unwrap_or_else(|| {
        recorder::compile_programs();
        recorder::device()
    })
}

/// Compares the values of a result with those of the processor; the recorder has none.
pub fn assert_values<const R: usize>(got: &Tensor<f32, R>, want: &Tensor<f32, R>) {
    assert_eq!(got.dims(), want.dims());
    if got.device() != recorder::device() {
        assert_eq!(got.to_vec(), want.to_vec());
    }
}

/// Two kernels: the columns are summed before the rows are.
#[compile(fullgraph)]
pub fn centred(x: &Tensor<f32, 2>) -> Result<Tensor<f32, 2>, Error> {
    Ok((x - x.sum_keepdim(0)) * 0.5)
}

#[compile(fullgraph)]
pub fn product(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> Result<Tensor<f32, 2>, Error> {
    Ok(x.matmul(w) + 1.0)
}

#[compile(fullgraph)]
pub fn outer(x: &Tensor<f32, 2>, y: &Tensor<f32, 2>) -> Result<Tensor<f32, 2>, Error> {
    Ok((x + y).exp())
}

/// The memory for the sum is there, that for the result is not.
#[compile(fullgraph)]
pub fn sum_and_grow(x: &Tensor<f32, 2>, y: &Tensor<f32, 2>) -> Result<Tensor<f32, 2>, Error> {
    Ok(x.sum_keepdim(1) * x + y)
}

#[compile(fullgraph)]
pub fn update_and_grow(p: &mut Tensor<f32, 2>, y: &Tensor<f32, 2>) -> Result<Tensor<f32, 2>, Error> {
    *p += 1.0;
    Ok(&*p + y)
}

#[compile(fullgraph)]
pub fn panicking_outer(x: &Tensor<f32, 2>, y: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    (x + y).exp()
}

/// A matrix of whole numbers, on which every sum is exact.
pub fn matrix(rows: usize, columns: usize, device: Device) -> Tensor<f32, 2> {
    let values: Vec<f32> = (0..rows * columns).map(|k| (k % 7) as f32 - 3.0).collect();
    Tensor::from_vec(values, [rows, columns], device)
}

/// Runs two kernels and compares what they give with the processor.
pub fn run_kernels(device: Device) {
    let got = centred(&matrix(5, 33, device)).expect("the kernels run");
    assert_values(&got, &centred(&matrix(5, 33, Device::cpu())).expect("the processor needs nothing"));
}

#[test]
fn the_scenario_of_the_environment() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    match scenario.as_str() {
        "break_graphs" => super::breaks::break_graphs(),
        "run_kernels" => run_kernels(device()),
        "tell_nvrtc" => tell_nvrtc(),
        "miss_kernels" => miss_kernels(),
        "multiply" => multiply(),
        "ask_for_too_much" => ask_for_too_much(),
        "fail_op_by_op" => super::operands::fail_op_by_op(),
        "fail_in_a_write" => super::faults::fail_in_a_write(),
        "tune" => super::tune::tune(),
        "tune_a_product" => super::tune::tune_a_product(),
        "tune_what_is_large" => super::tune::tune_what_is_large(),
        unknown => panic!("no scenario is called `{unknown}`"),
    }
}

fn tell_nvrtc() {
    match centred(&matrix(2, 3, device())) {
        Ok(_) => eprintln!("NVRTC is here"),
        Err(error) => eprintln!("{error}"),
    }
}

/// Without NVRTC and with an empty cache: one clear error, as often as one tries, and the processor is as it was.
fn miss_kernels() {
    let device = device();
    let x = matrix(4, 6, device);
    for _ in 0..2 {
        let error = centred(&x).expect_err("there is no kernel");
        assert_eq!(error.kind(), ErrorKind::Compile);
        let text = error.to_string();
        assert!(text.contains("NVRTC was not found") && text.contains("pip install"), "{text}");
    }
    let error = catch(|| panicking_outer(&x, &x)).expect_err("there is no kernel");
    assert_eq!(error.kind(), ErrorKind::Compile);
    run_kernels(Device::cpu());
}

/// A product by whatever there is to multiply with, of too many rows for strips and too few for tensor cores.
fn multiply() {
    let device = device();
    recorder::launches();
    let got = product(&matrix(40, 16, device), &matrix(16, 5, device)).expect("there is a way to multiply");
    let want =
        product(&matrix(40, 16, Device::cpu()), &matrix(16, 5, Device::cpu())).expect("the processor multiplies");
    assert_values(&got, &want);
    for launch in recorder::launches() {
        eprintln!("launched {}", launch.kernel);
    }
}

/// More memory than any GPU has, at the first step and behind others.
fn ask_for_too_much() {
    let device = device();
    let n = 1 << 20;
    let (column, row) = (Tensor::<f32, 2>::ones([n, 1], device), Tensor::<f32, 2>::ones([1, n], device));
    let mut p = matrix(1, n, device);
    let mut before = None;
    for _ in 0..3 {
        let too_much = [
            outer(&column, &row).map(drop),
            catch(|| drop(panicking_outer(&column, &row))),
            sum_and_grow(&row, &column).map(drop),
            update_and_grow(&mut p, &column).map(drop),
        ];
        for outcome in too_much {
            let error = outcome.expect_err("no device has so much memory");
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
            assert!(error.to_string().contains("bytes"), "{error}");
        }
        // What is kept between calls, such as a workspace, is there after the first.
        let now = device.memory_allocated().expect("the device counts");
        assert_eq!(now, *before.get_or_insert(now), "a failed call keeps memory");
    }
    assert_values(&p, &matrix(1, n, Device::cpu()));
    let (a, b) = (matrix(3, 1, device), matrix(1, 4, device));
    let sum = update_and_grow(&mut matrix(1, 4, device), &a).expect("a small call works");
    assert_values(&sum, &(matrix(1, 4, Device::cpu()) + 1.0 + matrix(3, 1, Device::cpu())));
    outer(&a, &b).expect("a small call works");
    run_kernels(device);
}
