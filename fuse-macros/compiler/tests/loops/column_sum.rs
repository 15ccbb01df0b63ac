#[doc = "column[x.1 | x.0] sum2 = sum(mul(x, x))"]
#[allow(non_camel_case_types)]
struct k0_mul_sum;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_mul_sum {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let sum: f32 = rt::reduce::column_sum(n, #[inline(always)] |i| { let x: f32 = x_in[i]; let mul: f32 = x * x; mul });
        outs.row::<f32>(0, sum);
    }
}
