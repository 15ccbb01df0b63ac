#[doc = "column[x.0, x.2 | x.1] max1 = max(x); argmin2 = argmin(x)"]
#[allow(non_camel_case_types)]
struct k0_max_argmin;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_max_argmin {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let max: f32 = m::round_bf16(rt::reduce::max(n, #[inline(always)] |i| { let x: f32 = Element::to_compute(x_in[i]); x }));
        let argmin: i64 = rt::reduce::argmin(n, #[inline(always)] |i| { let x: f32 = Element::to_compute(x_in[i]); x });
        outs.row::<::fuse_runtime::prelude::bf16>(0, <::fuse_runtime::prelude::bf16 as Element>::from_compute(max));
        outs.row::<i64>(1, argmin);
    }
}
