#[doc = "map[x.0] cast1 = f32(x); cast2 = f16(x); cast3 = bf16(x); cast4 = f8e4m3(x); cast5 = i64(x); cast6 = i32(x); cast7 = u8(x); cast8 = bool(x)"]
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
        let cast4_out = &mut outs.elem::<::fuse_runtime::prelude::f8e4m3>(3)[..n];
        let cast5_out = &mut outs.elem::<i64>(4)[..n];
        let cast6_out = &mut outs.elem::<i32>(5)[..n];
        let cast7_out = &mut outs.elem::<u8>(6)[..n];
        let cast8_out = &mut outs.elem::<bool>(7)[..n];
        for i in 0..n {
            let x: f64 = x_in[i];
            let cast: f32 = m::cast::<f64, f32>(x);
            let cast2: f32 = m::round_f16(m::cast::<f64, f32>(x));
            let cast3: f32 = m::round_bf16(m::cast::<f64, f32>(x));
            let cast4: f32 = m::round_f8e4m3(m::cast::<f64, f32>(x));
            let cast5: i64 = m::cast::<f64, i64>(x);
            let cast6: i32 = m::cast::<f64, i32>(x);
            let cast7: u8 = m::cast::<f64, u8>(x);
            let cast8: bool = m::cast::<f64, bool>(x);
            cast1_out[i] = cast;
            cast2_out[i] = <::fuse_runtime::prelude::f16 as Element>::from_compute(cast2);
            cast3_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast3);
            cast4_out[i] = <::fuse_runtime::prelude::f8e4m3 as Element>::from_compute(cast4);
            cast5_out[i] = cast5;
            cast6_out[i] = cast6;
            cast7_out[i] = cast7;
            cast8_out[i] = cast8;
        }
    }
}
#[doc = "map[bytes.0] cast10 = bf16(bytes)"]
#[allow(non_camel_case_types)]
struct k1_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let bytes_in = &ins.elem::<u8>(0)[..n];
        let cast10_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let bytes: u8 = bytes_in[i];
            let cast: f32 = m::round_bf16(m::cast::<u8, f32>(bytes));
            cast10_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast);
        }
    }
}
