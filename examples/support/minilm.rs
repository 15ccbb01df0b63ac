//! all-MiniLM-L6-v2: sentences to vectors, with the BERT encoder as compiled functions.

use fuse_runtime::prelude::*;
use fuse_runtime::safetensors::{self, Tensors};
use serde_json::Value;
use std::error::Error as StdError;
use std::fs::File;
use std::path::Path;
use tokenizers::{PaddingParams, Tokenizer};

type Outcome<T> = Result<T, Box<dyn StdError + Send + Sync>>;

/// The sentence encoder: a tokenizer and a BERT whose outputs are averaged.
pub struct MiniLm {
    tokenizer: Tokenizer,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    device: Device,
}

/// Sentences as token numbers, padded to the longest.
pub struct Tokens {
    /// `[sentence, position]`
    pub ids: Tensor<i64, 2>,
    /// Whether there is a token, and not padding.
    pub mask: Tensor<bool, 2>,
}

/// The lookup tables in front of the encoder.
struct Embeddings {
    words: Tensor<f32, 2>,
    positions: Tensor<f32, 2>,
    types: Tensor<f32, 2>,
    norm_weight: Tensor<f32, 1>,
    norm_bias: Tensor<f32, 1>,
    eps: f64,
}

/// One layer of the encoder: attention, then a feed-forward network, each added to its input and normalised.
struct Layer {
    heads: usize,
    eps: f64,
    /// Queries, keys and values in one product.
    qkv_weight: Tensor<f32, 2>,
    qkv_bias: Tensor<f32, 1>,
    out_weight: Tensor<f32, 2>,
    out_bias: Tensor<f32, 1>,
    norm1_weight: Tensor<f32, 1>,
    norm1_bias: Tensor<f32, 1>,
    up_weight: Tensor<f32, 2>,
    up_bias: Tensor<f32, 1>,
    down_weight: Tensor<f32, 2>,
    down_bias: Tensor<f32, 1>,
    norm2_weight: Tensor<f32, 1>,
    norm2_bias: Tensor<f32, 1>,
}

#[compile]
impl Embeddings {
    fn forward(&self, #[dims(B, S)] ids: &Tensor<i64, 2>) -> Tensor<f32, 3> {
        let words: &Tensor<f32, 2> = &self.words;
        let positions: &Tensor<f32, 2> = &self.positions;
        let types: &Tensor<f32, 2> = &self.types;
        let norm_weight: &Tensor<f32, 1> = &self.norm_weight;
        let norm_bias: &Tensor<f32, 1> = &self.norm_bias;
        let eps: f64 = self.eps;

        let [_, seq] = ids.dims();
        // A single text is all of token type 0.
        let summed = words.embedding(ids) + positions.narrow(0, 0, seq) + types.narrow(0, 0, 1);
        summed.layer_norm(norm_weight, norm_bias, eps)
    }
}

#[compile]
impl Layer {
    fn forward(&self, #[dims(B, S, D)] x: &Tensor<f32, 3>, #[dims(B, S)] mask: &Tensor<bool, 2>) -> Tensor<f32, 3> {
        let heads: usize = self.heads;
        let eps: f64 = self.eps;
        let qkv_weight: &Tensor<f32, 2> = &self.qkv_weight;
        let qkv_bias: &Tensor<f32, 1> = &self.qkv_bias;
        let out_weight: &Tensor<f32, 2> = &self.out_weight;
        let out_bias: &Tensor<f32, 1> = &self.out_bias;
        let norm1_weight: &Tensor<f32, 1> = &self.norm1_weight;
        let norm1_bias: &Tensor<f32, 1> = &self.norm1_bias;
        let up_weight: &Tensor<f32, 2> = &self.up_weight;
        let up_bias: &Tensor<f32, 1> = &self.up_bias;
        let down_weight: &Tensor<f32, 2> = &self.down_weight;
        let down_bias: &Tensor<f32, 1> = &self.down_bias;
        let norm2_weight: &Tensor<f32, 1> = &self.norm2_weight;
        let norm2_bias: &Tensor<f32, 1> = &self.norm2_bias;

        let [batch, seq, width] = x.dims();
        let [q, k, v] = x.linear(qkv_weight, qkv_bias).chunk(-1);
        let q = q.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
        let k = k.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
        let v = v.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
        // One row of the mask serves all heads and all queries.
        let visible = mask.reshape([batch, 1, 1, seq]);
        let attended = q.scaled_dot_product_attention(&k, &v, &visible, false);
        let attended = attended.transpose(1, 2).reshape([batch, seq, width]);
        let x = (attended.linear(out_weight, out_bias) + x).layer_norm(norm1_weight, norm1_bias, eps);
        let hidden = x.linear(up_weight, up_bias).gelu();
        (hidden.linear(down_weight, down_bias) + &x).layer_norm(norm2_weight, norm2_bias, eps)
    }
}

/// The mean of the vectors of the tokens of each sentence, scaled to length 1.
#[compile]
fn pool(#[dims(B, S, D)] x: &Tensor<f32, 3>, #[dims(B, S)] mask: &Tensor<bool, 2>) -> Tensor<f32, 2> {
    let weight = mask.cast::<f32>().unsqueeze(-1);
    let mean = (x * &weight).sum(1) / weight.sum(1);
    &mean / mean.norm_keepdim(-1)
}

impl MiniLm {
    /// Reads `config.json`, `model.safetensors` and `tokenizer.json` of a folder.
    pub fn load(folder: &Path, device: Device) -> Outcome<MiniLm> {
        let config: Value = serde_json::from_reader(File::open(folder.join("config.json"))?)?;
        let activation = &config["hidden_act"];
        if activation != "gelu" {
            return Err(format!("the activation is {activation}, and the encoder has \"gelu\"").into());
        }
        let number = |name: &str| config[name].as_u64().ok_or_else(|| format!("config.json has no number `{name}`"));
        let heads = usize::try_from(number("num_attention_heads")?)?;
        let eps = config["layer_norm_eps"].as_f64().ok_or("config.json has no number `layer_norm_eps`")?;
        let tensors = safetensors::load(folder.join("model.safetensors"), device)?;
        let mut layers = Vec::new();
        for index in 0..number("num_hidden_layers")? {
            layers.push(Layer::load(&tensors, index, heads, eps)?);
        }
        let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json"))?;
        // To the longest sentence of a batch; the file says to a fixed length.
        tokenizer.with_padding(Some(PaddingParams::default()));
        Ok(MiniLm { tokenizer, embeddings: Embeddings::load(&tensors, eps)?, layers, device })
    }

    /// The token numbers of sentences.
    pub fn tokenize(&self, texts: &[&str]) -> Outcome<Tokens> {
        let encodings = self.tokenizer.encode_batch(texts.to_vec(), true)?;
        let dims = [encodings.len(), encodings.first().map_or(0, |encoding| encoding.len())];
        let ids = encodings.iter().flat_map(|encoding| encoding.get_ids()).map(|&id| i64::from(id)).collect();
        let mask = encodings.iter().flat_map(|encoding| encoding.get_attention_mask()).map(|&bit| bit == 1).collect();
        Ok(Tokens { ids: Tensor::from_vec(ids, dims, self.device), mask: Tensor::from_vec(mask, dims, self.device) })
    }

    /// One vector of length 1 for each sentence.
    pub fn encode(&self, tokens: &Tokens) -> Tensor<f32, 2> {
        let embedded = self.embeddings.forward(&tokens.ids);
        let encoded = self.layers.iter().fold(embedded, |x, layer| layer.forward(&x, &tokens.mask));
        pool(&encoded, &tokens.mask)
    }
}

impl Embeddings {
    fn load(tensors: &Tensors, eps: f64) -> Result<Self, Error> {
        Ok(Embeddings {
            words: tensors.get("embeddings.word_embeddings.weight")?,
            positions: tensors.get("embeddings.position_embeddings.weight")?,
            types: tensors.get("embeddings.token_type_embeddings.weight")?,
            norm_weight: tensors.get("embeddings.LayerNorm.weight")?,
            norm_bias: tensors.get("embeddings.LayerNorm.bias")?,
            eps,
        })
    }
}

impl Layer {
    fn load(tensors: &Tensors, index: u64, heads: usize, eps: f64) -> Result<Self, Error> {
        let matrix = |name: &str| tensors.get::<f32, 2>(&format!("encoder.layer.{index}.{name}.weight"));
        let weight = |name: &str| tensors.get::<f32, 1>(&format!("encoder.layer.{index}.{name}.weight"));
        let bias = |name: &str| tensors.get::<f32, 1>(&format!("encoder.layer.{index}.{name}.bias"));
        let [query, key, value] = ["query", "key", "value"].map(|name| format!("attention.self.{name}"));
        Ok(Layer {
            heads,
            eps,
            qkv_weight: Tensor::cat([matrix(&query)?, matrix(&key)?, matrix(&value)?], 0),
            qkv_bias: Tensor::cat([bias(&query)?, bias(&key)?, bias(&value)?], 0),
            out_weight: matrix("attention.output.dense")?,
            out_bias: bias("attention.output.dense")?,
            norm1_weight: weight("attention.output.LayerNorm")?,
            norm1_bias: bias("attention.output.LayerNorm")?,
            up_weight: matrix("intermediate.dense")?,
            up_bias: bias("intermediate.dense")?,
            down_weight: matrix("output.dense")?,
            down_bias: bias("output.dense")?,
            norm2_weight: weight("output.LayerNorm")?,
            norm2_bias: bias("output.LayerNorm")?,
        })
    }
}
