#[doc = "map[x.0, broadcast(x.1, b.0)] gelu3 = gelu(add(x, b))"]
#[allow(non_camel_case_types)]
struct k0_add_gelu;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_add_gelu {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let b_in = &ins.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let gelu3_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let x: f32 = Element::to_compute(x_in[i]);
            let b: f32 = Element::to_compute(b_in[i]);
            let add: f32 = m::round_bf16(x + b);
            let gelu: f32 = m::round_bf16(m::gelu(add));
            gelu3_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(gelu);
        }
    }
}
