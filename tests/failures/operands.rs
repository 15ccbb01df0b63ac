//! Operands that do not go together, and some that do although they look unlikely.

use super::child::{has_nvrtc, play};
use super::scenarios::{assert_values, centred, device, matrix, product};
use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn write_and_fail(
    p: &mut Tensor<f32, 2>,
    #[dims(R, C)] x: &Tensor<f32, 2>,
    #[dims(R, 2 * C)] y: &Tensor<f32, 2>,
) -> Result<Tensor<f32, 2>, Error> {
    *p += 1.0;
    Ok(&*p + x + y.sum_all())
}

/// Calls that fail where `FUSE_BACKEND` asks for the originals: on entry, and behind a write.
pub fn fail_op_by_op() {
    let cpu = Device::cpu();
    let (mut p, x) = (matrix(2, 3, cpu), matrix(3, 2, cpu));
    let error = write_and_fail(&mut p, &x, &matrix(3, 3, cpu)).expect_err("3 is not 4");
    eprintln!("said {error}");
    let error = write_and_fail(&mut p, &x, &matrix(3, 4, cpu)).expect_err("2 is not 3");
    eprintln!("said {error}");
    assert_values(&p, &matrix(2, 3, cpu));
}

#[test]
fn originals_that_the_environment_asks_for_fail_as_what_was_compiled() {
    for variables in [&[][..], &[("FUSE_BACKEND", "eager")]] {
        let said = play("fail_op_by_op", variables);
        let told: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("said ")).collect();
        let wanted = [
            "`write_and_fail`: axis 1 of `y` is 3, but `2 * C` is 4",
            "`add`: extents 2 and 3 neither are equal nor is one of them 1",
        ];
        assert_eq!(told, wanted);
    }
}

/// The processor, and the GPU or the recorder where kernels can be compiled for it.
fn devices() -> impl Iterator<Item = Device> {
    std::iter::once(Device::cpu()).chain(has_nvrtc().then(device))
}

#[test]
fn tensors_of_two_devices_are_both_named() {
    let device = device();
    for (left, right) in [(device, Device::cpu()), (Device::cpu(), device)] {
        let (x, w) = (matrix(2, 3, left), matrix(3, 2, right));
        let error = product(&x, &w).expect_err("the tensors are on two devices");
        assert_eq!(error.kind(), ErrorKind::Device);
        let text = error.to_string();
        assert!(text.contains(&left.to_string()) && text.contains(&right.to_string()), "{text}");
    }
}

#[test]
fn extents_that_do_not_fit_are_named_before_anything_runs() {
    for device in [device(), Device::cpu()] {
        let (x, w) = (matrix(2, 3, device), matrix(4, 5, device));
        let error = product(&x, &w).expect_err("3 is not 4");
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(error.to_string().contains('3') && error.to_string().contains('4'), "{error}");
        assert_values(&x, &matrix(2, 3, Device::cpu()));
    }
}

#[test]
fn tensors_without_elements_are_tensors() {
    for device in devices() {
        for (rows, columns) in [(0, 3), (3, 0), (0, 0)] {
            let x = matrix(rows, columns, device);
            let got = centred(&x).expect("nothing is computed");
            assert_eq!((got.dims(), got.to_vec().len()), ([rows, columns], 0));
        }
        let sums = product(&matrix(2, 0, device), &matrix(0, 3, device)).expect("sums of nothing are 0");
        assert_values(&sums, &Tensor::ones([2, 3], Device::cpu()));
    }
}

#[test]
fn tensors_may_lie_in_any_way() {
    let lying = |device: Device| {
        let x = matrix(12, 8, device);
        [x.t(), x.flip([0, 1]), x.narrow(1, 1, 5), x.narrow(0, 3, 1).expand([4, 8]), x.slice(0, 2, 9)]
    };
    for device in devices() {
        for (x, same) in lying(device).iter().zip(lying(Device::cpu())) {
            let dense = Tensor::from_vec(same.to_vec(), same.dims(), Device::cpu());
            assert_values(&centred(x).expect("it runs"), &centred(&dense).expect("it runs"));
            let (w, same_w) = (matrix(x.size(1), 3, device), matrix(x.size(1), 3, Device::cpu()));
            assert_values(&product(x, &w).expect("it runs"), &product(&dense, &same_w).expect("it runs"));
        }
    }
}
