#[doc = "row[place.0 | keys.1] t2 = f32(table[place]); t5 = exp(sub(t2, max(t2))); cast14 = bf16(div(t5, sum(t5)))"]
#[allow(non_camel_case_types)]
struct k0_gather_max_sub_exp;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k0_gather_max_sub_exp {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let place_in = &ins.elem::<i64>(0)[..n];
        let table_in = ins.gather::<::fuse_runtime::prelude::bf16>(1);
        let cast14_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let max: f32 = rt::reduce::max(n, #[inline(always)] |i| { let place: i64 = place_in[i]; let gathered: f32 = Element::to_compute(table_in.get(i, place)); let cast: f32 = gathered; cast });
        let sum: f32 = rt::reduce::row_sum(n, #[inline(always)] |i| { let place: i64 = place_in[i]; let gathered: f32 = Element::to_compute(table_in.get(i, place)); let cast: f32 = gathered; let sub: f32 = cast - max; let exp: f32 = m::exp(sub); exp });
        for i in 0..n {
            let place: i64 = place_in[i];
            let gathered: f32 = Element::to_compute(table_in.get(i, place));
            let cast: f32 = gathered;
            let sub: f32 = cast - max;
            let exp: f32 = m::exp(sub);
            let div: f32 = exp / sum;
            let cast2: f32 = m::round_bf16(div);
            cast14_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast2);
        }
    }
}
#[doc = "map[keys.0, keys.1] scatter15 = keys"]
#[allow(non_camel_case_types)]
struct k1_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k1_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let keys_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let scatter15_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let keys: f32 = Element::to_compute(keys_in[i]);
            scatter15_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(keys);
        }
    }
}
#[doc = "line[keys.1 | place.0] scatter15[place] = cast14"]
#[allow(non_camel_case_types)]
struct k2_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k2_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let place_in = &ins.elem::<i64>(0)[..n];
        let cast14_in = &ins.elem::<::fuse_runtime::prelude::bf16>(1)[..n];
        let mut scatter15_out = outs.scatter::<::fuse_runtime::prelude::bf16>(0);
        for i in 0..n {
            let place: i64 = place_in[i];
            let cast14: f32 = Element::to_compute(cast14_in[i]);
            scatter15_out.set(i, place, <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast14));
        }
    }
}
#[doc = "map[values.0, values.1] write17 = values"]
#[allow(non_camel_case_types)]
struct k3_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k3_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let values_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let write17_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let values: f32 = Element::to_compute(values_in[i]);
            write17_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(values);
        }
    }
}
#[doc = "map[max(0, -1*min(3, values.0) + min(4, values.0)), values.1] write17 = cast14"]
#[allow(non_camel_case_types)]
struct k4_copy;
#[allow(unused, clippy::all)]
impl ::fuse_runtime::rt::Body for k4_copy {
    #[inline(always)]
    fn run(&self, ins: &::fuse_runtime::rt::Ins<'_>, outs: &mut ::fuse_runtime::rt::Outs<'_>) {
        use ::fuse_runtime::{Element, rt, rt::math as m};
        let n = ins.len();
        let cast14_in = &ins.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        let write17_out = &mut outs.elem::<::fuse_runtime::prelude::bf16>(0)[..n];
        for i in 0..n {
            let cast14: f32 = Element::to_compute(cast14_in[i]);
            write17_out[i] = <::fuse_runtime::prelude::bf16 as Element>::from_compute(cast14);
        }
    }
}
