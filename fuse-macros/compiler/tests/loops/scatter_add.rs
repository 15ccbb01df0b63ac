#[doc = "map[x.0, x.1] scatter5 = x"]
#[allow(non_camel_case_types)]
struct k0_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f32>(0)[..n];
        let scatter5_out = &mut outs.elem::<f32>(0)[..n];
        for i in 0..n {
            let x: f32 = x_in[i];
            scatter5_out[i] = x;
        }
    }
}
#[doc = "line[index.1 | index.0] scatter5[index] += src"]
#[allow(non_camel_case_types)]
struct k1_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let index_in = &ins.elem::<i64>(0)[..n];
        let src_in = &ins.elem::<f32>(1)[..n];
        let mut scatter5_out = outs.scatter::<f32>(0);
        for i in 0..n {
            let index: i64 = index_in[i];
            let src: f32 = src_in[i];
            scatter5_out.add(i, index, src);
        }
    }
}
