//! The table of workloads: names, sizes and inputs, the same as the peers'.

use super::block::Block;
use super::functions;
use fuse_runtime::prelude::*;

/// A workload at one size.
pub struct Row {
    pub name: &'static str,
    pub work: Work,
    /// How many sets of inputs to rotate over, so that no timed read is served from the cache.
    pub sets: usize,
    /// Makes the inputs and gives what runs one call on set `call % sets`.
    pub prepare: fn(Device, sets: usize) -> Call,
}

/// One call of a workload, by its number.
pub type Call = Box<dyn Fn(usize)>;

/// What a speed is stated in.
#[derive(Clone, Copy)]
pub enum Work {
    /// Bytes read and written.
    Bytes(u64),
    /// Multiplications and additions.
    Flops(u64),
    /// Too small for either to say something.
    Small,
}

/// The rows of a device: the large ones for a GPU, the K rows for a processor.
pub fn rows(device: Device) -> Vec<Row> {
    if device.is_cpu() { host_rows() } else { device_rows() }
}

use Work::{Bytes, Flops, Small};

macro_rules! row {
    ($name:literal, $work:expr, $sets:literal x |$device:ident| $make:expr, $($function:ident)::+ ($($input:ident),*)) => {
        Row {
            name: $name,
            work: $work,
            sets: $sets,
            prepare: |$device, sets| {
                let inputs: Vec<_> = (0..sets).map(|_| $make).collect();
                Box::new(move |call| {
                    let ($($input,)*) = &inputs[call % inputs.len()];
                    drop(functions::$($function)::+($($input),*));
                })
            },
        }
    };
}

fn device_rows() -> Vec<Row> {
    const N: usize = 1 << 26;
    vec![
        row!("P1_pointwise_f32_64M", Bytes(12 << 26), 3 x |d| (f32s([N], d), f32s([N], d)), pointwise(x, y)),
        row!("P2_horizontal_f32_64M", Bytes(12 << 26), 3 x |d| (f32s([N], d),), horizontal(x)),
        row!("P3_bias_gelu_bf16_16384x3072", Bytes(4 * 16384 * 3072),
            3 x |d| (bf16s([16384, 3072], d), bf16s([3072], d)), bias_gelu(x, b)),
        row!("P4_bias_dropout_residual_layernorm_f32_32768x768", Bytes(12 * 32768 * 768),
            3 x |d| (f32s([32768, 768], d), f32s([768], d), f32s([32768, 768], d), f32s([768], d), f32s([768], d)),
            bias_dropout_residual_layernorm(x, b, r, g, be)),
        row!("P5_softmax_f32_16384x4096", Bytes(8 * 16384 * 4096), 3 x |d| (f32s([16384, 4096], d),), softmax(x)),
        row!("P6_layernorm_bf16_16384x4096", Bytes(4 * 16384 * 4096),
            3 x |d| (bf16s([16384, 4096], d), bf16s([4096], d), bf16s([4096], d)), layernorm(x, g, b)),
        row!("P7_rmsnorm_bf16_16384x4096", Bytes(4 * 16384 * 4096),
            3 x |d| (bf16s([16384, 4096], d), bf16s([4096], d)), rmsnorm(x, g)),
        row!("P8_cross_entropy_f32_4096x50257", Bytes(4 * 4096 * 50257),
            3 x |d| (f32s([4096, 50257], d), classes(4096, 50257, d)), cross_entropy(x, t)),
        row!("P9_column_sum_f32_65536x3072", Bytes(4 * 65536 * 3072), 3 x |d| (f32s([65536, 3072], d),), column_sum(x)),
        row!("P10_transpose_add_f32_8192x8192", Bytes(12 * 8192 * 8192),
            3 x |d| (f32s([8192, 8192], d), f32s([8192, 8192], d)), transpose_add(x, y)),
        row!("M1_linear_relu_f32_4096x768x3072", Flops(2 * 4096 * 768 * 3072),
            3 x |d| linear::<f32>([4096, 768, 3072], d), linear_relu(x, w, b)),
        row!("M2_linear_relu_tf32_4096x768x3072", Flops(2 * 4096 * 768 * 3072),
            3 x |d| linear::<f32>([4096, 768, 3072], d), linear_relu_tf32(x, w, b)),
        row!("M3_linear_relu_bf16_4096x768x3072", Flops(2 * 4096 * 768 * 3072),
            3 x |d| linear::<bf16>([4096, 768, 3072], d), linear_relu(x, w, b)),
        row!("M4_linear_relu_bf16_8192x8192x8192", Flops(2 * 8192 * 8192 * 8192),
            3 x |d| linear::<bf16>([8192, 8192, 8192], d), linear_relu(x, w, b)),
        row!("M5_linear_relu_f32_4096x4096x4096", Flops(2 * 4096 * 4096 * 4096),
            3 x |d| linear::<f32>([4096, 4096, 4096], d), linear_relu(x, w, b)),
        row!("M6_linear_relu_bf16_16x4096x4096", Bytes(2 * 4096 * 4096),
            8 x |d| linear::<bf16>([16, 4096, 4096], d), linear_relu(x, w, b)),
        row!("M7_mlp_gelu_bf16_4096x768x3072", Flops(4 * 4096 * 768 * 3072),
            3 x |d| (bf16s([4096, 768], d), weight([768, 3072], d), bf16s([3072], d), weight([3072, 768], d), bf16s([768], d)),
            mlp_gelu(x, w1, b1, w2, b2)),
        row!("A1_sdpa_bf16_8x12x512x64", Flops(4 * 8 * 12 * 512 * 512 * 64),
            3 x |d| heads::<bf16>([8, 12, 512, 64], d), attention(q, k, v)),
        row!("A2_sdpa_causal_bf16_4x16x4096x128", Flops(2 * 4 * 16 * 4096 * 4096 * 128),
            3 x |d| heads([4, 16, 4096, 128], d), causal_attention(q, k, v)),
        row!("A3_written_out_attention_bf16_4x16x2048x64", Flops(4 * 4 * 16 * 2048 * 2048 * 64),
            3 x |d| heads([4, 16, 2048, 64], d), written_out_attention(q, k, v)),
        row!("A4_sdpa_f32_8x12x512x64", Flops(4 * 8 * 12 * 512 * 512 * 64),
            3 x |d| heads::<f32>([8, 12, 512, 64], d), attention(q, k, v)),
        block_row("T1_block_eval_f32_8x512x768", 3, |d, sets| block::<f32>([8, 512, 768], 1, d, sets)),
        block_row("T2_block_eval_bf16_8x512x768", 3, |d, sets| block::<bf16>([8, 512, 768], 1, d, sets)),
        block_row("T3_block_eval_bf16_1x128x768", 1, |d, sets| block::<bf16>([1, 128, 768], 1, d, sets)),
        // The weights of one block stay in the cache; those of eight do not.
        block_row("T3cold_block_eval_bf16_1x128x768", 8, |d, sets| block::<bf16>([1, 128, 768], 8, d, sets)),
        block_row("T4_block_train_f32_8x512x768", 3, |d, sets| block_train::<f32>([8, 512, 768], d, sets)),
        block_row("T5_block_train_bf16_8x512x768", 3, |d, sets| block_train::<bf16>([8, 512, 768], d, sets)),
        row!("L1_chain_75_ops_f32_1024", Small, 3 x |d| (f32s([1024], d),), chain(x)),
        row!("L2_small_mlp_f32_1x256", Small, 3 x |d| small_layers(d), small_mlp(x, a, b, c)),
        row!("G1_graph_break_f32_256x256", Small,
            3 x |d| (f32s([256, 256], d), weight([256, 256], d)), graph_break(x, w)),
        row!("G2_data_dependent_while_f32_256x256", Small, 3 x |d| (f32s([256, 256], d) * 30.0,), data_dependent_while(x)),
        row!("G3_item_to_host_f32_256x256", Small, 3 x |d| (f32s([256, 256], d),), item_to_host(x)),
    ]
}

fn host_rows() -> Vec<Row> {
    const N: usize = 1 << 24;
    vec![
        row!("K1_pointwise_f32_16M", Bytes(12 << 24), 1 x |d| (f32s([N], d), f32s([N], d)), pointwise(x, y)),
        row!("K2_horizontal_f32_16M", Bytes(12 << 24), 1 x |d| (f32s([N], d),), horizontal(x)),
        row!("K3_bias_gelu_f32_4096x3072", Bytes(8 * 4096 * 3072),
            3 x |d| (f32s([4096, 3072], d), f32s([3072], d)), bias_gelu(x, b)),
        row!("K5_softmax_f32_4096x4096", Bytes(8 * 4096 * 4096), 3 x |d| (f32s([4096, 4096], d),), softmax(x)),
        row!("K6_layernorm_f32_4096x4096", Bytes(8 * 4096 * 4096),
            3 x |d| (f32s([4096, 4096], d), f32s([4096], d), f32s([4096], d)), layernorm(x, g, b)),
        row!("K7_rmsnorm_f32_4096x4096", Bytes(8 * 4096 * 4096),
            3 x |d| (f32s([4096, 4096], d), f32s([4096], d)), rmsnorm(x, g)),
        row!("K8_cross_entropy_f32_512x50257", Bytes(4 * 512 * 50257),
            3 x |d| (f32s([512, 50257], d), classes(512, 50257, d)), cross_entropy(x, t)),
        row!("K9_column_sum_f32_16384x1024", Bytes(4 * 16384 * 1024), 3 x |d| (f32s([16384, 1024], d),), column_sum(x)),
        row!("K10_transpose_add_f32_4096x4096", Bytes(12 * 4096 * 4096),
            1 x |d| (f32s([4096, 4096], d), f32s([4096, 4096], d)), transpose_add(x, y)),
        row!("K11_linear_relu_f32_1024x768x3072", Flops(2 * 1024 * 768 * 3072),
            3 x |d| linear::<f32>([1024, 768, 3072], d), linear_relu(x, w, b)),
        row!("K12_sdpa_f32_2x12x512x64", Flops(4 * 2 * 12 * 512 * 512 * 64),
            3 x |d| heads::<f32>([2, 12, 512, 64], d), attention(q, k, v)),
        block_row("K13_block_eval_f32_2x512x768", 3, |d, sets| block::<f32>([2, 512, 768], 1, d, sets)),
        block_row("K14_block_train_f32_2x512x768", 3, |d, sets| block_train::<f32>([2, 512, 768], d, sets)),
        row!("K15_chain_75_ops_f32_1024", Small, 3 x |d| (f32s([1024], d),), chain(x)),
        row!("K16_small_mlp_f32_1x256", Small, 3 x |d| small_layers(d), small_mlp(x, a, b, c)),
        row!("K17_graph_break_f32_256x256", Small,
            3 x |d| (f32s([256, 256], d), weight([256, 256], d)), graph_break(x, w)),
    ]
}

fn f32s<const R: usize>(dims: [usize; R], device: Device) -> Tensor<f32, R> {
    Tensor::randn(dims, device)
}

fn bf16s<const R: usize>(dims: [usize; R], device: Device) -> Tensor<bf16, R> {
    Tensor::randn(dims, device)
}

/// Normal numbers scaled so that a product with them keeps its size.
fn weight<T: Float>([inputs, outputs]: [usize; 2], device: Device) -> Tensor<T, 2> {
    Tensor::randn([inputs, outputs], device) * T::from_f64((inputs as f64).powf(-0.5))
}

/// Input, weight and bias of a product of `m x k` and `k x n`.
fn linear<T: Float>([m, k, n]: [usize; 3], device: Device) -> (Tensor<T, 2>, Tensor<T, 2>, Tensor<T, 1>) {
    (Tensor::randn([m, k], device), weight([k, n], device), Tensor::randn([n], device))
}

/// Queries, keys and values.
fn heads<T: Float>(dims: [usize; 4], device: Device) -> (Tensor<T, 4>, Tensor<T, 4>, Tensor<T, 4>) {
    (Tensor::randn(dims, device), Tensor::randn(dims, device), Tensor::randn(dims, device))
}

/// An input and the weights of three layers.
fn small_layers(device: Device) -> (Tensor<f32, 2>, Tensor<f32, 2>, Tensor<f32, 2>, Tensor<f32, 2>) {
    let layer = || weight([256, 256], device);
    (f32s([1, 256], device), layer(), layer(), layer())
}

/// `n` class numbers below `count`, all over its range.
fn classes(n: usize, count: usize, device: Device) -> Tensor<i64, 1> {
    let spread = |i: usize| ((i * 7919) % count) as i64;
    Tensor::from_vec((0..n).map(spread).collect(), [n], device)
}

fn block_row(name: &'static str, sets: usize, prepare: fn(Device, usize) -> Call) -> Row {
    Row { name, work: Small, sets, prepare }
}

/// A transformer block, or several to rotate over.
fn block<T: Float>(dims: [usize; 3], blocks: usize, device: Device, sets: usize) -> Call {
    let blocks: Vec<_> = (0..blocks).map(|_| Block::<T>::random(dims[2], 12, 4 * dims[2], device)).collect();
    let inputs: Vec<_> = (0..sets).map(|_| Tensor::<T, 3>::randn(dims, device)).collect();
    Box::new(move |call| {
        let (block, x) = (&blocks[call % blocks.len()], &inputs[call % inputs.len()]);
        drop(block.forward(x));
    })
}

/// A training step of a transformer block without its optimiser.
fn block_train<T: Float>(dims: [usize; 3], device: Device, sets: usize) -> Call {
    let block = Block::<T>::random(dims[2], 12, 4 * dims[2], device);
    let cotangent = Tensor::<T, 3>::randn(dims, device);
    let inputs: Vec<_> = (0..sets).map(|_| Tensor::<T, 3>::randn(dims, device)).collect();
    Box::new(move |call| {
        let Block { heads, norm1, qkv, out, norm2, up, down } = &block;
        let x = &inputs[call % inputs.len()];
        drop(functions::block_train::value_and_grad(
            *heads,
            x,
            &cotangent,
            &norm1.weight,
            &norm1.bias,
            &qkv.weight,
            &qkv.bias,
            &out.weight,
            &out.bias,
            &norm2.weight,
            &norm2.bias,
            &up.weight,
            &up.bias,
            &down.weight,
            &down.bias,
        ));
    })
}
