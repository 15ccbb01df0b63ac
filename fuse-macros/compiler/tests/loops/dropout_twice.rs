#[doc = "row[x.0 | x.1] t4 = f32(scalar0); t13 = f32(where_cond(eq(scalar0, 1), 0, div(1, sub(1, scalar0)))); t15 = mul(x, mul(f32(ge(uniform0(position), t4)), t13)); t18 = exp(sub(t15, max(t15))); mul26 = mul(div(t18, sum(t18)), mul(f32(ge(uniform1(position), t4)), t13))"]
#[allow(non_camel_case_types)]
struct k0_random_ge_eq_sub;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_random_ge_eq_sub {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let position_in = &ins.elem::<i64>(1)[..n];
        let mul26_out = &mut outs.elem::<f32>(0)[..n];
        let draw: rt::Draw = ins.draw(0);
        let draw2: rt::Draw = ins.draw(1);
        let rate: f64 = ins.scalar::<f64>(0);
        for i in 0..n {
            let x: f32 = x_in[i];
            let position: i64 = position_in[i];
            let uniform: f32 = draw.uniform(position);
            let cast: f32 = m::cast::<f64, f32>(rate);
            let ge: bool = uniform >= cast;
            let cast2: f32 = m::cast::<bool, f32>(ge);
            let eq: bool = rate == 1.0f64;
            let sub: f64 = 1.0f64 - rate;
            let div: f64 = 1.0f64 / sub;
            let where_cond: f64 = if eq { 0.0f64 } else { div };
            let cast3: f32 = m::cast::<f64, f32>(where_cond);
            let mul: f32 = cast2 * cast3;
            let mul2: f32 = x * mul;
            mul26_out[i] = mul2;
        }
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let mul2: f32 = mul26_out[i]; mul2 });
        for i in 0..n {
            let mul2: f32 = mul26_out[i];
            let sub2: f32 = mul2 - max;
            let exp: f32 = m::exp(sub2);
            mul26_out[i] = exp;
        }
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let exp: f32 = mul26_out[i]; exp });
        for i in 0..n {
            let position: i64 = position_in[i];
            let cast: f32 = m::cast::<f64, f32>(rate);
            let eq: bool = rate == 1.0f64;
            let sub: f64 = 1.0f64 - rate;
            let div: f64 = 1.0f64 / sub;
            let where_cond: f64 = if eq { 0.0f64 } else { div };
            let cast3: f32 = m::cast::<f64, f32>(where_cond);
            let exp: f32 = mul26_out[i];
            let div2: f32 = exp / sum;
            let uniform2: f32 = draw2.uniform(position);
            let ge2: bool = uniform2 >= cast;
            let cast4: f32 = m::cast::<bool, f32>(ge2);
            let mul3: f32 = cast4 * cast3;
            let mul4: f32 = div2 * mul3;
            mul26_out[i] = mul4;
        }
    }
}
