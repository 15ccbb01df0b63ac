//! A pre-norm transformer block as structs and methods: the model of the `transformer_block` example and of the T rows of
//! the workload benchmark.

use fuse_runtime::prelude::*;

/// `x @ weight.t() + bias`; the weight is `[out, in]`, as PyTorch's.
pub struct Linear<T: Float> {
    pub weight: Tensor<T, 2>,
    pub bias: Tensor<T, 1>,
}

/// What a layer norm multiplies by and adds.
pub struct Norm<T: Float> {
    pub weight: Tensor<T, 1>,
    pub bias: Tensor<T, 1>,
}

/// `x + attention(norm(x))`, then `x + feed_forward(norm(x))`.
pub struct Block<T: Float> {
    pub heads: usize,
    pub norm1: Norm<T>,
    /// Queries, keys and values in one product, like the `in_proj` of PyTorch's attention.
    pub qkv: Linear<T>,
    pub out: Linear<T>,
    pub norm2: Norm<T>,
    pub up: Linear<T>,
    pub down: Linear<T>,
}

/// Writes the forward pass under a name, compiled for a mode: options belong to the compiled function.
macro_rules! forward {
    ($name:ident, $mode:literal) => {
        #[compile(mode = $mode)]
        impl<T: Float> Block<T> {
            /// The block in evaluation, where its dropouts do nothing.
            pub fn $name(&self, #[dims(B, S, D)] x: &Tensor<T, 3>) -> Tensor<T, 3> {
                let heads: usize = self.heads;
                let norm1_weight: &Tensor<T, 1> = &self.norm1.weight;
                let norm1_bias: &Tensor<T, 1> = &self.norm1.bias;
                let qkv_weight: &Tensor<T, 2> = &self.qkv.weight;
                let qkv_bias: &Tensor<T, 1> = &self.qkv.bias;
                let out_weight: &Tensor<T, 2> = &self.out.weight;
                let out_bias: &Tensor<T, 1> = &self.out.bias;
                let norm2_weight: &Tensor<T, 1> = &self.norm2.weight;
                let norm2_bias: &Tensor<T, 1> = &self.norm2.bias;
                let up_weight: &Tensor<T, 2> = &self.up.weight;
                let up_bias: &Tensor<T, 1> = &self.up.bias;
                let down_weight: &Tensor<T, 2> = &self.down.weight;
                let down_bias: &Tensor<T, 1> = &self.down.bias;

                let [batch, seq, width] = x.dims();
                let normed = x.layer_norm(norm1_weight, norm1_bias, 1e-5);
                let [q, k, v] = normed.linear(qkv_weight, qkv_bias).chunk(-1);
                let q = q.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
                let k = k.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
                let v = v.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
                let attended = q.scaled_dot_product_attention(&k, &v, (), false);
                let attended = attended.transpose(1, 2).reshape([batch, seq, width]);
                let x = x + attended.linear(out_weight, out_bias).dropout(0.1, false);

                let normed = x.layer_norm(norm2_weight, norm2_bias, 1e-5);
                let hidden = normed.linear(up_weight, up_bias).gelu().dropout(0.1, false);
                &x + hidden.linear(down_weight, down_bias).dropout(0.1, false)
            }
        }
    };
}

forward!(forward, "default");

impl<T: Float> Block<T> {
    /// A block with random weights, scaled so that values keep their size.
    pub fn random(width: usize, heads: usize, hidden: usize, device: Device) -> Self {
        Block {
            heads,
            norm1: Norm::random(width, device),
            qkv: Linear::random(width, 3 * width, device),
            out: Linear::random(width, width, device),
            norm2: Norm::random(width, device),
            up: Linear::random(width, hidden, device),
            down: Linear::random(hidden, width, device),
        }
    }
}

impl<T: Float> Linear<T> {
    fn random(inputs: usize, outputs: usize, device: Device) -> Self {
        let scale = T::from_f64((inputs as f64).powf(-0.5));
        let bias = Tensor::randn([outputs], device) * T::from_f64(0.1);
        Linear { weight: Tensor::randn([outputs, inputs], device) * scale, bias }
    }
}

impl<T: Float> Norm<T> {
    fn random(width: usize, device: Device) -> Self {
        let weight = Tensor::randn([width], device) * T::from_f64(0.1) + T::from_f64(1.0);
        Norm { weight, bias: Tensor::randn([width], device) * T::from_f64(0.1) }
    }
}
