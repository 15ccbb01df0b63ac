#[doc = "map[x.0, broadcast(x.1, b.0)] gelu3 = gelu(add(x, b))"]
#[allow(non_camel_case_types)]
struct k0_add_gelu;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_add_gelu {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f64>(0)[..n];
        let b_in = &ins.elem::<f64>(1)[..n];
        let gelu3_out = &mut outs.elem::<f64>(0)[..n];
        for i in 0..n {
            let x: f64 = x_in[i];
            let b: f64 = b_in[i];
            let add: f64 = x + b;
            let gelu: f64 = m::gelu(add);
            gelu3_out[i] = gelu;
        }
    }
}
