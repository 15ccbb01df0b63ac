#[doc = "line[x.0 | x.1] cumsum1 = scan_sum(x)"]
#[allow(non_camel_case_types)]
struct k0_cumsum;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_cumsum {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<::fuse_runtime::prelude::f16>(0)[..n];
        let cumsum1_out = &mut outs.elem::<::fuse_runtime::prelude::f16>(0)[..n];
        let mut sum_acc: f32 = 0.0f32;
        for i in 0..n {
            let x: f32 = Element::to_compute(x_in[i]);
            sum_acc = m::add(sum_acc, x);
            let sum: f32 = m::round_f16(sum_acc);
            cumsum1_out[i] = <::fuse_runtime::prelude::f16 as Element>::from_compute(sum);
        }
    }
}
