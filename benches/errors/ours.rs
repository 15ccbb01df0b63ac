//! What a process of ours computes, and writes down.

use super::inputs;
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use half::{bf16, f16};
use serde_json::{Value, json};
use std::path::Path;

#[compile(dynamic = false)]
fn product<T: Float>(#[dims(M, K)] a: &Tensor<T, 2>, #[dims(K, N)] b: &Tensor<T, 2>) -> Tensor<T, 2> {
    a.matmul(b)
}

#[compile(dynamic = false, precision = "high")]
fn product_tf32(#[dims(M, K)] a: &Tensor<f32, 2>, #[dims(K, N)] b: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    a.matmul(b)
}

#[compile(dynamic = false)]
fn attention<T: Float>(
    #[dims(B, H, M, D)] q: &Tensor<T, 4>,
    #[dims(B, H, N, D)] k: &Tensor<T, 4>,
    #[dims(B, H, N, D)] v: &Tensor<T, 4>,
) -> Tensor<T, 4> {
    q.scaled_dot_product_attention(k, v, (), false)
}

/// Computes what a line asks for, and says in which file the result is.
pub fn answer(question: &Value, device: Device) -> Value {
    let asked = Question { question, device };
    let made = catch(|| match (asked.text("op"), asked.text("path")) {
        ("product", "f32") => asked.product(product::<f32>),
        ("product", "tf32") => asked.product(product_tf32),
        ("product", "bf16") => asked.product(product::<bf16>),
        ("product", _) => asked.product(product::<f16>),
        (_, "f32") => asked.attention::<f32>(),
        (_, "bf16") => asked.attention::<bf16>(),
        _ => asked.attention::<f16>(),
    });
    let Ok(values) = made else { return json!({ "error": made.unwrap_err().to_string() }) };
    inputs::write(Path::new(asked.text("results")), &values);
    json!({ "made": { "": asked.text("results") } })
}

/// What is asked, and where it is computed.
struct Question<'a> {
    question: &'a Value,
    device: Device,
}

impl Question<'_> {
    fn text(&self, key: &str) -> &str {
        self.question[key].as_str().expect("a text")
    }

    fn extents<const N: usize>(&self) -> [usize; N] {
        std::array::from_fn(|axis| self.question["extents"][axis].as_u64().expect("an extent") as usize)
    }

    fn operand<T: Float, const R: usize>(&self, number: usize, extents: [usize; R]) -> Tensor<T, R> {
        let values = inputs::read(Path::new(self.question["inputs"][number].as_str().expect("a file")));
        Tensor::from_vec(values.into_iter().map(|value| T::from_f64(value.into())).collect(), extents, self.device)
    }

    fn product<T: Float>(&self, product: fn(&Tensor<T, 2>, &Tensor<T, 2>) -> Tensor<T, 2>) -> Vec<f32> {
        let [m, k, n] = self.extents();
        exactly(&product(&self.operand(0, [m, k]), &self.operand(1, [k, n])))
    }

    fn attention<T: Float>(&self) -> Vec<f32> {
        let of = |number| self.operand::<T, 4>(number, self.extents());
        exactly(&attention(&of(0), &of(1), &of(2)))
    }
}

/// The numbers of a tensor, which f32 holds.
fn exactly<T: Float, const R: usize>(tensor: &Tensor<T, R>) -> Vec<f32> {
    tensor.to_vec().into_iter().map(|value| value.to_f64() as f32).collect()
}
