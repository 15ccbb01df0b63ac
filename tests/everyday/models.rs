//! Models as structs with methods, generic and behind traits.

use super::*;

trait Module {
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2>;
}

struct Linear<T: Float> {
    w: Tensor<T, 2>,
    b: Tensor<T, 1>,
    k: f32,
}

#[compile]
impl Module for Linear<f32> {
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        let (w, b): (&Tensor<f32, 2>, &Tensor<f32, 1>) = (&self.w, &self.b);
        let y = x.linear(w, b);
        y * self.k
    }
}

#[compile]
impl<T: Float> Linear<T> {
    fn twice(&self, x: &Tensor<T, 2>) -> Tensor<T, 2> {
        let w: &Tensor<T, 2> = &self.w;
        let y: Tensor<T, 2> = Self::scaled(x, 2.0);
        y.matmul(w) + x
    }
    fn scaled(x: &Tensor<T, 2>, k: f64) -> Tensor<T, 2> {
        x * T::from_f64(k)
    }
}

struct Stack {
    layers: Vec<Linear<f32>>,
}

#[compile]
impl Stack {
    fn forward(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        let mut h = x.relu();
        for layer in &self.layers {
            h = layer.forward(&h);
            h = h.tanh() + x;
        }
        self.layers.iter().fold(h, |h, layer| layer.forward(&h))
    }
}

#[test]
fn methods_give_what_their_originals_give() {
    let m = matrix(2, [1.0, -2.0, 0.5, 3.0]);
    let layer = || Linear { w: m.clone(), b: row(&[0.5, -0.5]), k: 0.5 };
    let l = layer();
    assert_eq!(format!("{:?}", l.forward(&m)), format!("{:?}", l.forward_eager(&m)));
    assert_eq!(format!("{:?}", l.twice(&m)), format!("{:?}", l.twice_eager(&m)));
    let s = Stack { layers: vec![layer(), layer()] };
    assert_eq!(format!("{:?}", s.forward(&m)), format!("{:?}", s.forward_eager(&m)));
}
