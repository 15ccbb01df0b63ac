#[doc = "row[x.0 | x.1] argmax1 = argmax(x); max2 = max(x)"]
#[allow(non_camel_case_types)]
struct k0_argmax_max;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_argmax_max {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<u8>(0)[..n];
        let argmax: i64 = rt::reduce::argmax(n, #[inline(always)] |i| { let x: u8 = x_in[i]; x });
        let max: u8 = rt::reduce::max(n, #[inline(always)] |i| { let x: u8 = x_in[i]; x });
        outs.row::<i64>(0, argmax);
        outs.row::<u8>(1, max);
    }
}
