#[doc = "map[index.0, index.1, weight.1] relu4 = relu(weight[index])"]
#[allow(non_camel_case_types)]
struct k0_gather_relu;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_gather_relu {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let index_in = &ins.elem::<i64>(0)[..n];
        let weight_in = ins.gather::<::fuse_runtime::prelude::bf16>(1);
        let relu4_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let index: i64 = index_in[i];
            let gathered: f32 = Element::to_compute(weight_in.get(i, index));
            let relu: f32 = m::round_bf16(m::relu(gathered));
            relu4_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(relu);
        }
    }
}
