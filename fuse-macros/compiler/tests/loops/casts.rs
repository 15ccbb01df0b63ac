#[doc = "map[x.0] cast1 = f32(x); cast2 = f16(x); cast3 = bf16(x); cast4 = i64(x); cast5 = i32(x); cast6 = u8(x); cast7 = bool(x)"]
#[allow(non_camel_case_types)]
struct k0_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let x_in = &ins.elem::<f64>(0)[..n];
        let cast1_out = &mut outs.elem::<f32>(0)[..n];
        let cast2_out = &mut outs.elem::<::fuse_runtime::prelude::f16>(1)[..n];
        let cast3_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(2)[..n];
        let cast4_out = &mut outs.elem::<i64>(3)[..n];
        let cast5_out = &mut outs.elem::<i32>(4)[..n];
        let cast6_out = &mut outs.elem::<u8>(5)[..n];
        let cast7_out = &mut outs.elem::<bool>(6)[..n];
        for i in 0..n {
            let x: f64 = x_in[i];
            let cast: f32 = m::cast::<f64, f32>(x);
            let cast2: f32 = m::round_f16(m::cast::<f64, f32>(x));
            let cast3: f32 = m::round_bf16(m::cast::<f64, f32>(x));
            let cast4: i64 = m::cast::<f64, i64>(x);
            let cast5: i32 = m::cast::<f64, i32>(x);
            let cast6: u8 = m::cast::<f64, u8>(x);
            let cast7: bool = m::cast::<f64, bool>(x);
            cast1_out[i] = cast;
            cast2_out[i] = <::fuse_runtime::prelude::f16 as Element>::from_compute(cast2);
            cast3_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast3);
            cast4_out[i] = cast4;
            cast5_out[i] = cast5;
            cast6_out[i] = cast6;
            cast7_out[i] = cast7;
        }
    }
}
#[doc = "map[bytes.0] cast9 = bf16(bytes)"]
#[allow(non_camel_case_types)]
struct k1_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let bytes_in = &ins.elem::<u8>(0)[..n];
        let cast9_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let bytes: u8 = bytes_in[i];
            let cast: f32 = m::round_bf16(m::cast::<u8, f32>(bytes));
            cast9_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast);
        }
    }
}
