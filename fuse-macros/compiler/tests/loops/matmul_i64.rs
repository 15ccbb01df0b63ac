#[doc = "map[a.0, a.1, b.1] product2 = product"]
#[allow(non_camel_case_types)]
struct k0_matmul;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_matmul {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let product_in = &ins.product::<i64>()[..n];
        let product2_out = &mut outs.elem::<i64>(0)[..n];
        for i in 0..n {
            let product: i64 = product_in[i];
            product2_out[i] = product;
        }
    }
}
