//! Gradients against finite differences.

use fuse_runtime::Tensor;

/// Every element of a gradient against the difference that moving the element makes.
#[track_caller]
pub fn check<const R: usize>(gradient: &Tensor<f64, R>, at: &Tensor<f64, R>, f: impl Fn(&Tensor<f64, R>) -> f64) {
    const STEP: f64 = 1e-5;
    assert_eq!(gradient.dims(), at.dims());
    let values = at.to_vec();
    for (k, found) in gradient.to_vec().into_iter().enumerate() {
        let moved = |step: f64| {
            let mut values = values.clone();
            values[k] += step;
            f(&Tensor::from_vec(values, at.dims(), at.device()))
        };
        let wanted = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
        assert!(
            (found - wanted).abs() <= 1e-7 * wanted.abs().max(1.0),
            "element {k}: {found}, by differences {wanted}"
        );
    }
}
