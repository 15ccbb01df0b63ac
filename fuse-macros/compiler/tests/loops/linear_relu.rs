#[doc = "map[x.0, w.1] product3 = product"]
#[allow(non_camel_case_types)]
struct k0_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let product3_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(product_in[i]);
            product3_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(product);
        }
    }
}
#[doc = "map[x.0, broadcast(w.1, b.0)] relu5 = relu(add(product3, b))"]
#[allow(non_camel_case_types)]
struct k1_add_relu;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_add_relu {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product3_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let b_in = &ins.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let relu5_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product3: f32 = Element::to_compute(product3_in[i]);
            let b: f32 = Element::to_compute(b_in[i]);
            let add: f32 = m::round_bf16(product3 + b);
            let relu: f32 = m::round_bf16(m::relu(add));
            relu5_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(relu);
        }
    }
}
