//! Constants, exact to the bit.

use crate::op::Literal;
use crate::types::DType;

/// A constant in the compute type of an element type.
pub(super) fn literal(value: Literal, dtype: DType) -> String {
    match dtype.compute() {
        DType::F32 => single(as_f64(value) as f32),
        DType::F64 => double(as_f64(value)),
        DType::Compute(n) => format!("(C{n}){}", double(as_f64(value))),
        DType::Bool => (as_f64(value) != 0.0).to_string(),
        DType::I64 => long(as_i64(value)),
        DType::I32 => int(as_i64(value) as i32),
        DType::U8 => format!("(unsigned char){}", as_i64(value) as u8),
        DType::F16 | DType::BF16 | DType::F8E4M3 | DType::Param(_) => {
            unreachable!("compute types are neither narrow nor stored types")
        }
    }
}

fn as_f64(value: Literal) -> f64 {
    match value {
        Literal::Float(v) => v,
        Literal::Int(v) => v as f64,
        Literal::Bool(v) => f64::from(u8::from(v)),
    }
}

fn as_i64(value: Literal) -> i64 {
    match value {
        Literal::Float(v) => v as i64,
        Literal::Int(v) => v,
        Literal::Bool(v) => i64::from(v),
    }
}

fn single(v: f32) -> String {
    match v.is_finite() {
        true => parenthesised(format!("{v:?}f"), v.is_sign_negative()),
        false => format!("__int_as_float(0x{:08x})", v.to_bits()),
    }
}

fn double(v: f64) -> String {
    match v.is_finite() {
        true => parenthesised(format!("{v:?}"), v.is_sign_negative()),
        false => format!("__longlong_as_double(0x{:016x}ll)", v.to_bits()),
    }
}

fn long(v: i64) -> String {
    match v {
        i64::MIN => "(-9223372036854775807LL - 1)".to_owned(),
        v => parenthesised(format!("{v}LL"), v < 0),
    }
}

fn int(v: i32) -> String {
    match v {
        i32::MIN => "(-2147483647 - 1)".to_owned(),
        v => parenthesised(v.to_string(), v < 0),
    }
}

fn parenthesised(text: String, negative: bool) -> String {
    if negative { format!("({text})") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_keep_every_bit() {
        let float = |v| literal(Literal::Float(v), DType::F32);
        assert_eq!(float(0.1), "0.1f");
        assert_eq!(float(-0.0), "(-0.0f)");
        assert_eq!(float(1e30), "1e30f");
        assert_eq!(float(f64::NEG_INFINITY), "__int_as_float(0xff800000)");
        assert_eq!(literal(Literal::Float(1.0 / 3.0), DType::F64), "0.3333333333333333");
        assert_eq!(literal(Literal::Float(f64::NAN), DType::F64), "__longlong_as_double(0x7ff8000000000000ll)");
        assert_eq!(literal(Literal::Float(2.0), DType::Param(0)), "(C0)2.0");
    }

    #[test]
    fn the_smallest_integers_have_no_positive_twin() {
        assert_eq!(literal(Literal::Int(i64::MIN), DType::I64), "(-9223372036854775807LL - 1)");
        assert_eq!(literal(Literal::Int(i64::from(i32::MIN)), DType::I32), "(-2147483647 - 1)");
        assert_eq!(literal(Literal::Int(-3), DType::I64), "(-3LL)");
    }
}
