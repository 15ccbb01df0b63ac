#[doc = "map[q.0, q.1, k.1] product5 = product"]
#[allow(non_camel_case_types)]
struct k0_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let product5_out = &mut outs.elem::<f32>(0)[..n];
        for i in 0..n {
            let product: f32 = product_in[i];
            product5_out[i] = product;
        }
    }
}
#[doc = "row[q.0, q.1 | k.1] t12 = where_cond(le(position, position), add(mul(product5, recip(sqrt(q.2))), f32(bias)), -inf); t13 = max(t12); t15 = eq(t13, -inf); t19 = exp(sub(t12, where_cond(t15, 0, t13))); cast30 = f16(div(t19, where_cond(t15, 1, sum(t19))))"]
#[allow(non_camel_case_types)]
struct k1_le_sqrt_recip_mul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_le_sqrt_recip_mul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let position_in = &ins.elem::<i64>(0)[..n];
        let position_in2 = &ins.elem::<i64>(1)[..n];
        let product5_in = &ins.elem::<f32>(2)[..n];
        let bias_in = &ins.elem::<::fuse_runtime::prelude::f16>(3)[..n];
        let cast30_out = &mut outs.elem::<::fuse_runtime::prelude::f16>(0)[..n];
        let extent: f32 = m::cast::<i64, f32>(ins.size(4));
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let position: i64 = position_in[i]; let position2: i64 = position_in2[i]; let le: bool = position <= position2; let product5: f32 = product5_in[i]; let sqrt: f32 = m::sqrt(extent); let recip: f32 = m::recip(sqrt); let mul: f32 = product5 * recip; let bias: f32 = Element::to_compute(bias_in[i]); let cast: f32 = bias; let add: f32 = mul + cast; let where_cond: f32 = if le { add } else { f32::from_bits(4286578688) }; where_cond });
        let eq: bool = max == f32::from_bits(4286578688);
        let where_cond2: f32 = if eq { 0.0f32 } else { max };
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let position: i64 = position_in[i]; let position2: i64 = position_in2[i]; let le: bool = position <= position2; let product5: f32 = product5_in[i]; let sqrt: f32 = m::sqrt(extent); let recip: f32 = m::recip(sqrt); let mul: f32 = product5 * recip; let bias: f32 = Element::to_compute(bias_in[i]); let cast: f32 = bias; let add: f32 = mul + cast; let where_cond: f32 = if le { add } else { f32::from_bits(4286578688) }; let sub: f32 = where_cond - where_cond2; let exp: f32 = m::exp(sub); exp });
        let where_cond3: f32 = if eq { 1.0f32 } else { sum };
        for i in 0..n {
            let position: i64 = position_in[i];
            let position2: i64 = position_in2[i];
            let le: bool = position <= position2;
            let product5: f32 = product5_in[i];
            let sqrt: f32 = m::sqrt(extent);
            let recip: f32 = m::recip(sqrt);
            let mul: f32 = product5 * recip;
            let bias: f32 = Element::to_compute(bias_in[i]);
            let cast: f32 = bias;
            let add: f32 = mul + cast;
            let where_cond: f32 = if le { add } else { f32::from_bits(4286578688) };
            let sub: f32 = where_cond - where_cond2;
            let exp: f32 = m::exp(sub);
            let div: f32 = exp / where_cond3;
            let cast2: f32 = m::round_f16(div);
            cast30_out[i] = <::fuse_runtime::prelude::f16 as Element>::from_compute(cast2);
        }
    }
}
#[doc = "map[q.0, q.1, v.2] cast32 = f16(product)"]
#[allow(non_camel_case_types)]
struct k2_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k2_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let cast32_out = &mut outs.elem::<::fuse_runtime::prelude::f16>(0)[..n];
        for i in 0..n {
            let product: f32 = product_in[i];
            let cast: f32 = m::round_f16(product);
            cast32_out[i] = <::fuse_runtime::prelude::f16 as Element>::from_compute(cast);
        }
    }
}
