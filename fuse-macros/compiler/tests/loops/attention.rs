#[doc = "map[broadcast(q.0, k.0), broadcast(q.1, k.1), q.2, k.2] product4 = product"]
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
#[doc = "row[broadcast(q.0, k.0), broadcast(q.1, k.1), q.2 | k.2] t1 = f32(product4); t4 = exp(sub(t1, max(t1))); cast13 = bf16(div(t4, sum(t4)))"]
#[allow(non_camel_case_types)]
struct k1_max_sub_exp_sum;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_max_sub_exp_sum {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product4_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let cast13_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let product4: f32 = Element::to_compute(product4_in[i]); let cast: f32 = product4; cast });
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let product4: f32 = Element::to_compute(product4_in[i]); let cast: f32 = product4; let sub: f32 = cast - max; let exp: f32 = m::exp(sub); exp });
        for i in 0..n {
            let product4: f32 = Element::to_compute(product4_in[i]);
            let cast: f32 = product4;
            let sub: f32 = cast - max;
            let exp: f32 = m::exp(sub);
            let div: f32 = exp / sum;
            let cast2: f32 = m::round_bf16(div);
            cast13_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast2);
        }
    }
}
#[doc = "map[broadcast(q.0, broadcast(k.0, v.0)), broadcast(q.1, broadcast(k.1, v.1)), q.2, v.3] product14 = product"]
#[allow(non_camel_case_types)]
struct k2_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k2_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let product14_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(product_in[i]);
            product14_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(product);
        }
    }
}
