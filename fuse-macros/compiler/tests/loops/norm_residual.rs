#[doc = "row[x.0 | x.1] t1 = f32(x); add15 = add(x, bf16(mul(mul(t1, rsqrt(add(div(sum(mul(t1, t1)), x.1), 0.0000009999999974752427))), f32(w))))"]
#[allow(non_camel_case_types)]
struct k0_mul_sum_div_add;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_mul_sum_div_add {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let w_in = &ins.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let add15_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let extent: f32 = m::cast::<i64, f32>(ins.size(4));
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let x: f32 = Element::to_compute(x_in[i]); let cast: f32 = x; let mul: f32 = cast * cast; mul });
        let div: f32 = sum / extent;
        let add: f32 = div + 1e-6f32;
        let rsqrt: f32 = m::recip(m::sqrt(add));
        for i in 0..n {
            let x: f32 = Element::to_compute(x_in[i]);
            let cast: f32 = x;
            let mul2: f32 = cast * rsqrt;
            let w: f32 = Element::to_compute(w_in[i]);
            let cast2: f32 = w;
            let mul3: f32 = mul2 * cast2;
            let cast3: f32 = m::round_bf16(mul3);
            let add2: f32 = m::round_bf16(x + cast3);
            add15_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(add2);
        }
    }
}
