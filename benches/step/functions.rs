//! A step of training of the block of T5 in both ways: as one compiled function, and as gradients and an optimiser.
//!
//! The arithmetic is the same: bf16 parameters with f32 master copies, and `AdamW` as `fuse_runtime::optim` has it.

use fuse_runtime::optim::AdamW;
use fuse_runtime::prelude::*;

/// Small, so that a bench of thousands of steps along one gradient stays among finite numbers.
const LR: f64 = 1e-6;
const DECAY: f64 = 0.01;

/// A parameter and what AdamW keeps of it.
struct Slot<const R: usize> {
    value: Tensor<bf16, R>,
    master: Tensor<f32, R>,
    mean: Tensor<f32, R>,
    square: Tensor<f32, R>,
}

impl<const R: usize> Slot<R> {
    /// Normal numbers, scaled.
    fn random(dims: [usize; R], scale: f64, device: Device) -> Self {
        let value = Tensor::<bf16, R>::randn(dims, device) * bf16::from_f64(scale);
        let zeros = || Tensor::zeros(dims, device);
        Slot { master: value.cast(), value, mean: zeros(), square: zeros() }
    }
}

/// Writes both from the parameters, each with the names of its gradient, master copy, mean and mean square, its rank and its
/// extents, and from the loss, which both read in place.
macro_rules! training {
    (
        {$($w:ident ($grad:ident $master:ident $mean:ident $square:ident) $rank:tt [$($dims:tt)*];)*}
        |$heads:ident, $x:ident, $cotangent:ident| $loss:tt
    ) => {
        /// The loss and its gradients.
        #[compile(grad($($w),*))]
        #[allow(clippy::too_many_arguments)]
        fn loss(
            $heads: usize,
            #[dims(B, S, D)] $x: &Tensor<bf16, 3>,
            #[dims(B, S, D)] $cotangent: &Tensor<bf16, 3>,
            $(#[dims($($dims)*)] $w: &Tensor<bf16, $rank>,)*
        ) -> Tensor<bf16, 0> $loss

        /// Forward, backward, and AdamW on all parameters.
        #[compile(fullgraph)]
        #[allow(clippy::too_many_arguments)]
        fn whole(
            $heads: usize,
            #[dims(B, S, D)] $x: &Tensor<bf16, 3>,
            #[dims(B, S, D)] $cotangent: &Tensor<bf16, 3>,
            $(
                #[dims($($dims)*)] $w: &mut Tensor<bf16, $rank>,
                #[dims($($dims)*)] $master: &mut Tensor<f32, $rank>,
                #[dims($($dims)*)] $mean: &mut Tensor<f32, $rank>,
                #[dims($($dims)*)] $square: &mut Tensor<f32, $rank>,
            )*
            steps: &mut Tensor<f64, 0>,
            lr: f64,
            decay: f64,
        ) -> Tensor<bf16, 0> {
            let (value, ($($grad,)*)) = value_and_grad(($(&*$w,)*), |($($w,)*)| $loss);
            *steps = &*steps + 1.0;
            let step_size = (lr / (1.0 - (&*steps * 0.9f64.ln()).exp())).cast::<f32>();
            let root2 = (1.0 - (&*steps * 0.999f64.ln()).exp()).sqrt().cast::<f32>();
            let kept: f32 = (1.0 - lr * decay) as f32;
            $(
                let g = $grad.cast::<f32>();
                let mean = &*$mean + (&g - &*$mean) * 0.1;
                let square = &*$square * 0.999 + &g * &g * 0.001;
                let next = &*$master * kept - &mean * &step_size / (square.sqrt() / &root2 + 1e-8);
                *$w = next.cast::<bf16>();
                *$master = next;
                *$mean = mean;
                *$square = square;
            )*
            value
        }

        /// A block in training.
        pub struct Model {
            $($w: Slot<$rank>,)*
            steps: Tensor<f64, 0>,
            optimiser: AdamW,
        }

        impl Model {
            /// A step as one function.
            pub fn whole(&mut self, heads: usize, x: &Tensor<bf16, 3>, cotangent: &Tensor<bf16, 3>) -> Tensor<bf16, 0> {
                let Model { $($w,)* steps, .. } = self;
                whole(
                    heads,
                    x,
                    cotangent,
                    $(&mut $w.value, &mut $w.master, &mut $w.mean, &mut $w.square,)*
                    steps,
                    LR,
                    DECAY,
                )
            }

            /// A step as gradients and an optimiser.
            pub fn pieces(&mut self, heads: usize, x: &Tensor<bf16, 3>, cotangent: &Tensor<bf16, 3>) -> Tensor<bf16, 0> {
                let Model { $($w,)* optimiser, .. } = self;
                let (value, grads) = loss::value_and_grad(heads, x, cotangent, $(&$w.value),*);
                optimiser.step(($(&mut $w.value,)*), &grads);
                value
            }
        }
    };
}

training! {
    {
        norm1_weight (norm1_weight_grad norm1_weight_master norm1_weight_mean norm1_weight_square) 1 [D];
        norm1_bias (norm1_bias_grad norm1_bias_master norm1_bias_mean norm1_bias_square) 1 [D];
        qkv_weight (qkv_weight_grad qkv_weight_master qkv_weight_mean qkv_weight_square) 2 [3 * D, D];
        qkv_bias (qkv_bias_grad qkv_bias_master qkv_bias_mean qkv_bias_square) 1 [3 * D];
        out_weight (out_weight_grad out_weight_master out_weight_mean out_weight_square) 2 [D, D];
        out_bias (out_bias_grad out_bias_master out_bias_mean out_bias_square) 1 [D];
        norm2_weight (norm2_weight_grad norm2_weight_master norm2_weight_mean norm2_weight_square) 1 [D];
        norm2_bias (norm2_bias_grad norm2_bias_master norm2_bias_mean norm2_bias_square) 1 [D];
        up_weight (up_weight_grad up_weight_master up_weight_mean up_weight_square) 2 [H, D];
        up_bias (up_bias_grad up_bias_master up_bias_mean up_bias_square) 1 [H];
        down_weight (down_weight_grad down_weight_master down_weight_mean down_weight_square) 2 [D, H];
        down_bias (down_bias_grad down_bias_master down_bias_mean down_bias_square) 1 [D];
    }
    |heads, x, cotangent| {
        let [batch, seq, width] = x.dims();
        let normed = x.layer_norm(&norm1_weight, &norm1_bias, 1e-5);
        let [q, k, v] = normed.linear(&qkv_weight, &qkv_bias).chunk(-1);
        let q = q.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
        let k = k.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
        let v = v.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
        // Heads have 64 elements. The probabilities are dropped out, too, as by PyTorch's attention in training.
        let scores = (q.matmul(&k.transpose(-2, -1)) * bf16::from_f64(0.125)).softmax(-1).dropout(0.1, true);
        let attended = scores.matmul(&v).transpose(1, 2).reshape([batch, seq, width]);
        let x = x + attended.linear(&out_weight, &out_bias).dropout(0.1, true);
        let normed = x.layer_norm(&norm2_weight, &norm2_bias, 1e-5);
        let hidden = normed.linear(&up_weight, &up_bias).gelu().dropout(0.1, true);
        let y = &x + hidden.linear(&down_weight, &down_bias).dropout(0.1, true);
        (y * cotangent).sum_all()
    }
}

impl Model {
    /// Random weights, scaled so that values keep their size.
    pub fn random(width: usize, hidden: usize, device: Device) -> Self {
        let weight = |dims: [usize; 2]| Slot::random(dims, (dims[1] as f64).powf(-0.5), device);
        let bias = |extent| Slot::random([extent], 0.1, device);
        Model {
            norm1_weight: Slot::random([width], 1.0, device),
            norm1_bias: bias(width),
            qkv_weight: weight([3 * width, width]),
            qkv_bias: bias(3 * width),
            out_weight: weight([width, width]),
            out_bias: bias(width),
            norm2_weight: Slot::random([width], 1.0, device),
            norm2_bias: bias(width),
            up_weight: weight([hidden, width]),
            up_bias: bias(hidden),
            down_weight: weight([width, hidden]),
            down_bias: bias(width),
            steps: Tensor::zeros([], device),
            optimiser: AdamW::new(LR).weight_decay(DECAY),
        }
    }
}
