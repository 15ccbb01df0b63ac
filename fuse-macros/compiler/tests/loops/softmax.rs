#[doc = "row[x.0 | x.1] t3 = exp(sub(x, max(x))); div7 = div(t3, sum(t3))"]
#[allow(non_camel_case_types)]
struct k0_max_sub_exp_sum;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_max_sub_exp_sum {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let div7_out = &mut outs.elem::<f32>(0)[..n];
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let x: f32 = x_in[i]; x });
        for i in 0..n {
            let x: f32 = x_in[i];
            let sub: f32 = x - max;
            let exp: f32 = m::exp(sub);
            div7_out[i] = exp;
        }
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let exp: f32 = div7_out[i]; exp });
        for i in 0..n {
            let exp: f32 = div7_out[i];
            let div: f32 = exp / sum;
            div7_out[i] = div;
        }
    }
}
