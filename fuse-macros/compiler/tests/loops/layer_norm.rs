#[doc = "row[x.0 | x.1] t1 = f32(x); t5 = sub(t1, div(sum(t1), x.1)); cast21 = bf16(add(mul(mul(t5, rsqrt(add(div(sum(mul(t5, t5)), x.1), 0.000009999999747378752))), f32(w)), f32(b)))"]
#[allow(non_camel_case_types)]
struct k0_sum_div_sub_mul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_sum_div_sub_mul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let w_in = &ins.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let b_in = &ins.elem::<::fuse_runtime::prelude::bf16>(2)[..n];
        let cast21_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let extent: f32 = m::cast::<i64, f32>(ins.size(3));
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let x: f32 = Element::to_compute(x_in[i]); let cast: f32 = x; cast });
        let div: f32 = sum / extent;
        let sum2: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let x: f32 = Element::to_compute(x_in[i]); let cast: f32 = x; let sub: f32 = cast - div; let mul: f32 = sub * sub; mul });
        let div2: f32 = sum2 / extent;
        let add: f32 = div2 + 1e-5f32;
        let rsqrt: f32 = m::recip(m::sqrt(add));
        for i in 0..n {
            let x: f32 = Element::to_compute(x_in[i]);
            let cast: f32 = x;
            let sub: f32 = cast - div;
            let mul2: f32 = sub * rsqrt;
            let w: f32 = Element::to_compute(w_in[i]);
            let cast2: f32 = w;
            let mul3: f32 = mul2 * cast2;
            let b: f32 = Element::to_compute(b_in[i]);
            let cast3: f32 = b;
            let add2: f32 = mul3 + cast3;
            let cast4: f32 = m::round_bf16(add2);
            cast21_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast4);
        }
    }
}
