// Made by `cargo test --test random -- --ignored`, which writes this file anew; not to be edited.

use crate::compiled::{Argument, Function, results, tensor};
use crate::common::Lay;
use fuse_compiler::types::DType;
use fuse_runtime::prelude::*;

#[compile]
pub fn p0(v0: &Tensor<f32, 2>, v2: &Tensor<f32, 1>, v4: &Tensor<f32, 1>) -> (Tensor<f32, 2>, Tensor<f32, 1>, Tensor<f32, 2>, Tensor<f32, 1>,) {
    let v1 = v0.norm(0);
    let v3 = Tensor::stack([&v1, &v1], 1);
    let v5 = v3.rms_norm(v4, 1e-5f64);
    let v6 = v5.relu();
    (v6.clone(), v4.clone(), v5.clone(), v2.clone(),)
}

#[compile]
pub fn p1(v0: &Tensor<i64, 1>, v1: &Tensor<i64, 1>, v2: &Tensor<i64, 1>, v3: &Tensor<i64, 1>, v10: &Tensor<f16, 1>, v11: &Tensor<f16, 1>) -> (Tensor<f16, 1>, Tensor<f16, 1>, Tensor<i64, 1>, Tensor<i64, 1>,) {
    let v4 = Tensor::cat([v2, v3], 0);
    let v5 = v4.min(0);
    let v6 = v2.maximum(&v5);
    let v7 = v6.reshape([v6.numel()]);
    let v8 = v7.cast::<f16>();
    let v9 = &v8 / &v8;
    let v12 = v9.layer_norm(v10, v11, 1e-5f64);
    (v12.clone(), v9.clone(), v0.clone(), v1.clone(),)
}

#[compile]
pub fn p2(v0: &Tensor<f32, 1>, v2: &Tensor<f32, 2>, v7: &Tensor<f32, 1>, v8: &Tensor<f32, 1>) -> (Tensor<f32, 2>, Tensor<f32, 1>,) {
    let v1 = v0 * v0;
    let v3 = v2.clamp(-2.0f32, 2.0f32);
    let v4 = v3.round();
    let v5 = v4.cast::<f32>();
    let v6 = v5.sum_keepdim(-2);
    let v9 = v6.layer_norm(v7, v8, 1e-5f64);
    (v9.clone(), v1.clone(),)
}

#[compile]
pub fn p3(v0: &Tensor<i64, 2>, v1: &Tensor<i64, 2>, v3: &Tensor<i64, 1>) -> (Tensor<i64, 1>, Tensor<i64, 2>,) {
    let v2 = Tensor::cat([v0, v1, v0], 1);
    let v4 = v3.permute([0]);
    let v5 = v4.slice(0, -4, v4.dims()[0] as isize);
    (v5.clone(), v2.clone(),)
}

#[compile]
pub fn p4(v0: &Tensor<f32, 2>, v1: &Tensor<f16, 2>, v4: &Tensor<i64, 1>, v5: &Tensor<f16, 2>, v8: &Tensor<i64, 2>, v9: &Tensor<f16, 2>) -> (Tensor<f16, 2>, Tensor<f16, 2>, Tensor<i64, 1>, Tensor<f32, 2>,) {
    let v2 = v0.clamp(-2.0f32, 2.0f32);
    let v3 = v2.ceil();
    let v6 = v1.index_add(0, v4, v5);
    let v7 = v5.ln();
    let v10 = v7.scatter_add(0, v8, v9);
    let v11 = v10.tril(1);
    (v11.clone(), v6.clone(), v4.clone(), v3.clone(),)
}

#[compile]
pub fn p7(v0: &Tensor<bf16, 3>, v1: &Tensor<bf16, 1>, v8: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<bf16, 3>, Tensor<i64, 0>,) {
    let v2 = v1.ne(-0.10000000000000009f32);
    let v3 = v2.ge(&v2);
    let v4 = v3.argmax_all();
    let v5 = v4.unsqueeze(0);
    let v6 = v5.max(-1);
    let v7 = v6.min_all();
    let v9 = v2.where_cond(v8, v8);
    (v9.clone(), v0.clone(), v7.clone(),)
}

#[compile]
pub fn p8(v0: &Tensor<i64, 1>) -> (Tensor<i64, 1>, Tensor<i64, 2>,) {
    let v1 = v0.flip([0]);
    let v2 = Tensor::stack([&v1, &v1], 1);
    let v3 = v1.narrow(0, 4, 1);
    (v3.clone(), v2.clone(),)
}

#[compile]
pub fn p9(v0: &Tensor<f64, 1>, v1: &Tensor<i64, 1>, v3: &Tensor<f64, 2>, v4: &Tensor<f64, 1>, v11: &Tensor<f64, 1>) -> (Tensor<f64, 3>, Tensor<f64, 1>,) {
    let v2 = v0.index_select(0, v1);
    let v5 = v2.clamp(-2.0f64, 2.0f64);
    let v6 = v5.round();
    let v7 = v3.clamp(-2.0f64, 2.0f64);
    let v8 = v7.round();
    let v9 = v6.linear(&v8, v4);
    let v10 = v9.rsqrt();
    let v12 = v10.rms_norm(v11, 1e-5f64);
    let v13 = v12.rsqrt();
    let v14 = &v8 - 1.6999999999999997f64;
    let v15 = v14.unsqueeze(2);
    (v15.clone(), v13.clone(),)
}

#[compile]
pub fn p11(v0: &Tensor<u8, 2>, v3: &Tensor<f32, 1>, v4: &Tensor<f32, 1>) -> (Tensor<f32, 2>, Tensor<f32, 2>, Tensor<f32, 1>,) {
    let v1 = v0.cast::<f32>();
    let v2 = v1.tanh();
    let v5 = v2.layer_norm(v3, v4, 1e-5f64);
    (v5.clone(), v1.clone(), v3.clone(),)
}

#[compile]
pub fn p12(v0: &Tensor<f32, 3>, v2: &Tensor<f32, 2>) -> (Tensor<f32, 3>, Tensor<f32, 3>,) {
    let v1 = v0.tril(-1);
    let v3 = v2.mean_keepdim(-1);
    let v4 = v3.mean(-2);
    let v5 = v4.expand([2, v4.dims()[0]]);
    let v6 = v5.expand([2, v5.dims()[0], v5.dims()[1]]);
    (v6.clone(), v1.clone(),)
}

#[compile]
pub fn p13(v0: &Tensor<u8, 3>, v2: &Tensor<i64, 3>, v3: &Tensor<u8, 3>) -> (Tensor<u8, 4>, Tensor<f16, 3>,) {
    let v1 = v0.cast::<f16>();
    let v4 = v0.scatter_add(1, v2, v3);
    let v5 = v4.expand([1, v4.dims()[0], v4.dims()[1], v4.dims()[2]]);
    let v6 = v5.relu();
    (v6.clone(), v1.clone(),)
}

#[compile]
pub fn p14(v0: &Tensor<f32, 1>) -> (Tensor<f32, 0>,) {
    let v1 = v0.narrow(0, 1, 0);
    let v2 = v1.logsumexp_keepdim(-1);
    let v3 = v2.logsumexp_all();
    (v3.clone(),)
}

#[compile]
pub fn p17(v0: &Tensor<f32, 1>, v2: &Tensor<i64, 1>, v3: &Tensor<i64, 1>, v5: &Tensor<f32, 1>) -> (Tensor<f32, 2>, Tensor<i64, 1>,) {
    let v1 = v0.sin();
    let v4 = v2.index_select(0, v3);
    let v6 = v1.rms_norm(v5, 1e-5f64);
    let v7 = v6.unsqueeze(1);
    (v7.clone(), v4.clone(),)
}

#[compile]
pub fn p19(v0: &Tensor<f16, 2>, v1: &Tensor<f16, 1>, v3: &Tensor<f16, 1>) -> (Tensor<i64, 0>, Tensor<f16, 1>, Tensor<f16, 2>,) {
    let v2 = v0.rms_norm(v1, 1e-5f64);
    let v4 = v2.rms_norm(v3, 1e-5f64);
    let v5 = v4.argmin_all();
    (v5.clone(), v3.clone(), v4.clone(),)
}

#[compile]
pub fn p20(v0: &Tensor<f32, 1>, v3: &Tensor<f32, 2>, v9: &Tensor<f32, 2>, v10: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 2>,) {
    let v1 = v0 + 1.6999999999999997f32;
    let v2 = v0.unsqueeze(1);
    let v4 = v2.clamp(-2.0f32, 2.0f32);
    let v5 = v4.round();
    let v6 = v3.clamp(-2.0f32, 2.0f32);
    let v7 = v6.round();
    let v8 = v5.matmul(&v7);
    let v11 = v1.clamp(-2.0f32, 2.0f32);
    let v12 = v11.round();
    let v13 = v9.clamp(-2.0f32, 2.0f32);
    let v14 = v13.round();
    let v15 = v12.linear(&v14, v10);
    (v15.clone(), v8.clone(),)
}

#[compile]
pub fn p22(v0: &Tensor<f32, 3>) -> (Tensor<f32, 2>,) {
    let v1 = v0.powi(2i32);
    let v2 = v1.norm(-3);
    let v3 = v2.triu(-1);
    let v4 = v3.expand([3, v3.dims()[0], v3.dims()[1]]);
    let v5 = v4.var(-3);
    (v5.clone(),)
}

#[compile]
pub fn p23(v0: &Tensor<f64, 4>, v2: &Tensor<i64, 1>, v4: &Tensor<f64, 4>, v8: &Tensor<f64, 4>, v12: &Tensor<bool, 1>) -> (Tensor<f64, 5>, Tensor<f64, 4>,) {
    let v1 = v0.repeat([2, 1, 2, 2]);
    let v3 = v1.index_select(0, v2);
    let v5 = Tensor::cat([&v3, v4, &v3], 0);
    let v6 = v5.tril(1);
    let v7 = v6.softmax(3);
    let v9 = Tensor::cat([&v7, v8, &v7], 3);
    let v10 = v9.flip([3, 0]);
    let v11 = v10.expand([0, v10.dims()[0], v10.dims()[1], v10.dims()[2], v10.dims()[3]]);
    let v13 = v11.masked_fill(v12, 0.5f64);
    let v14 = v13.round();
    let v15 = v14.remainder(&v14);
    (v15.clone(), v4.clone(),)
}

#[compile]
pub fn p24(v0: &Tensor<bf16, 1>, v1: &Tensor<bf16, 2>, v2: &Tensor<bf16, 1>, v8: &Tensor<i64, 1>, v9: &Tensor<bf16, 1>) -> (Tensor<f32, 1>, Tensor<bf16, 1>,) {
    let v3 = v0.clamp(-2.0f32, 2.0f32);
    let v4 = v3.round();
    let v5 = v1.clamp(-2.0f32, 2.0f32);
    let v6 = v5.round();
    let v7 = v4.linear(&v6, v2);
    let v10 = v7.index_add(0, v8, v9);
    let v11 = v10.sigmoid();
    let v12 = v11.flip([0]);
    let v13 = v12.permute([0]);
    let v14 = v13.cast::<f32>();
    (v14.clone(), v11.clone(),)
}

#[compile]
pub fn p25(v0: &Tensor<bool, 1>, v1: &Tensor<f32, 1>, v4: &Tensor<f32, 2>, v5: &Tensor<f32, 1>, v11: &Tensor<i64, 1>) -> (Tensor<bool, 1>, Tensor<bool, 1>, Tensor<f32, 2>,) {
    let v2 = v0.where_cond(v1, v1);
    let v3 = v0 | v0;
    let v6 = v2.clamp(-2.0f32, 2.0f32);
    let v7 = v6.round();
    let v8 = v4.clamp(-2.0f32, 2.0f32);
    let v9 = v8.round();
    let v10 = v7.linear(&v9, v5);
    let v12 = v10.index_select(0, v11);
    let v13 = v12.logical_or(1.4f32);
    (v13.clone(), v3.clone(), v9.clone(),)
}

#[compile]
pub fn p26(v0: &Tensor<f32, 0>, v4: &Tensor<f32, 2>, v5: &Tensor<f32, 1>) -> (Tensor<bool, 2>, Tensor<f32, 1>,) {
    let v1 = v0.floor();
    let v2 = v1.repeat([]);
    let v3 = v2.expand([0]);
    let v6 = v3.clamp(-2.0f32, 2.0f32);
    let v7 = v6.round();
    let v8 = v4.clamp(-2.0f32, 2.0f32);
    let v9 = v8.round();
    let v10 = v7.linear(&v9, v5);
    let v11 = v9.sin();
    let v12 = v10.floor_divide(&v2);
    let v13 = v11.ge(-0.10000000000000009f32);
    (v13.clone(), v12.clone(),)
}

#[compile]
pub fn p27(v0: &Tensor<i64, 1>, v4: &Tensor<i64, 1>) -> (Tensor<i64, 1>, Tensor<i64, 0>, Tensor<i64, 1>,) {
    let v1 = v0.remainder(7i64);
    let v2 = v1.argmax_all();
    let v3 = v2.unsqueeze(0);
    let v5 = v3.gather(0, v4);
    (v5.clone(), v2.clone(), v4.clone(),)
}

#[compile]
pub fn p29(v0: &Tensor<f64, 2>, v6: &Tensor<i64, 1>, v8: &Tensor<i64, 1>, v9: &Tensor<i64, 1>) -> (Tensor<f64, 1>, Tensor<i64, 1>, Tensor<f64, 2>,) {
    let v1 = v0.min_keepdim(-1);
    let v2 = v0.clamp(-2.0f64, 2.0f64);
    let v3 = v2.round();
    let v4 = v3.max(-2);
    let v5 = v4.ceil();
    let v7 = !v6;
    let v10 = v7.index_add(0, v8, v9);
    let v11 = v5.powf(-0.7f64);
    (v11.clone(), v10.clone(), v1.clone(),)
}

#[compile]
pub fn p30(v0: &Tensor<u8, 2>, v2: &Tensor<i64, 1>, v5: &Tensor<i64, 1>, v6: &Tensor<i64, 1>, v8: &Tensor<i64, 2>) -> (Tensor<bool, 2>, Tensor<i64, 1>,) {
    let v1 = v0.sum(1);
    let v3 = v2.flip([0]);
    let v4 = v3.argmax_keepdim(0);
    let v7 = v4.scatter_add(0, v5, v6);
    let v9 = v7.matmul(v8);
    let v10 = v9.unsqueeze(0);
    let v11 = v9.eq(&v10);
    let v12 = !&v11;
    (v12.clone(), v1.clone(),)
}

#[compile]
pub fn p31(v0: &Tensor<bool, 2>, v2: &Tensor<i64, 1>) -> (Tensor<f32, 2>, Tensor<f32, 2>,) {
    let v1 = v0.cast::<f32>();
    let v3 = v1.index_select(1, v2);
    let v4 = Tensor::stack([&v1, &v1], 0);
    let v5 = v4.prod(-1);
    (v5.clone(), v3.clone(),)
}

#[compile]
pub fn p33(v0: &Tensor<f64, 2>) -> (Tensor<f64, 2>, Tensor<f64, 2>,) {
    let v1 = v0.ge(0.7999999999999998f64);
    let v2 = v0 - v0;
    let v3 = v2.masked_fill(&v1, 1.4f64);
    (v3.clone(), v0.clone(),)
}

#[compile]
pub fn p35(v0: &Tensor<bool, 1>) -> (Tensor<bool, 0>, Tensor<bool, 0>,) {
    let v1 = v0 ^ false;
    let v2 = v1.max(-1);
    let v3 = v2.repeat([]);
    (v3.clone(), v2.clone(),)
}

#[compile]
pub fn p37(v0: &Tensor<f32, 3>, v1: &Tensor<f32, 1>, v2: &Tensor<bool, 2>, v5: &Tensor<f32, 1>) -> (Tensor<f32, 3>, Tensor<f32, 3>, Tensor<bool, 3>, Tensor<f32, 1>,) {
    let v3 = v2 ^ v2;
    let v4 = v3.unsqueeze(0);
    let v6 = v0.rms_norm(v5, 1e-5f64);
    (v6.clone(), v0.clone(), v4.clone(), v1.clone(),)
}

#[compile]
pub fn p38(v0: &Tensor<i64, 1>, v1: &Tensor<i32, 1>) -> (Tensor<i64, 2>, Tensor<i32, 1>,) {
    let v2 = v0 / 3i64;
    let v3 = Tensor::stack([&v2, &v2], 0);
    let v4 = v3.cumsum(1);
    (v4.clone(), v1.clone(),)
}

#[compile]
pub fn p40(v0: &Tensor<f32, 3>, v1: &Tensor<f32, 1>, v3: &Tensor<f32, 1>, v5: &Tensor<f32, 1>, v6: &Tensor<i64, 1>, v9: &Tensor<f32, 1>, v13: &Tensor<f32, 1>, v14: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<i64, 3>, Tensor<f32, 0>,) {
    let v2 = v0.rms_norm(v1, 1e-5f64);
    let v4 = v2.argmin_keepdim(-3);
    let v7 = v5.index_select(0, v6);
    let v8 = v7.mean(0);
    let v10 = v3.rms_norm(v9, 1e-5f64);
    let v11 = v8.var_all();
    let v12 = v11.rsqrt();
    let v15 = v10.layer_norm(v13, v14, 1e-5f64);
    let v16 = v15.gelu_tanh();
    (v16.clone(), v4.clone(), v12.clone(),)
}

#[compile]
pub fn p41(v0: &Tensor<i32, 1>, v1: &Tensor<i32, 1>, v4: &Tensor<i32, 1>, v5: &Tensor<i64, 1>) -> (Tensor<i32, 1>, Tensor<i32, 1>, Tensor<i32, 1>,) {
    let v2 = Tensor::cat([v0, v1, v0], 0);
    let v3 = v2.permute([0]);
    let v6 = v4.index_select(0, v5);
    let v7 = v6.max_keepdim(0);
    let v8 = v7.reshape([v7.numel()]);
    let v9 = v8.repeat([2]);
    (v9.clone(), v7.clone(), v3.clone(),)
}

#[compile]
pub fn p42(v0: &Tensor<f16, 1>) -> (Tensor<f16, 1>, Tensor<f16, 0>,) {
    let v1 = v0.norm(0);
    let v2 = v0.floor();
    let v3 = v2.clamp(&v2, &v2);
    (v3.clone(), v1.clone(),)
}

#[compile]
pub fn p44(v0: &Tensor<i64, 1>, v3: &Tensor<i64, 2>) -> (Tensor<i64, 2>,) {
    let v1 = v0 | v0;
    let v2 = v1.expand([2, v1.dims()[0]]);
    let v4 = v2.matmul(v3);
    (v4.clone(),)
}

/// Every function with its arguments.
pub const FUNCTIONS: &[Function] = &[
    Function {
        seed: 0,
        arguments: &[Argument { dtype: DType::F32, dims: &[33, 33], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::F32, dims: &[2], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F32, dims: &[2], lay: Lay::Flipped, below: None }],
        compiled: |x| results!(4; p0(&tensor::<f32, 2>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<f32, 1>(x, 2))),
        eager: |x| results!(4; p0::eager(&tensor::<f32, 2>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<f32, 1>(x, 2))),
    },
    Function {
        seed: 1,
        arguments: &[Argument { dtype: DType::I64, dims: &[1], lay: Lay::Transposed, below: None }, Argument { dtype: DType::I64, dims: &[5], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::I64, dims: &[5], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::I64, dims: &[2], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F16, dims: &[5], lay: Lay::Flipped, below: None }, Argument { dtype: DType::F16, dims: &[5], lay: Lay::Transposed, below: None }],
        compiled: |x| results!(4; p1(&tensor::<i64, 1>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<i64, 1>(x, 3), &tensor::<f16, 1>(x, 4), &tensor::<f16, 1>(x, 5))),
        eager: |x| results!(4; p1::eager(&tensor::<i64, 1>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<i64, 1>(x, 3), &tensor::<f16, 1>(x, 4), &tensor::<f16, 1>(x, 5))),
    },
    Function {
        seed: 2,
        arguments: &[Argument { dtype: DType::F32, dims: &[2], lay: Lay::Transposed, below: None }, Argument { dtype: DType::F32, dims: &[2, 2], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::F32, dims: &[2], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F32, dims: &[2], lay: Lay::Transposed, below: None }],
        compiled: |x| results!(2; p2(&tensor::<f32, 1>(x, 0), &tensor::<f32, 2>(x, 1), &tensor::<f32, 1>(x, 2), &tensor::<f32, 1>(x, 3))),
        eager: |x| results!(2; p2::eager(&tensor::<f32, 1>(x, 0), &tensor::<f32, 2>(x, 1), &tensor::<f32, 1>(x, 2), &tensor::<f32, 1>(x, 3))),
    },
    Function {
        seed: 3,
        arguments: &[Argument { dtype: DType::I64, dims: &[2, 4], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::I64, dims: &[2, 0], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::OddOffset, below: None }],
        compiled: |x| results!(2; p3(&tensor::<i64, 2>(x, 0), &tensor::<i64, 2>(x, 1), &tensor::<i64, 1>(x, 2))),
        eager: |x| results!(2; p3::eager(&tensor::<i64, 2>(x, 0), &tensor::<i64, 2>(x, 1), &tensor::<i64, 1>(x, 2))),
    },
    Function {
        seed: 4,
        arguments: &[Argument { dtype: DType::F32, dims: &[0, 0], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::F16, dims: &[33, 1], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::I64, dims: &[5], lay: Lay::Broadcast, below: Some(19) }, Argument { dtype: DType::F16, dims: &[5, 1], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::I64, dims: &[3, 1], lay: Lay::OddOffset, below: Some(2) }, Argument { dtype: DType::F16, dims: &[3, 1], lay: Lay::Transposed, below: None }],
        compiled: |x| results!(4; p4(&tensor::<f32, 2>(x, 0), &tensor::<f16, 2>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<f16, 2>(x, 3), &tensor::<i64, 2>(x, 4), &tensor::<f16, 2>(x, 5))),
        eager: |x| results!(4; p4::eager(&tensor::<f32, 2>(x, 0), &tensor::<f16, 2>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<f16, 2>(x, 3), &tensor::<i64, 2>(x, 4), &tensor::<f16, 2>(x, 5))),
    },
    Function {
        seed: 7,
        arguments: &[Argument { dtype: DType::BF16, dims: &[0, 5, 17], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::BF16, dims: &[17], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F32, dims: &[17], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(3; p7(&tensor::<bf16, 3>(x, 0), &tensor::<bf16, 1>(x, 1), &tensor::<f32, 1>(x, 2))),
        eager: |x| results!(3; p7::eager(&tensor::<bf16, 3>(x, 0), &tensor::<bf16, 1>(x, 1), &tensor::<f32, 1>(x, 2))),
    },
    Function {
        seed: 8,
        arguments: &[Argument { dtype: DType::I64, dims: &[5], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(2; p8(&tensor::<i64, 1>(x, 0))),
        eager: |x| results!(2; p8::eager(&tensor::<i64, 1>(x, 0))),
    },
    Function {
        seed: 9,
        arguments: &[Argument { dtype: DType::F64, dims: &[17], lay: Lay::Flipped, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::Flipped, below: Some(10) }, Argument { dtype: DType::F64, dims: &[1, 4], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::F64, dims: &[1], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::F64, dims: &[1], lay: Lay::Transposed, below: None }],
        compiled: |x| results!(2; p9(&tensor::<f64, 1>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<f64, 2>(x, 2), &tensor::<f64, 1>(x, 3), &tensor::<f64, 1>(x, 4))),
        eager: |x| results!(2; p9::eager(&tensor::<f64, 1>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<f64, 2>(x, 2), &tensor::<f64, 1>(x, 3), &tensor::<f64, 1>(x, 4))),
    },
    Function {
        seed: 11,
        arguments: &[Argument { dtype: DType::U8, dims: &[0, 33], lay: Lay::Transposed, below: None }, Argument { dtype: DType::F32, dims: &[33], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::F32, dims: &[33], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(3; p11(&tensor::<u8, 2>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<f32, 1>(x, 2))),
        eager: |x| results!(3; p11::eager(&tensor::<u8, 2>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<f32, 1>(x, 2))),
    },
    Function {
        seed: 12,
        arguments: &[Argument { dtype: DType::F32, dims: &[33, 2, 3], lay: Lay::Flipped, below: None }, Argument { dtype: DType::F32, dims: &[5, 3], lay: Lay::Transposed, below: None }],
        compiled: |x| results!(2; p12(&tensor::<f32, 3>(x, 0), &tensor::<f32, 2>(x, 1))),
        eager: |x| results!(2; p12::eager(&tensor::<f32, 3>(x, 0), &tensor::<f32, 2>(x, 1))),
    },
    Function {
        seed: 13,
        arguments: &[Argument { dtype: DType::U8, dims: &[5, 17, 5], lay: Lay::Transposed, below: None }, Argument { dtype: DType::I64, dims: &[5, 3, 5], lay: Lay::Contiguous, below: Some(17) }, Argument { dtype: DType::U8, dims: &[5, 3, 5], lay: Lay::Transposed, below: None }],
        compiled: |x| results!(2; p13(&tensor::<u8, 3>(x, 0), &tensor::<i64, 3>(x, 1), &tensor::<u8, 3>(x, 2))),
        eager: |x| results!(2; p13::eager(&tensor::<u8, 3>(x, 0), &tensor::<i64, 3>(x, 1), &tensor::<u8, 3>(x, 2))),
    },
    Function {
        seed: 14,
        arguments: &[Argument { dtype: DType::F32, dims: &[2], lay: Lay::Flipped, below: None }],
        compiled: |x| results!(1; p14(&tensor::<f32, 1>(x, 0))),
        eager: |x| results!(1; p14::eager(&tensor::<f32, 1>(x, 0))),
    },
    Function {
        seed: 17,
        arguments: &[Argument { dtype: DType::F32, dims: &[33], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::Flipped, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::Transposed, below: Some(2) }, Argument { dtype: DType::F32, dims: &[33], lay: Lay::Broadcast, below: None }],
        compiled: |x| results!(2; p17(&tensor::<f32, 1>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<f32, 1>(x, 3))),
        eager: |x| results!(2; p17::eager(&tensor::<f32, 1>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<f32, 1>(x, 3))),
    },
    Function {
        seed: 19,
        arguments: &[Argument { dtype: DType::F16, dims: &[33, 3], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F16, dims: &[3], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::F16, dims: &[3], lay: Lay::Transposed, below: None }],
        compiled: |x| results!(3; p19(&tensor::<f16, 2>(x, 0), &tensor::<f16, 1>(x, 1), &tensor::<f16, 1>(x, 2))),
        eager: |x| results!(3; p19::eager(&tensor::<f16, 2>(x, 0), &tensor::<f16, 1>(x, 1), &tensor::<f16, 1>(x, 2))),
    },
    Function {
        seed: 20,
        arguments: &[Argument { dtype: DType::F32, dims: &[4], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F32, dims: &[1, 2], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::F32, dims: &[5, 4], lay: Lay::Flipped, below: None }, Argument { dtype: DType::F32, dims: &[5], lay: Lay::Flipped, below: None }],
        compiled: |x| results!(2; p20(&tensor::<f32, 1>(x, 0), &tensor::<f32, 2>(x, 1), &tensor::<f32, 2>(x, 2), &tensor::<f32, 1>(x, 3))),
        eager: |x| results!(2; p20::eager(&tensor::<f32, 1>(x, 0), &tensor::<f32, 2>(x, 1), &tensor::<f32, 2>(x, 2), &tensor::<f32, 1>(x, 3))),
    },
    Function {
        seed: 22,
        arguments: &[Argument { dtype: DType::F32, dims: &[1, 33, 2], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(1; p22(&tensor::<f32, 3>(x, 0))),
        eager: |x| results!(1; p22::eager(&tensor::<f32, 3>(x, 0))),
    },
    Function {
        seed: 23,
        arguments: &[Argument { dtype: DType::F64, dims: &[1, 3, 1, 2], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::OddOffset, below: Some(1) }, Argument { dtype: DType::F64, dims: &[0, 3, 2, 4], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F64, dims: &[8, 3, 2, 2], lay: Lay::Transposed, below: None }, Argument { dtype: DType::Bool, dims: &[10], lay: Lay::Flipped, below: None }],
        compiled: |x| results!(2; p23(&tensor::<f64, 4>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<f64, 4>(x, 2), &tensor::<f64, 4>(x, 3), &tensor::<bool, 1>(x, 4))),
        eager: |x| results!(2; p23::eager(&tensor::<f64, 4>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<f64, 4>(x, 2), &tensor::<f64, 4>(x, 3), &tensor::<bool, 1>(x, 4))),
    },
    Function {
        seed: 24,
        arguments: &[Argument { dtype: DType::BF16, dims: &[0], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::BF16, dims: &[3, 0], lay: Lay::Transposed, below: None }, Argument { dtype: DType::BF16, dims: &[3], lay: Lay::Flipped, below: None }, Argument { dtype: DType::I64, dims: &[5], lay: Lay::OddOffset, below: Some(2) }, Argument { dtype: DType::BF16, dims: &[5], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(2; p24(&tensor::<bf16, 1>(x, 0), &tensor::<bf16, 2>(x, 1), &tensor::<bf16, 1>(x, 2), &tensor::<i64, 1>(x, 3), &tensor::<bf16, 1>(x, 4))),
        eager: |x| results!(2; p24::eager(&tensor::<bf16, 1>(x, 0), &tensor::<bf16, 2>(x, 1), &tensor::<bf16, 1>(x, 2), &tensor::<i64, 1>(x, 3), &tensor::<bf16, 1>(x, 4))),
    },
    Function {
        seed: 25,
        arguments: &[Argument { dtype: DType::Bool, dims: &[1], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::F32, dims: &[1], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::F32, dims: &[2, 1], lay: Lay::Transposed, below: None }, Argument { dtype: DType::F32, dims: &[2], lay: Lay::Flipped, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::Transposed, below: Some(2) }],
        compiled: |x| results!(3; p25(&tensor::<bool, 1>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<f32, 2>(x, 2), &tensor::<f32, 1>(x, 3), &tensor::<i64, 1>(x, 4))),
        eager: |x| results!(3; p25::eager(&tensor::<bool, 1>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<f32, 2>(x, 2), &tensor::<f32, 1>(x, 3), &tensor::<i64, 1>(x, 4))),
    },
    Function {
        seed: 26,
        arguments: &[Argument { dtype: DType::F32, dims: &[], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::F32, dims: &[3, 0], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F32, dims: &[3], lay: Lay::Flipped, below: None }],
        compiled: |x| results!(2; p26(&tensor::<f32, 0>(x, 0), &tensor::<f32, 2>(x, 1), &tensor::<f32, 1>(x, 2))),
        eager: |x| results!(2; p26::eager(&tensor::<f32, 0>(x, 0), &tensor::<f32, 2>(x, 1), &tensor::<f32, 1>(x, 2))),
    },
    Function {
        seed: 27,
        arguments: &[Argument { dtype: DType::I64, dims: &[1], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::I64, dims: &[3], lay: Lay::OddOffset, below: Some(1) }],
        compiled: |x| results!(3; p27(&tensor::<i64, 1>(x, 0), &tensor::<i64, 1>(x, 1))),
        eager: |x| results!(3; p27::eager(&tensor::<i64, 1>(x, 0), &tensor::<i64, 1>(x, 1))),
    },
    Function {
        seed: 29,
        arguments: &[Argument { dtype: DType::F64, dims: &[1, 3], lay: Lay::Flipped, below: None }, Argument { dtype: DType::I64, dims: &[3], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::I64, dims: &[5], lay: Lay::Contiguous, below: Some(3) }, Argument { dtype: DType::I64, dims: &[5], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(3; p29(&tensor::<f64, 2>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<i64, 1>(x, 3))),
        eager: |x| results!(3; p29::eager(&tensor::<f64, 2>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<i64, 1>(x, 3))),
    },
    Function {
        seed: 30,
        arguments: &[Argument { dtype: DType::U8, dims: &[33, 17], lay: Lay::Flipped, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::Transposed, below: None }, Argument { dtype: DType::I64, dims: &[3], lay: Lay::OddOffset, below: Some(1) }, Argument { dtype: DType::I64, dims: &[3], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::I64, dims: &[1, 5], lay: Lay::Flipped, below: None }],
        compiled: |x| results!(2; p30(&tensor::<u8, 2>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<i64, 1>(x, 3), &tensor::<i64, 2>(x, 4))),
        eager: |x| results!(2; p30::eager(&tensor::<u8, 2>(x, 0), &tensor::<i64, 1>(x, 1), &tensor::<i64, 1>(x, 2), &tensor::<i64, 1>(x, 3), &tensor::<i64, 2>(x, 4))),
    },
    Function {
        seed: 31,
        arguments: &[Argument { dtype: DType::Bool, dims: &[1, 1], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::Broadcast, below: Some(1) }],
        compiled: |x| results!(2; p31(&tensor::<bool, 2>(x, 0), &tensor::<i64, 1>(x, 1))),
        eager: |x| results!(2; p31::eager(&tensor::<bool, 2>(x, 0), &tensor::<i64, 1>(x, 1))),
    },
    Function {
        seed: 33,
        arguments: &[Argument { dtype: DType::F64, dims: &[3, 0], lay: Lay::Flipped, below: None }],
        compiled: |x| results!(2; p33(&tensor::<f64, 2>(x, 0))),
        eager: |x| results!(2; p33::eager(&tensor::<f64, 2>(x, 0))),
    },
    Function {
        seed: 35,
        arguments: &[Argument { dtype: DType::Bool, dims: &[1], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(2; p35(&tensor::<bool, 1>(x, 0))),
        eager: |x| results!(2; p35::eager(&tensor::<bool, 1>(x, 0))),
    },
    Function {
        seed: 37,
        arguments: &[Argument { dtype: DType::F32, dims: &[5, 3, 3], lay: Lay::Transposed, below: None }, Argument { dtype: DType::F32, dims: &[33], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::Bool, dims: &[5, 2], lay: Lay::Transposed, below: None }, Argument { dtype: DType::F32, dims: &[3], lay: Lay::OddOffset, below: None }],
        compiled: |x| results!(4; p37(&tensor::<f32, 3>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<bool, 2>(x, 2), &tensor::<f32, 1>(x, 3))),
        eager: |x| results!(4; p37::eager(&tensor::<f32, 3>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<bool, 2>(x, 2), &tensor::<f32, 1>(x, 3))),
    },
    Function {
        seed: 38,
        arguments: &[Argument { dtype: DType::I64, dims: &[3], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::I32, dims: &[3], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(2; p38(&tensor::<i64, 1>(x, 0), &tensor::<i32, 1>(x, 1))),
        eager: |x| results!(2; p38::eager(&tensor::<i64, 1>(x, 0), &tensor::<i32, 1>(x, 1))),
    },
    Function {
        seed: 40,
        arguments: &[Argument { dtype: DType::F32, dims: &[17, 17, 1], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F32, dims: &[1], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::F32, dims: &[1], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::F32, dims: &[1], lay: Lay::Transposed, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::OddOffset, below: Some(1) }, Argument { dtype: DType::F32, dims: &[1], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::F32, dims: &[1], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::F32, dims: &[1], lay: Lay::Contiguous, below: None }],
        compiled: |x| results!(3; p40(&tensor::<f32, 3>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<f32, 1>(x, 2), &tensor::<f32, 1>(x, 3), &tensor::<i64, 1>(x, 4), &tensor::<f32, 1>(x, 5), &tensor::<f32, 1>(x, 6), &tensor::<f32, 1>(x, 7))),
        eager: |x| results!(3; p40::eager(&tensor::<f32, 3>(x, 0), &tensor::<f32, 1>(x, 1), &tensor::<f32, 1>(x, 2), &tensor::<f32, 1>(x, 3), &tensor::<i64, 1>(x, 4), &tensor::<f32, 1>(x, 5), &tensor::<f32, 1>(x, 6), &tensor::<f32, 1>(x, 7))),
    },
    Function {
        seed: 41,
        arguments: &[Argument { dtype: DType::I32, dims: &[3], lay: Lay::OddOffset, below: None }, Argument { dtype: DType::I32, dims: &[2], lay: Lay::Broadcast, below: None }, Argument { dtype: DType::I32, dims: &[2], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::I64, dims: &[4], lay: Lay::Contiguous, below: Some(2) }],
        compiled: |x| results!(3; p41(&tensor::<i32, 1>(x, 0), &tensor::<i32, 1>(x, 1), &tensor::<i32, 1>(x, 2), &tensor::<i64, 1>(x, 3))),
        eager: |x| results!(3; p41::eager(&tensor::<i32, 1>(x, 0), &tensor::<i32, 1>(x, 1), &tensor::<i32, 1>(x, 2), &tensor::<i64, 1>(x, 3))),
    },
    Function {
        seed: 42,
        arguments: &[Argument { dtype: DType::F16, dims: &[0], lay: Lay::OddOffset, below: None }],
        compiled: |x| results!(2; p42(&tensor::<f16, 1>(x, 0))),
        eager: |x| results!(2; p42::eager(&tensor::<f16, 1>(x, 0))),
    },
    Function {
        seed: 44,
        arguments: &[Argument { dtype: DType::I64, dims: &[5], lay: Lay::Contiguous, below: None }, Argument { dtype: DType::I64, dims: &[5, 7], lay: Lay::OddOffset, below: None }],
        compiled: |x| results!(1; p44(&tensor::<i64, 1>(x, 0), &tensor::<i64, 2>(x, 1))),
        eager: |x| results!(1; p44::eager(&tensor::<i64, 1>(x, 0), &tensor::<i64, 2>(x, 1))),
    },
];
