//! Random numbers: drawn in program order, whatever is compiled.

use crate::cases::*;
use fuse_runtime::Generator;

#[compile]
fn masks(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 0>) {
    let a = y.dropout(0.5, true);
    let b = x.dropout(0.5, true);
    (b, a.sum_all())
}

#[compile(mode = "max-autotune")]
fn tuned_masks(x: &Tensor<f32, 1>, y: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 0>) {
    let a = y.dropout(0.5, true);
    let _unused = y.exp();
    let b = x.dropout(0.5, true);
    (b, a.sum_all())
}

#[compile(mode = "reduce-overhead")]
fn fresh(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x.dropout(0.2, true)
}

/// Parts of what is drawn, whose rows start within a counter of four.
#[compile]
fn parts(x: &Tensor<f32, 2>) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
    let all = x.expand([64, 12]).dropout(0.5, true);
    (all.narrow(1, 1, 8), all.narrow(1, 6, 4))
}

#[compile]
fn seeded(device: &Device) -> Tensor<f32, 1> {
    device.manual_seed(3);
    Tensor::rand([4], device)
}

#[test]
fn case_094_every_call_has_its_own_mask() {
    let x = Tensor::ones([4096], device());
    let series = |run: &dyn Fn(&Tensor<f32, 1>) -> Tensor<f32, 1>| -> Vec<Vec<f32>> {
        Generator::new(11).scope(|| (0..5).map(|_| run(&x).to_vec()).collect())
    };
    let (first, again, eager) = (series(&fresh), series(&fresh), series(&fresh::eager));
    for (k, mask) in first.iter().enumerate() {
        assert!(first[..k].iter().all(|other| other != mask), "call {k} repeats a mask");
    }
    assert_eq!(first, again);
    assert_eq!(first, eager);
}

#[test]
fn a_part_of_a_draw_is_what_the_whole_has_there() {
    let x = Tensor::ones([64, 1], device());
    type Parts = fn(&Tensor<f32, 2>) -> (Tensor<f32, 2>, Tensor<f32, 2>);
    let run = |f: Parts| {
        let (a, b) = Generator::new(5).scope(|| f(&x));
        (a.to_vec(), b.to_vec())
    };
    let want = run(parts::eager);
    assert_eq!(run(parts), want);
    assert!(want.0.contains(&0.0) && want.0.contains(&2.0));
}

#[test]
fn case_095_draws_stay_in_program_order() {
    let (x, y) = (Tensor::ones([64], device()), Tensor::ones([200_000], device()));
    type Masks = fn(&Tensor<f32, 1>, &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 0>);
    let run = |f: Masks| {
        let (b, sum) = Generator::new(7).scope(|| f(&x, &y));
        (b.to_vec(), sum.item())
    };
    let want = run(masks::eager);
    assert_eq!(run(masks), want);
    assert_eq!(run(tuned_masks), want);
    assert!((want.1 - 200_000.0).abs() < 2_500.0, "{} of 200000 expected", want.1);
}

#[test]
fn case_097_seeding_inside_a_compiled_function() {
    let drawn = Generator::new(3).scope(|| Tensor::<f32, 1>::rand([4], device()).to_vec());
    // Tests beside this one draw from the device's generator, too, now and then between the seeding and the draw.
    let seeds = |run: &dyn Fn(&Device) -> Tensor<f32, 1>| (0..20).any(|_| run(&device()).to_vec() == drawn);
    assert!(seeds(&seeded) && seeds(&seeded::eager));
}
