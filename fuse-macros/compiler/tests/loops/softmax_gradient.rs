#[doc = "row[x.0 | x.1] t1 = tanh(x); t4 = exp(sub(t1, max(t1))); t6 = div(t4, sum(t4)); div8 = t6; x_grad = mul(mul(t6, sub(cotangent, sum(mul(cotangent, t6)))), sub(1, mul(t1, t1)))"]
#[allow(non_camel_case_types)]
struct k0_tanh_max_sub_exp;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_tanh_max_sub_exp {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let cotangent_in = &ins.elem::<f32>(1)[..n];
        let div8_out = &mut outs.elem::<f32>(0)[..n];
        let x_grad_out = &mut outs.elem::<f32>(1)[..n];
        for i in 0..n {
            let x: f32 = x_in[i];
            let tanh: f32 = m::tanh(x);
            x_grad_out[i] = tanh;
        }
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let tanh: f32 = x_grad_out[i]; tanh });
        for i in 0..n {
            let tanh: f32 = x_grad_out[i];
            let sub: f32 = tanh - max;
            let exp: f32 = m::exp(sub);
            div8_out[i] = exp;
        }
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let exp: f32 = div8_out[i]; exp });
        for i in 0..n {
            let exp: f32 = div8_out[i];
            let div: f32 = exp / sum;
            div8_out[i] = div;
        }
        let sum2: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let div: f32 = div8_out[i]; let cotangent: f32 = cotangent_in[i]; let mul: f32 = cotangent * div; mul });
        for i in 0..n {
            let tanh: f32 = x_grad_out[i];
            let div: f32 = div8_out[i];
            let cotangent: f32 = cotangent_in[i];
            let sub2: f32 = cotangent - sum2;
            let mul2: f32 = div * sub2;
            let mul3: f32 = tanh * tanh;
            let sub3: f32 = 1.0f32 - mul3;
            let x_grad: f32 = mul2 * sub3;
            x_grad_out[i] = x_grad;
        }
    }
}
