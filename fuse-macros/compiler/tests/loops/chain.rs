#[doc = "map[broadcast(x.0, y.0)] t2 = f32(y); first = tanh(mul(x, t2)); t5 = exp(first); exp5 = t5; erf9 = erf(mul(sin(sub(t5, t2)), first))"]
#[allow(non_camel_case_types)]
struct k0_mul_tanh_exp_sub;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_mul_tanh_exp_sub {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let y_in = &ins.elem::<::fuse_runtime::prelude::f16>(1)[..n];
        let exp5_out = &mut outs.elem::<f32>(0)[..n];
        let erf9_out = &mut outs.elem::<f32>(1)[..n];
        let mut cast_block = [<f32 as Default>::default(); rt::BLOCK];
        let mut first_block = [<f32 as Default>::default(); rt::BLOCK];
        let mut exp_block = [<f32 as Default>::default(); rt::BLOCK];
        for start in (0..n).step_by(rt::BLOCK) {
            let n = rt::BLOCK.min(n - start);
            let x_in = &x_in[start..][..n];
            let y_in = &y_in[start..][..n];
            let exp5_out = &mut exp5_out[start..][..n];
            let erf9_out = &mut erf9_out[start..][..n];
            for i in 0..n {
                let x: f32 = x_in[i];
                let y: f32 = Element::to_compute(y_in[i]);
                let cast: f32 = y;
                let mul: f32 = x * cast;
                let first: f32 = m::tanh(mul);
                cast_block[i] = cast;
                first_block[i] = first;
            }
            for i in 0..n {
                let first: f32 = first_block[i];
                let exp: f32 = m::exp(first);
                exp_block[i] = exp;
                exp5_out[i] = exp;
            }
            for i in 0..n {
                let cast: f32 = cast_block[i];
                let exp: f32 = exp_block[i];
                let sub: f32 = exp - cast;
                let sin: f32 = m::sin(sub);
                cast_block[i] = sin;
            }
            for i in 0..n {
                let first: f32 = first_block[i];
                let sin: f32 = cast_block[i];
                let mul2: f32 = sin * first;
                let erf: f32 = m::erf(mul2);
                erf9_out[i] = erf;
            }
        }
    }
}
