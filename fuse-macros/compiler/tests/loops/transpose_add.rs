#[doc = "map[broadcast(x.1, y.0), broadcast(x.0, y.1)] add3 = add(x, y)"]
#[allow(non_camel_case_types)]
struct k0_add;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_add {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let y_in = &ins.elem::<f32>(1)[..n];
        let add3_out = &mut outs.elem::<f32>(0)[..n];
        for i in 0..n {
            let x: f32 = x_in[i];
            let y: f32 = y_in[i];
            let add: f32 = x + y;
            add3_out[i] = add;
        }
    }
}
