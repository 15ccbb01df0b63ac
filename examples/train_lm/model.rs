//! A GPT: token and position embeddings, pre-norm transformer blocks, and scores for the next character.
//!
//! Every part is a compiled function with gradients. A block keeps nothing from its forward pass but its input: on the
//! way back it is computed once more, forward and backward in one graph, as "activation checkpointing" does.

use fuse_runtime::Generator;
use fuse_runtime::prelude::*;

/// What decides the shapes of the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub layers: usize,
    pub heads: usize,
    pub width: usize,
    pub context: usize,
    pub vocabulary: usize,
}

/// The whole model, or the gradients of it.
pub struct Gpt<T: Float> {
    pub heads: usize,
    tokens: Tensor<T, 2>,
    positions: Tensor<T, 2>,
    blocks: Vec<Block<T>>,
    norm_w: Tensor<T, 1>,
    norm_b: Tensor<T, 1>,
    head: Tensor<T, 2>,
}

fuse_runtime::parameters!(Gpt<T> { tokens, positions, blocks, norm_w, norm_b, head });

/// The weights of a block; those of products are `[out, in]`.
pub struct Block<T: Float> {
    norm1_w: Tensor<T, 1>,
    norm1_b: Tensor<T, 1>,
    qkv_w: Tensor<T, 2>,
    qkv_b: Tensor<T, 1>,
    out_w: Tensor<T, 2>,
    out_b: Tensor<T, 1>,
    norm2_w: Tensor<T, 1>,
    norm2_b: Tensor<T, 1>,
    up_w: Tensor<T, 2>,
    up_b: Tensor<T, 1>,
    down_w: Tensor<T, 2>,
    down_b: Tensor<T, 1>,
}

fuse_runtime::parameters!(Block<T> {
    norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b
});

#[compile(grad(tokens, positions))]
fn embed<T: Float>(
    #[dims(B, S)] text: &Tensor<i64, 2>,
    #[dims(V, D)] tokens: &Tensor<T, 2>,
    #[dims(C, D)] positions: &Tensor<T, 2>,
) -> Tensor<T, 3> {
    let seq = text.size(1);
    tokens.embedding(text) + positions.narrow(0, 0, seq)
}

#[compile(grad(x, norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b))]
fn block<T: Float>(
    #[dims(B, S, D)] x: &Tensor<T, 3>,
    heads: usize,
    dropout: f64,
    #[dims(D)] norm1_w: &Tensor<T, 1>,
    #[dims(D)] norm1_b: &Tensor<T, 1>,
    #[dims(3 * D, D)] qkv_w: &Tensor<T, 2>,
    #[dims(3 * D)] qkv_b: &Tensor<T, 1>,
    #[dims(D, D)] out_w: &Tensor<T, 2>,
    #[dims(D)] out_b: &Tensor<T, 1>,
    #[dims(D)] norm2_w: &Tensor<T, 1>,
    #[dims(D)] norm2_b: &Tensor<T, 1>,
    #[dims(H, D)] up_w: &Tensor<T, 2>,
    #[dims(H)] up_b: &Tensor<T, 1>,
    #[dims(D, H)] down_w: &Tensor<T, 2>,
    #[dims(D)] down_b: &Tensor<T, 1>,
) -> Tensor<T, 3> {
    let [batch, seq, width] = x.dims();
    let normed = x.layer_norm(norm1_w, norm1_b, 1e-5);
    let [q, k, v] = normed.linear(qkv_w, qkv_b).chunk(-1);
    let q = q.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
    let k = k.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
    let v = v.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
    let attended = q.scaled_dot_product_attention(&k, &v, (), true);
    let attended = attended.transpose(1, 2).reshape([batch, seq, width]);
    let x = x + attended.linear(out_w, out_b).dropout(dropout, true);

    let normed = x.layer_norm(norm2_w, norm2_b, 1e-5);
    let hidden = normed.linear(up_w, up_b).gelu();
    &x + hidden.linear(down_w, down_b).dropout(dropout, true)
}

/// How far what follows each character is foretold: the mean cross-entropy.
#[compile(grad(x, norm_w, norm_b, head))]
fn loss<T: Float>(
    #[dims(B, S, D)] x: &Tensor<T, 3>,
    #[dims(B, S)] targets: &Tensor<i64, 2>,
    #[dims(D)] norm_w: &Tensor<T, 1>,
    #[dims(D)] norm_b: &Tensor<T, 1>,
    #[dims(V, D)] head: &Tensor<T, 2>,
) -> Tensor<f32, 0> {
    let [batch, seq, _] = x.dims();
    let scores = x.layer_norm(norm_w, norm_b, 1e-5).matmul(&head.t()).cast::<f32>();
    scores.reshape([batch * seq, head.size(0)]).cross_entropy(&targets.reshape([batch * seq]))
}

/// The scores of what follows one character of the first row.
#[compile]
fn scores<T: Float>(
    x: &Tensor<T, 3>,
    place: usize,
    norm_w: &Tensor<T, 1>,
    norm_b: &Tensor<T, 1>,
    head: &Tensor<T, 2>,
) -> Tensor<f32, 1> {
    let [_, _, width] = x.dims();
    let last = x.narrow(0, 0, 1).narrow(1, place, 1).reshape([1, width]);
    last.layer_norm(norm_w, norm_b, 1e-5).matmul(&head.t()).cast::<f32>().reshape([head.size(0)])
}

/// Calls a function of a block with its weights.
macro_rules! with_weights {
    ($function:path, ($($before:expr),*), $block:expr, ($($after:expr),*)) => {{
        let Block { norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b } = $block;
        $function(
            $($before,)* norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b
            $(, $after)*
        )
    }};
}

impl<T: Float> Block<T> {
    fn new(shape: &Shape, device: Device) -> Self {
        let (width, layers) = (shape.width, shape.layers as f64);
        let (ones, zeros) = (|| Tensor::ones([width], device), |n| Tensor::zeros([n], device));
        // GPT-2: what is added to the residual stream is smaller the more often that happens.
        let added = 0.02 / (2.0 * layers).sqrt();
        Block {
            norm1_w: ones(),
            norm1_b: zeros(width),
            qkv_w: normal([3 * width, width], 0.02, device),
            qkv_b: zeros(3 * width),
            out_w: normal([width, width], added, device),
            out_b: zeros(width),
            norm2_w: ones(),
            norm2_b: zeros(width),
            up_w: normal([4 * width, width], 0.02, device),
            up_b: zeros(4 * width),
            down_w: normal([width, 4 * width], added, device),
            down_b: zeros(width),
        }
    }

    fn forward(&self, x: &Tensor<T, 3>, heads: usize, dropout: f64) -> Tensor<T, 3> {
        with_weights!(block, (x, heads, dropout), self, ())
    }

    /// The gradients of the input and of the weights.
    fn backward(&self, x: &Tensor<T, 3>, heads: usize, dropout: f64, up: &Tensor<T, 3>) -> (Tensor<T, 3>, Self) {
        let (_, gradients) = with_weights!(block::vjp, (x, heads, dropout), self, (up));
        let (x, norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b) = gradients;
        let gradients =
            Block { norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, norm2_w, norm2_b, up_w, up_b, down_w, down_b };
        (x, gradients)
    }
}

impl<T: Float> Gpt<T> {
    /// Random weights, as GPT-2 starts with.
    pub fn new(shape: &Shape, device: Device) -> Self {
        Gpt {
            heads: shape.heads,
            tokens: normal([shape.vocabulary, shape.width], 0.02, device),
            positions: normal([shape.context, shape.width], 0.02, device),
            blocks: (0..shape.layers).map(|_| Block::new(shape, device)).collect(),
            norm_w: Tensor::ones([shape.width], device),
            norm_b: Tensor::zeros([shape.width], device),
            head: normal([shape.vocabulary, shape.width], 0.02, device),
        }
    }

    /// The loss of a batch and the gradients of all parameters.
    ///
    /// Dropout draws from `masks`. A block that is computed again draws the same mask, since it starts from the same state.
    pub fn loss_and_gradients(
        &self,
        text: &Tensor<i64, 2>,
        targets: &Tensor<i64, 2>,
        dropout: f64,
        masks: &mut Generator,
    ) -> (Tensor<f32, 0>, Gpt<T>) {
        let mut x = embed(text, &self.tokens, &self.positions);
        let mut inputs = Vec::new();
        for block in &self.blocks {
            let before = *masks;
            let next = masks.scope(|| block.forward(&x, self.heads, dropout));
            inputs.push((std::mem::replace(&mut x, next), before));
        }
        let (loss, (mut up, norm_w, norm_b, head)) =
            loss::value_and_grad(&x, targets, &self.norm_w, &self.norm_b, &self.head);
        let mut blocks = Vec::new();
        for (block, (x, mut masks)) in self.blocks.iter().zip(inputs).rev() {
            let (input, gradients) = masks.scope(|| block.backward(&x, self.heads, dropout, &up));
            up = input;
            blocks.push(gradients);
        }
        blocks.reverse();
        let (_, (tokens, positions)) = embed::vjp(text, &self.tokens, &self.positions, &up);
        (loss, Gpt { heads: self.heads, tokens, positions, blocks, norm_w, norm_b, head })
    }

    /// The loss of a batch without dropout.
    pub fn loss(&self, text: &Tensor<i64, 2>, targets: &Tensor<i64, 2>) -> Tensor<f32, 0> {
        loss(&self.hidden(text), targets, &self.norm_w, &self.norm_b, &self.head)
    }

    /// The scores of what follows the character at a place of the first row.
    pub fn scores(&self, text: &Tensor<i64, 2>, place: usize) -> Tensor<f32, 1> {
        scores(&self.hidden(text), place, &self.norm_w, &self.norm_b, &self.head)
    }

    fn hidden(&self, text: &Tensor<i64, 2>) -> Tensor<T, 3> {
        let x = embed(text, &self.tokens, &self.positions);
        self.blocks.iter().fold(x, |x, block| block.forward(&x, self.heads, 0.0))
    }
}

fn normal<T: Float>(shape: [usize; 2], deviation: f64, device: Device) -> Tensor<T, 2> {
    Tensor::randn(shape, device) * T::from_f64(deviation)
}
