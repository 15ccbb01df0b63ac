//! The model: six pre-norm transformer layers over a cache of keys and values, one token a call.

use fuse_runtime::prelude::*;

pub const WIDTH: usize = 768;
pub const HEADS: usize = 12;
pub const HIDDEN: usize = 3072;
pub const VOCABULARY: usize = 32000;
/// Places in the cache.
pub const CONTEXT: usize = 1024;
const LAYERS: usize = 6;

/// The weights; those of all layers lie behind each other along the first axis, and those of products are `[out, in]`.
pub struct Model {
    tokens: Tensor<bf16, 2>,
    positions: Tensor<bf16, 2>,
    norm1_w: Tensor<bf16, 2>,
    norm1_b: Tensor<bf16, 2>,
    qkv_w: Tensor<bf16, 3>,
    qkv_b: Tensor<bf16, 2>,
    out_w: Tensor<bf16, 3>,
    out_b: Tensor<bf16, 2>,
    norm2_w: Tensor<bf16, 2>,
    norm2_b: Tensor<bf16, 2>,
    up_w: Tensor<bf16, 3>,
    up_b: Tensor<bf16, 2>,
    down_w: Tensor<bf16, 3>,
    down_b: Tensor<bf16, 2>,
    norm_w: Tensor<bf16, 1>,
    norm_b: Tensor<bf16, 1>,
    head: Tensor<bf16, 2>,
}

/// What has been written so far: the last token, its place, and per layer the keys and values of all places before it, side
/// by side.
pub struct Text {
    token: Tensor<i64, 1>,
    place: Tensor<i64, 1>,
    caches: [Tensor<bf16, 2>; LAYERS],
}

/// Writes one step of the model for layers by number, each with the name of its cache.
macro_rules! step {
    ($($layer:literal $cache:ident),*) => {
        /// What follows a token at a place, and the place of that. Its keys and values go into the caches.
        ///
        /// A place is a number on the device, so that every step is the same launches; nothing of it is known to the host.
        #[compile(mode = "reduce-overhead", fullgraph)]
        #[allow(clippy::too_many_arguments)]
        fn step(
            #[dims(1)] token: &Tensor<i64, 1>,
            #[dims(1)] place: &Tensor<i64, 1>,
            $(#[dims(C, 2 * D)] $cache: &mut Tensor<bf16, 2>,)*
            #[dims(V, D)] tokens: &Tensor<bf16, 2>,
            #[dims(C, D)] positions: &Tensor<bf16, 2>,
            #[dims(L, D)] norm1_w: &Tensor<bf16, 2>,
            #[dims(L, D)] norm1_b: &Tensor<bf16, 2>,
            #[dims(L, 3 * D, D)] qkv_w: &Tensor<bf16, 3>,
            #[dims(L, 3 * D)] qkv_b: &Tensor<bf16, 2>,
            #[dims(L, D, D)] out_w: &Tensor<bf16, 3>,
            #[dims(L, D)] out_b: &Tensor<bf16, 2>,
            #[dims(L, D)] norm2_w: &Tensor<bf16, 2>,
            #[dims(L, D)] norm2_b: &Tensor<bf16, 2>,
            #[dims(L, H, D)] up_w: &Tensor<bf16, 3>,
            #[dims(L, H)] up_b: &Tensor<bf16, 2>,
            #[dims(L, D, H)] down_w: &Tensor<bf16, 3>,
            #[dims(L, D)] down_b: &Tensor<bf16, 2>,
            #[dims(D)] norm_w: &Tensor<bf16, 1>,
            #[dims(D)] norm_b: &Tensor<bf16, 1>,
            #[dims(V, D)] head: &Tensor<bf16, 2>,
        ) -> (Tensor<i64, 1>, Tensor<i64, 1>) {
            let [context, width] = positions.dims();
            let places: Tensor<i64, 1> = Tensor::arange(0, context as i64, place.device());
            let seen = places.le(place).unsqueeze(0);
            let x: Tensor<bf16, 2> = tokens.embedding(token) + positions.embedding(place);
            $(
                let normed = x.layer_norm(&norm1_w.narrow(0, $layer, 1).squeeze(0), &norm1_b.narrow(0, $layer, 1).squeeze(0), 1e-5);
                let qkv = normed.linear(&qkv_w.narrow(0, $layer, 1).squeeze(0), &qkv_b.narrow(0, $layer, 1).squeeze(0));
                $cache.index_copy_(0, place, &qkv.narrow(1, width, 2 * width));
                let q = qkv.narrow(1, 0, width).reshape([1, 1, HEADS, width / HEADS]).transpose(1, 2);
                let k = $cache.narrow(1, 0, width).reshape([1, context, HEADS, width / HEADS]).transpose(1, 2);
                let v = $cache.narrow(1, width, width).reshape([1, context, HEADS, width / HEADS]).transpose(1, 2);
                let attended = q.scaled_dot_product_attention(&k, &v, &seen, false).transpose(1, 2).reshape([1, width]);
                let x = x + attended.linear(&out_w.narrow(0, $layer, 1).squeeze(0), &out_b.narrow(0, $layer, 1).squeeze(0));
                let normed = x.layer_norm(&norm2_w.narrow(0, $layer, 1).squeeze(0), &norm2_b.narrow(0, $layer, 1).squeeze(0), 1e-5);
                let hidden = normed.linear(&up_w.narrow(0, $layer, 1).squeeze(0), &up_b.narrow(0, $layer, 1).squeeze(0)).gelu();
                let x = &x + hidden.linear(&down_w.narrow(0, $layer, 1).squeeze(0), &down_b.narrow(0, $layer, 1).squeeze(0));
            )*
            let scores = x.layer_norm(norm_w, norm_b, 1e-5).matmul(&head.t());
            (scores.argmax(-1), place + 1)
        }
    };
}

step!(0 cache0, 1 cache1, 2 cache2, 3 cache3, 4 cache4, 5 cache5);

impl Model {
    /// A model with random weights, scaled so that values keep their size.
    pub fn random(device: Device) -> Model {
        let norm = || (Tensor::ones([LAYERS, WIDTH], device), Tensor::zeros([LAYERS, WIDTH], device));
        let layer = |inputs: usize, outputs: usize| {
            let scale = bf16::from_f64((inputs as f64).powf(-0.5));
            (Tensor::randn([LAYERS, outputs, inputs], device) * scale, Tensor::zeros([LAYERS, outputs], device))
        };
        let ((norm1_w, norm1_b), (norm2_w, norm2_b)) = (norm(), norm());
        let ((qkv_w, qkv_b), (out_w, out_b)) = (layer(WIDTH, 3 * WIDTH), layer(WIDTH, WIDTH));
        let ((up_w, up_b), (down_w, down_b)) = (layer(WIDTH, HIDDEN), layer(HIDDEN, WIDTH));
        Model {
            tokens: Tensor::randn([VOCABULARY, WIDTH], device),
            positions: Tensor::randn([CONTEXT, WIDTH], device),
            norm1_w,
            norm1_b,
            qkv_w,
            qkv_b,
            out_w,
            out_b,
            norm2_w,
            norm2_b,
            up_w,
            up_b,
            down_w,
            down_b,
            norm_w: Tensor::ones([WIDTH], device),
            norm_b: Tensor::zeros([WIDTH], device),
            head: Tensor::randn([VOCABULARY, WIDTH], device) * bf16::from_f64((WIDTH as f64).powf(-0.5)),
        }
    }

    /// Writes one more token.
    pub fn write(&self, text: &mut Text) {
        let Model { tokens, positions, norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b, .. } = self;
        let Model { norm2_w, norm2_b, up_w, up_b, down_w, down_b, norm_w, norm_b, head, .. } = self;
        let [c0, c1, c2, c3, c4, c5] = &mut text.caches;
        let (token, place) = (&text.token, &text.place);
        (text.token, text.place) = step(
            token, place, c0, c1, c2, c3, c4, c5, tokens, positions, norm1_w, norm1_b, qkv_w, qkv_b, out_w, out_b,
            norm2_w, norm2_b, up_w, up_b, down_w, down_b, norm_w, norm_b, head,
        );
    }
}

impl Text {
    /// A text of one token.
    pub fn new(device: Device) -> Text {
        let number = |value: i64| Tensor::from_slice(&[value], [1], device);
        let caches = std::array::from_fn(|_| Tensor::zeros([CONTEXT, 2 * WIDTH], device));
        Text { token: number(1), place: number(0), caches }
    }

    /// The last token, which waits for the device.
    pub fn last(&self) -> i64 {
        self.token.to_vec()[0]
    }
}
