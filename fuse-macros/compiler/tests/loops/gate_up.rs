#[doc = "map[x.0, gate.1] silu4 = silu(product)"]
#[allow(non_camel_case_types)]
struct k0_matmul_silu;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_matmul_silu {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let silu4_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(product_in[i]);
            let silu: f32 = m::round_bf16(m::silu(product));
            silu4_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(silu);
        }
    }
}
#[doc = "map[x.0, gate.1] mul6 = mul(silu4, product)"]
#[allow(non_camel_case_types)]
struct k1_matmul_mul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_matmul_mul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<f32>()[..n];
        let silu4_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let mul6_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let product: f32 = m::round_bf16(product_in[i]);
            let silu4: f32 = Element::to_compute(silu4_in[i]);
            let mul: f32 = m::round_bf16(silu4 * product);
            mul6_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(mul);
        }
    }
}
