#[doc = "map[q.0, q.1, k.1] product4 = product"]
#[allow(non_camel_case_types)]
struct k0_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let product4_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(product_in[i]);
            product4_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(product);
        }
    }
}
#[doc = "row[q.0, q.1 | k.1] t3 = f32(mul(product4, 0.125)); t6 = exp(sub(t3, max(t3))); t9 = bf16(div(t6, sum(t6))); cast15 = t9; cast24 = bf16(mul(f32(t9), mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)))"]
#[allow(non_camel_case_types)]
struct k1_mul_max_sub_exp;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_mul_max_sub_exp {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product4_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let position_in = &ins.elem::<i64>(1)[..n];
        let cast15_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let cast24_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let draw: rt::Draw = ins.draw(0);
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let product4: f32 = Element::to_compute(product4_in[i]); let mul: f32 = m::round_bf16(product4 * 0.125f32); let cast: f32 = mul; cast });
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let product4: f32 = Element::to_compute(product4_in[i]); let mul: f32 = m::round_bf16(product4 * 0.125f32); let cast: f32 = mul; let sub: f32 = cast - max; let exp: f32 = m::exp(sub); exp });
        for i in 0..n {
            let product4: f32 = Element::to_compute(product4_in[i]);
            let mul: f32 = m::round_bf16(product4 * 0.125f32);
            let cast: f32 = mul;
            let sub: f32 = cast - max;
            let exp: f32 = m::exp(sub);
            let div: f32 = exp / sum;
            let cast2: f32 = m::round_bf16(div);
            let cast3: f32 = cast2;
            let position: i64 = position_in[i];
            let uniform: f32 = draw.uniform(position);
            let ge: bool = uniform >= 0.1f32;
            let cast4: f32 = m::cast::<bool, f32>(ge);
            let mul2: f32 = cast4 * 1.1111112f32;
            let mul3: f32 = cast3 * mul2;
            let cast5: f32 = m::round_bf16(mul3);
            cast15_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast2);
            cast24_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast5);
        }
    }
}
#[doc = "map[q.0, q.1, v.2] product25 = product"]
#[allow(non_camel_case_types)]
struct k2_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k2_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let product25_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(product_in[i]);
            product25_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(product);
        }
    }
}
#[doc = "map[q.0, k.1, v.2] v_grad = bf16(product)"]
#[allow(non_camel_case_types)]
struct k3_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k3_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let v_grad_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = product_in[i];
            let v_grad: f32 = m::round_bf16(product);
            v_grad_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(v_grad);
        }
    }
}
#[doc = "map[q.0, q.1, k.1] cast29 = bf16(product)"]
#[allow(non_camel_case_types)]
struct k4_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k4_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let cast29_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = product_in[i];
            let cast: f32 = m::round_bf16(product);
            cast29_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast);
        }
    }
}
#[doc = "row[q.0, q.1 | k.1] t1 = f32(cast15); t13 = f32(bf16(mul(f32(cast29), mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176)))); cast46 = bf16(mul(f32(bf16(mul(t1, sub(t13, sum(mul(t13, t1)))))), 0.125))"]
#[allow(non_camel_case_types)]
struct k5_random_ge_mul_sum;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k5_random_ge_mul_sum {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let cast15_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let cast29_in = &ins.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let position_in = &ins.elem::<i64>(2)[..n];
        let cast46_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let draw: rt::Draw = ins.draw(0);
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let cast15: f32 = Element::to_compute(cast15_in[i]); let cast: f32 = cast15; let cast29: f32 = Element::to_compute(cast29_in[i]); let cast2: f32 = cast29; let position: i64 = position_in[i]; let uniform: f32 = draw.uniform(position); let ge: bool = uniform >= 0.1f32; let cast3: f32 = m::cast::<bool, f32>(ge); let mul: f32 = cast3 * 1.1111112f32; let mul2: f32 = cast2 * mul; let cast4: f32 = m::round_bf16(mul2); let cast5: f32 = cast4; let mul3: f32 = cast5 * cast; mul3 });
        for i in 0..n {
            let cast15: f32 = Element::to_compute(cast15_in[i]);
            let cast: f32 = cast15;
            let cast29: f32 = Element::to_compute(cast29_in[i]);
            let cast2: f32 = cast29;
            let position: i64 = position_in[i];
            let uniform: f32 = draw.uniform(position);
            let ge: bool = uniform >= 0.1f32;
            let cast3: f32 = m::cast::<bool, f32>(ge);
            let mul: f32 = cast3 * 1.1111112f32;
            let mul2: f32 = cast2 * mul;
            let cast4: f32 = m::round_bf16(mul2);
            let cast5: f32 = cast4;
            let sub: f32 = cast5 - sum;
            let mul4: f32 = cast * sub;
            let cast6: f32 = m::round_bf16(mul4);
            let cast7: f32 = cast6;
            let mul5: f32 = cast7 * 0.125f32;
            let cast8: f32 = m::round_bf16(mul5);
            cast46_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast8);
        }
    }
}
#[doc = "map[q.0, q.1, q.2] q_grad = bf16(product)"]
#[allow(non_camel_case_types)]
struct k6_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k6_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let q_grad_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = product_in[i];
            let q_grad: f32 = m::round_bf16(product);
            q_grad_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(q_grad);
        }
    }
}
#[doc = "map[q.0, k.1, q.2] cast52 = bf16(product)"]
#[allow(non_camel_case_types)]
struct k7_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k7_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let cast52_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = product_in[i];
            let cast: f32 = m::round_bf16(product);
            cast52_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast);
        }
    }
}
