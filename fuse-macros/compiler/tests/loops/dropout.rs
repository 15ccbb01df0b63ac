#[doc = "row[broadcast(x.0, r.0) | broadcast(x.1, r.1)] t10 = add(r, mul(x, mul(f32(ge(uniform0(position), 0.10000000149011612)), 1.1111111640930176))); t14 = sub(t10, div(sum(t10), broadcast(x.1, r.1))); add26 = add(mul(mul(t14, rsqrt(add(div(sum(mul(t14, t14)), broadcast(x.1, r.1)), 0.000009999999747378752))), w), b)"]
#[allow(non_camel_case_types)]
struct k0_random_ge_mul_add;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_random_ge_mul_add {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let r_in = &ins.elem::<f32>(0)[..n];
        let x_in = &ins.elem::<f32>(1)[..n];
        let position_in = &ins.elem::<i64>(2)[..n];
        let w_in = &ins.elem::<f32>(3)[..n];
        let b_in = &ins.elem::<f32>(4)[..n];
        let add26_out = &mut outs.elem::<f32>(0)[..n];
        let draw: rt::Draw = ins.draw(0);
        let extent: f32 = m::cast::<i64, f32>(ins.size(12));
        for i in 0..n {
            let r: f32 = r_in[i];
            let x: f32 = x_in[i];
            let position: i64 = position_in[i];
            let uniform: f32 = draw.uniform(position);
            let ge: bool = uniform >= 0.1f32;
            let cast: f32 = m::cast::<bool, f32>(ge);
            let mul: f32 = cast * 1.1111112f32;
            let mul2: f32 = x * mul;
            let add: f32 = r + mul2;
            add26_out[i] = add;
        }
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let add: f32 = add26_out[i]; add });
        let div: f32 = sum / extent;
        let sum2: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let add: f32 = add26_out[i]; let sub: f32 = add - div; let mul3: f32 = sub * sub; mul3 });
        let div2: f32 = sum2 / extent;
        let add2: f32 = div2 + 1e-5f32;
        let rsqrt: f32 = m::recip(m::sqrt(add2));
        for i in 0..n {
            let add: f32 = add26_out[i];
            let sub: f32 = add - div;
            let mul4: f32 = sub * rsqrt;
            let w: f32 = w_in[i];
            let mul5: f32 = mul4 * w;
            let b: f32 = b_in[i];
            let add3: f32 = mul5 + b;
            add26_out[i] = add3;
        }
    }
}
