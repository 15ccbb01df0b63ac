#[doc = "map[broadcast(q.0, k.0), broadcast(q.1, k.1), q.2, k.2] cast5 = f32(product)"]
#[allow(non_camel_case_types)]
struct k0_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let cast5_out = &mut outs.elem::<f32>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(ins.product::<f32>()[i]);
            let cast: f32 = product;
            cast5_out[i] = cast;
        }
    }
}
#[doc = "row[broadcast(q.0, k.0), broadcast(q.1, k.1), q.2 | k.2] t3 = exp(sub(cast5, max(cast5))); cast13 = bf16(div(t3, sum(t3)))"]
#[allow(non_camel_case_types)]
struct k1_max_sub_exp_sum;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_max_sub_exp_sum {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let cast5_in = &ins.elem::<f32>(0)[..n];
        let cast13_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let cast5: f32 = cast5_in[i]; cast5 });
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let cast5: f32 = cast5_in[i]; let sub: f32 = cast5 - max; let exp: f32 = m::exp(sub); exp });
        for i in 0..n {
            let cast5: f32 = cast5_in[i];
            let sub: f32 = cast5 - max;
            let exp: f32 = m::exp(sub);
            let div: f32 = exp / sum;
            let cast: f32 = m::round_bf16(div);
            cast13_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast);
        }
    }
}
#[doc = "map[broadcast(v.0, broadcast(q.0, k.0)), broadcast(v.1, broadcast(q.1, k.1)), q.2, v.3] product14 = product"]
#[allow(non_camel_case_types)]
struct k2_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k2_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product14_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(ins.product::<f32>()[i]);
            product14_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(product);
        }
    }
}
