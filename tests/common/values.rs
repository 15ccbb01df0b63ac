//! Between tensors of the reference evaluator and tensors of the runtime.

use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::Num;
use fuse_compiler::types::DType;
use fuse_runtime::dtype::f8e4m3;
use fuse_runtime::{Device, Element, RawTensor};
use half::{bf16, f16};

/// A row-major tensor on the host of these values.
pub fn raw_of(value: &Value) -> RawTensor {
    match value.dtype {
        DType::F32 => upload(value, |x| x.f() as f32),
        DType::F64 => upload(value, Num::f),
        DType::F16 => upload(value, |x| f16::from_f64(x.f())),
        DType::BF16 => upload(value, |x| bf16::from_f64(x.f())),
        DType::F8E4M3 => upload(value, |x| f8e4m3::from_f64(x.f())),
        DType::I64 => upload(value, Num::i),
        DType::I32 => upload(value, |x| x.i() as i32),
        DType::U8 => upload(value, |x| x.i() as u8),
        DType::Bool => upload(value, Num::truthy),
        generic => panic!("{generic} has no values"),
    }
}

fn upload<T: Element>(value: &Value, number: impl Fn(Num) -> T) -> RawTensor {
    let data: Vec<T> = value.data.iter().map(|&x| number(x)).collect();
    RawTensor::from_slice(&data, &value.dims).expect("a small tensor fits into memory")
}

/// The values of a tensor.
pub fn value_of(raw: &RawTensor) -> Value {
    let host = raw.to_device(Device::cpu()).expect("a tensor can be read");
    let data = match raw.dtype() {
        DType::F32 => download(&host, |x: f32| Num::F(x as f64)),
        DType::F64 => download(&host, Num::F),
        DType::F16 => download(&host, |x: f16| Num::F(x.to_f64())),
        DType::BF16 => download(&host, |x: bf16| Num::F(x.to_f64())),
        DType::F8E4M3 => download(&host, |x: f8e4m3| Num::F(x.into())),
        DType::I64 => download(&host, Num::I),
        DType::I32 => download(&host, |x: i32| Num::I(x as i64)),
        DType::U8 => download(&host, |x: u8| Num::I(x as i64)),
        DType::Bool => download(&host, Num::B),
        generic => panic!("{generic} has no values"),
    };
    Value::new(raw.dtype(), raw.shape().to_vec(), data)
}

fn download<T: Element>(raw: &RawTensor, number: impl Fn(T) -> Num) -> Vec<Num> {
    raw.to_vec::<T>().expect("a tensor can be read").into_iter().map(number).collect()
}
