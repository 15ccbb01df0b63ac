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
        let product5_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(product_in[i]);
            product5_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(product);
        }
    }
}
#[doc = "row[q.0, q.1 | k.1] t4 = f32(where_cond(mask, product5, -inf)); t7 = exp(sub(t4, max(t4))); cast16 = bf16(div(t7, sum(t7)))"]
#[allow(non_camel_case_types)]
struct k1_where_cond_max_sub_exp;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_where_cond_max_sub_exp {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let mask_in = &ins.elem::<bool>(0)[..n];
        let product5_in = &ins.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let cast16_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let mask: bool = mask_in[i]; let product5: f32 = Element::to_compute(product5_in[i]); let where_cond: f32 = m::round_bf16(if mask { product5 } else { f32::from_bits(4286578688) }); let cast: f32 = where_cond; cast });
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let mask: bool = mask_in[i]; let product5: f32 = Element::to_compute(product5_in[i]); let where_cond: f32 = m::round_bf16(if mask { product5 } else { f32::from_bits(4286578688) }); let cast: f32 = where_cond; let sub: f32 = cast - max; let exp: f32 = m::exp(sub); exp });
        for i in 0..n {
            let mask: bool = mask_in[i];
            let product5: f32 = Element::to_compute(product5_in[i]);
            let where_cond: f32 = m::round_bf16(if mask { product5 } else { f32::from_bits(4286578688) });
            let cast: f32 = where_cond;
            let sub: f32 = cast - max;
            let exp: f32 = m::exp(sub);
            let div: f32 = exp / sum;
            let cast2: f32 = m::round_bf16(div);
            cast16_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast2);
        }
    }
}
#[doc = "map[q.0, q.1, v.2] product17 = product"]
#[allow(non_camel_case_types)]
struct k2_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k2_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let product17_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(product_in[i]);
            product17_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(product);
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
#[doc = "map[q.0, q.1, k.1] cast22 = bf16(product)"]
#[allow(non_camel_case_types)]
struct k4_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k4_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let cast22_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = product_in[i];
            let cast: f32 = m::round_bf16(product);
            cast22_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast);
        }
    }
}
#[doc = "row[q.0, q.1 | k.1] t2 = f32(cast16); t4 = f32(cast22); cast36 = bf16(where_cond(mask, f32(bf16(mul(t2, sub(t4, sum(mul(t4, t2)))))), 0))"]
#[allow(non_camel_case_types)]
struct k5_mul_sum_sub_where_cond;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k5_mul_sum_sub_where_cond {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let mask_in = &ins.elem::<bool>(0)[..n];
        let cast16_in = &ins.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let cast22_in = &ins.elem::<::fuse_runtime::prelude::bf16>(2)[..n];
        let cast36_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let cast16: f32 = Element::to_compute(cast16_in[i]); let cast: f32 = cast16; let cast22: f32 = Element::to_compute(cast22_in[i]); let cast2: f32 = cast22; let mul: f32 = cast2 * cast; mul });
        for i in 0..n {
            let mask: bool = mask_in[i];
            let cast16: f32 = Element::to_compute(cast16_in[i]);
            let cast: f32 = cast16;
            let cast22: f32 = Element::to_compute(cast22_in[i]);
            let cast2: f32 = cast22;
            let sub: f32 = cast2 - sum;
            let mul2: f32 = cast * sub;
            let cast3: f32 = m::round_bf16(mul2);
            let cast4: f32 = cast3;
            let where_cond: f32 = if mask { cast4 } else { 0.0f32 };
            let cast5: f32 = m::round_bf16(where_cond);
            cast36_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast5);
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
#[doc = "map[q.0, k.1, q.2] cast42 = bf16(product)"]
#[allow(non_camel_case_types)]
struct k7_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k7_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let cast42_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = product_in[i];
            let cast: f32 = m::round_bf16(product);
            cast42_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast);
        }
    }
}
