//! Two networks that read digits.

use fuse_runtime::optim::Parameters;
use fuse_runtime::prelude::*;

/// What training needs of a network.
pub trait Network: Parameters + Sized {
    /// How much each of the ten digits is seen in each image.
    fn scores(&self, images: &Tensor<f32, 2>) -> Tensor<f32, 2>;

    /// The mean cross-entropy and its gradients, one for each parameter.
    fn loss_and_gradients(&self, images: &Tensor<f32, 2>, labels: &Tensor<i64, 1>) -> (Tensor<f32, 0>, Self);
}

/// The share of values that training leaves out at random, so that the network does not rely on single ones.
const DROPOUT: f64 = 0.1;

/// Writes a network from the ranks of its parameters and from how it gets from images to scores: a struct, the compiled
/// function of the scores, and the compiled function of the loss, which has gradients.
macro_rules! network {
    ($(#[$doc:meta])* $name:ident($images:ident, $dropout:ident; $($param:ident: $rank:literal),+ $(,)?) { $($scores:tt)* }) => {
        $(#[$doc])*
        pub struct $name {
            $(pub $param: Tensor<f32, $rank>,)+
        }

        fuse_runtime::parameters!($name { $($param),+ });

        const _: () = {
            #[compile]
            fn scores($images: &Tensor<f32, 2>, $dropout: f64, $($param: &Tensor<f32, $rank>),+) -> Tensor<f32, 2> {
                $($scores)*
            }

            #[compile(grad($($param),+))]
            fn loss(
                $images: &Tensor<f32, 2>,
                labels: &Tensor<i64, 1>,
                $dropout: f64,
                $($param: &Tensor<f32, $rank>),+
            ) -> Tensor<f32, 0> {
                let scores = { $($scores)* };
                scores.cross_entropy(labels)
            }

            impl Network for $name {
                fn scores(&self, images: &Tensor<f32, 2>) -> Tensor<f32, 2> {
                    scores(images, 0.0, $(&self.$param),+)
                }

                fn loss_and_gradients(&self, images: &Tensor<f32, 2>, labels: &Tensor<i64, 1>) -> (Tensor<f32, 0>, Self) {
                    let (loss, ($($param),+)) = loss::value_and_grad(images, labels, DROPOUT, $(&self.$param),+);
                    (loss, $name { $($param),+ })
                }
            }
        };
    };
}

network! {
    /// Two hidden layers.
    Mlp(images, dropout; w1: 2, b1: 1, w2: 2, b2: 1, w3: 2, b3: 1) {
        let hidden = images.linear(w1, b1).gelu().dropout(dropout, true);
        let hidden = hidden.linear(w2, b2).gelu().dropout(dropout, true);
        hidden.linear(w3, b3)
    }
}

network! {
    /// A transformer block over the 16 patches of 2 by 2 pixels; what its tokens say is averaged.
    Transformer(
        images, dropout; patch_w: 2, position: 2, norm1_w: 1, norm1_b: 1, qkv_w: 2, out_w: 2, out_b: 1,
        norm2_w: 1, norm2_b: 1, up_w: 2, up_b: 1, down_w: 2, down_b: 1, head_w: 2, head_b: 1
    ) {
        let [batch, _] = images.dims();
        let width = position.size(1);
        // [batch, y, dy, x, dx] -> [batch, y * x, dy * dx]
        let patches = images.reshape([batch, 4, 2, 4, 2]).permute([0, 1, 3, 2, 4]).reshape([batch, 16, 4]);
        let x = patches.matmul(patch_w) + position;

        let normed = x.layer_norm(norm1_w, norm1_b, 1e-5);
        let [q, k, v] = normed.matmul(qkv_w).reshape([batch, 16, 12, width / 4]).transpose(1, 2).chunk(1);
        let attended = q.scaled_dot_product_attention(&k, &v, (), false);
        let attended = attended.transpose(1, 2).reshape([batch, 16, width]);
        let x = x + attended.linear(out_w, out_b).dropout(dropout, true);

        let normed = x.layer_norm(norm2_w, norm2_b, 1e-5);
        let x = x + normed.linear(up_w, up_b).gelu().linear(down_w, down_b).dropout(dropout, true);
        x.mean(1).linear(head_w, head_b)
    }
}

impl Mlp {
    pub fn new(width: usize, device: Device) -> Self {
        let [(w1, b1), (w2, b2), (w3, b3)] =
            [linear(64, width, device), linear(width, width, device), linear(width, 10, device)];
        Mlp { w1, b1, w2, b2, w3, b3 }
    }
}

impl Transformer {
    /// Heads are a quarter of the width.
    pub fn new(width: usize, device: Device) -> Self {
        let (out_w, out_b) = linear(width, width, device);
        let (up_w, up_b) = linear(width, 4 * width, device);
        let (down_w, down_b) = linear(4 * width, width, device);
        let (head_w, head_b) = linear(width, 10, device);
        let norm = || (Tensor::ones([width], device), Tensor::zeros([width], device));
        let ((norm1_w, norm1_b), (norm2_w, norm2_b)) = (norm(), norm());
        Transformer {
            patch_w: normal([4, width], 4, device),
            position: normal([16, width], 100, device),
            qkv_w: normal([width, 3 * width], width, device),
            norm1_w,
            norm1_b,
            out_w,
            out_b,
            norm2_w,
            norm2_b,
            up_w,
            up_b,
            down_w,
            down_b,
            head_w,
            head_b,
        }
    }
}

/// The weights of a layer, `[out, in]`, and biases of 0.
fn linear(inputs: usize, outputs: usize, device: Device) -> (Tensor<f32, 2>, Tensor<f32, 1>) {
    (normal([outputs, inputs], inputs, device), Tensor::zeros([outputs], device))
}

/// Random weights that keep the size of values when so many of them are added.
fn normal(shape: [usize; 2], inputs: usize, device: Device) -> Tensor<f32, 2> {
    let weights: Tensor<f32, 2> = Tensor::randn(shape, device);
    weights * (inputs as f32).powf(-0.5)
}
